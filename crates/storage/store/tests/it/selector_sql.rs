//! A selector has the same meaning in the database and in [`Matcher`].

use proptest::collection::{hash_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rcrt_breadcrumb::{BreadcrumbQuery, ContextMatch, ContextPath, Fuel, MatchOp, Matcher, NewBreadcrumb, Selector};
use rcrt_conformance::harness::object;
use serde_json::{Map, Value, json};

use crate::harness::StoreHarness;
use rcrt_conformance::Harness;

const KEYS: [&str; 9] = ["a", "b", "name", "0", "1", "-1", "+1", " 1", "01"];

fn value() -> impl Strategy<Value = Value> {
    let numbers = vec![
        json!(0),
        json!(-0.0),
        json!(1),
        json!(1.0),
        json!(-1),
        json!(0.5),
        json!(-0.5),
        json!(9_007_199_254_740_992_i64),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_992.0),
        json!(u64::MAX),
        json!(18_446_744_073_709_552_000.0),
        json!(1e19),
        json!(10_000_000_000_000_000_000_u64),
        json!(1e300),
        json!(-1e300),
        json!(5e-324),
    ];
    let texts = ["", "a", "A", "b", "ab", "ba", "ä", "😀", "\u{e000}", "1", "%", "_", "\\", "\""];
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        4 => select(numbers),
        4 => select(texts.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            hash_map(select(KEYS.to_vec()), inner, 0..3)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
                .prop_map(Value::from),
        ]
    })
}

fn context() -> impl Strategy<Value = Map<String, Value>> {
    vec((select(KEYS.to_vec()), value()), 0..5)
        .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn path() -> impl Strategy<Value = ContextPath> {
    let step = prop_oneof![
        select(KEYS.to_vec()).prop_map(|key| format!(".{key}")),
        (0..3).prop_map(|index| format!("[{index}]")),
    ];
    vec(step, 1..4).prop_map(|steps| ContextPath::try_from(format!("${}", steps.concat())).unwrap())
}

fn condition() -> impl Strategy<Value = ContextMatch> {
    let op = select(vec![
        MatchOp::Eq,
        MatchOp::Ne,
        MatchOp::Gt,
        MatchOp::Gte,
        MatchOp::Lt,
        MatchOp::Lte,
        MatchOp::Contains,
        MatchOp::ContainsAny,
        MatchOp::Exists,
    ]);
    (path(), op, value()).prop_map(|(path, op, value)| ContextMatch { path, op, value })
}

fn tags() -> impl Strategy<Value = Vec<String>> {
    vec(select(vec!["a", "b", "c", "A"]).prop_map(str::to_owned), 0..3)
}

fn schema() -> impl Strategy<Value = Option<String>> {
    let names = ["x.v1", "tool.v1", "toolbox.v1", "system.guide.v1", "system.guides.v1"];
    select(std::iter::once(None).chain(names.map(|name| Some(name.to_owned()))).collect::<Vec<_>>())
}

fn selector() -> impl Strategy<Value = Selector> {
    let schema_name = prop_oneof![3 => Just(None), 1 => schema()];
    let some_tags = || prop_oneof![2 => Just(Vec::new()), 1 => tags()];
    (some_tags(), some_tags(), schema_name, vec(condition(), 0..3), any::<bool>())
        .prop_map(|(any_tags, all_tags, schema_name, context_match, exclude_runtime)| Selector {
            any_tags,
            all_tags,
            schema_name,
            context_match,
            exclude_runtime,
        })
        .prop_filter("refused", |selector| selector.check().is_ok())
}

fn record() -> impl Strategy<Value = NewBreadcrumb> {
    (context(), tags(), schema()).prop_map(|(context, tags, schema_name)| NewBreadcrumb {
        title: "Generated".into(),
        context,
        tags,
        schema_name,
        ..NewBreadcrumb::default()
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_and_the_matcher_agree() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut runner = TestRunner::new(ProptestConfig { cases: 1500, failure_persistence: None, ..Default::default() });
    let mut records = Vec::new();
    for _ in 0..60 {
        let record = record().new_tree(&mut runner).unwrap().current();
        let id = agent.create(record, None).await.unwrap().id;
        records.push(agent.get(id).await.unwrap());
    }
    let handle = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        runner
            .run(&selector(), |selector| {
                let query = BreadcrumbQuery { selector: selector.clone(), limit: 1000, ..BreadcrumbQuery::default() };
                let found = handle.block_on(agent.list(&query)).unwrap();
                let matcher = Matcher::from(&selector);
                for record in &records {
                    let schema_name = record.schema_name.as_deref();
                    let expected =
                        matcher.matches(&record.tags, schema_name, &record.context, &mut Fuel::for_blocking()).unwrap();
                    let actual = found.iter().any(|item| item.id == record.id);
                    prop_assert_eq!(actual, expected, "{:?}", record.context);
                }
                Ok(())
            })
            .unwrap();
    });
    harness.close().await;
}

/// Tool names have an index, which cannot hold every value.
#[tokio::test]
async fn tools_are_found_by_valid_and_invalid_names() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let long = |letter: &str, length: usize| json!(letter.repeat(length));
    let mut names =
        vec![json!("a"), json!("A"), json!(7), json!("7"), json!({"a": 1}), json!("{\"a\":1}"), json!(null)];
    names.extend([long("x", 100), long("x", 101), long("ä", 100), long("ä", 101), long("x", 10_000)]);
    for schema in ["tool.v1", "tool.code.v1", "note.v1"] {
        for name in &names {
            let record = NewBreadcrumb {
                title: "Named".into(),
                context: object(json!({"name": name})),
                schema_name: Some(schema.into()),
                ..NewBreadcrumb::default()
            };
            agent.create(record, None).await.unwrap();
        }
    }
    for schema in ["tool.v1", "tool.code.v1", "note.v1"] {
        for name in &names {
            let path = ContextPath::try_from("$.name".to_owned()).unwrap();
            let condition = ContextMatch { path, op: MatchOp::Eq, value: name.clone() };
            let selector =
                Selector { schema_name: Some(schema.into()), context_match: vec![condition], ..Selector::default() };
            let query = BreadcrumbQuery { selector, include_context: true, ..BreadcrumbQuery::default() };
            let found = agent.list(&query).await.unwrap();
            let found: Vec<&Value> = found.iter().map(|row| &row.context.as_ref().unwrap()["name"]).collect();
            assert_eq!(found, [name], "{schema}");
        }
    }
    harness.close().await;
}

/// Cases that the generator may miss: each value against each, with each operator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_compared_exactly() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let numbers = [
        json!(9_007_199_254_740_992_i64),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_992.0),
        json!(u64::MAX),
        json!(18_446_744_073_709_551_616.0),
        json!(i64::MIN),
        json!(-9_223_372_036_854_775_808.0),
        json!(0.1),
        json!(-0.0),
        json!(0),
    ];
    for number in &numbers {
        let record = NewBreadcrumb {
            title: number.to_string(),
            context: object(json!({"n": number})),
            ..NewBreadcrumb::default()
        };
        agent.create(record, None).await.unwrap();
    }
    for op in [MatchOp::Eq, MatchOp::Gt, MatchOp::Gte, MatchOp::Lt, MatchOp::Lte] {
        for value in &numbers {
            let path = ContextPath::try_from("$.n".to_owned()).unwrap();
            let condition = ContextMatch { path, op, value: value.clone() };
            let selector = Selector { context_match: vec![condition], ..Selector::default() };
            let query = BreadcrumbQuery { selector: selector.clone(), ..BreadcrumbQuery::default() };
            let mut found: Vec<String> = agent.list(&query).await.unwrap().into_iter().map(|item| item.title).collect();
            let matcher = Matcher::from(&selector);
            let is_expected = |number: &&Value| {
                matcher.matches(&[], None, &object(json!({"n": number})), &mut Fuel::for_blocking()).unwrap()
            };
            let mut expected: Vec<String> = numbers.iter().filter(is_expected).map(ToString::to_string).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{op:?} {value}");
        }
    }
    harness.close().await;
}

/// Comparing each of these values with each item would take far longer than the timeout.
#[tokio::test]
async fn a_list_of_many_values_is_matched_by_hash() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let record = NewBreadcrumb {
        title: "Many".into(),
        context: object(json!({"a": vec![0.5; 400_000]})),
        ..NewBreadcrumb::default()
    };
    agent.create(record, None).await.unwrap();
    let wanted = |values: Vec<Value>| {
        let path = ContextPath::try_from("$.a".to_owned()).unwrap();
        let condition = ContextMatch { path, op: MatchOp::ContainsAny, value: Value::from(values) };
        BreadcrumbQuery {
            selector: Selector { context_match: vec![condition], ..Selector::default() },
            ..BreadcrumbQuery::default()
        }
    };
    let numbers = |from: i32| (from..from + 999).map(Value::from).collect::<Vec<_>>();
    assert_eq!(agent.list(&wanted(numbers(0))).await.unwrap().len(), 0);
    let mut with_it = numbers(1);
    with_it.push(json!(0.50));
    assert_eq!(agent.list(&wanted(with_it)).await.unwrap().len(), 1);
    let too_many: Vec<Value> = (0..30_000).map(|_| json!(0)).collect();
    let Err(rcrt_breadcrumb::StoreError::Invalid(refused)) = agent.list(&wanted(too_many)).await else { panic!() };
    assert_eq!(refused.0[0].field, "context_match[0].value");
    harness.close().await;
}
