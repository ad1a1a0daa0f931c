//! Hints on any record: they never panic, never exceed their limits, and never show excluded
//! fields.

use proptest::prelude::*;
use rcrt_breadcrumb::BreadcrumbView;
use rcrt_schemas::hints::{Hints, MAX_VIEW_BYTES};
use serde_json::{Map, Value, json};
use uuid::Uuid;

fn view(context: Value) -> BreadcrumbView {
    let Value::Object(context) = context else { panic!("a context is an object") };
    BreadcrumbView {
        id: Uuid::nil(),
        title: "A title".into(),
        description: None,
        semantic_version: None,
        context,
        tags: vec!["one".into()],
        schema_name: Some("note.v1".into()),
        llm_hints: None,
        version: 3,
        checksum: String::new(),
        updated_at: chrono::DateTime::UNIX_EPOCH,
    }
}

fn shown(hints: &Value, context: Value) -> Value {
    let (hints, wrong) = Hints::read("llm_hints", hints);
    assert!(wrong.is_empty(), "{wrong}");
    Value::Object(hints.apply(&view(context)))
}

fn text(template: &str, context: Value) -> String {
    shown(&json!({"template": template}), context)["text"].as_str().unwrap().to_owned()
}

fn wrong(hints: &Value) -> Vec<String> {
    Hints::read("llm_hints", hints).1.0.into_iter().map(|one| one.field).collect()
}

#[test]
fn templates_follow_handlebars() {
    let context = json!({
        "items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}], "best": ["first"], "status": "high", "empty": [], "no": false
    });
    for (template, expected) in [
        ("{{title}} v{{version}}: {{context.items.length}}", "A title v3: 2"),
        ("{{#each context.items}}{{#unless @first}}, {{/unless}}{{this.name}}{{/each}}", "a, b"),
        ("{{#each items}}{{@index}}{{name}}{{../title}}{{#unless @last}};{{/unless}}{{/each}}", "0aA title;1bA title"),
        ("{{context.best.[0]}} {{{best.[0]}}} {{best.[9]}}", "first first "),
        ("{{#if (eq status \"high\")}}URGENT{{else}}fine{{/if}}", "URGENT"),
        ("{{#if empty}}some{{else}}none{{/if}}{{#unless no}}!{{/unless}}", "none!"),
        ("{{#each empty}}x{{else}}nothing{{/each}}", "nothing"),
        ("{{context.items | length}} {{context.items.[0] | keys | json}}", "2 [\"name\",\"n\"]"),
        ("{{! a word }}{{!-- with }} in it --}}{{~ title ~}}", "A title"),
        ("{{items.[1]}}", "{\"name\":\"b\",\"n\":2}"),
        ("{{#each items.[0]}}{{@key}}={{this}} {{/each}}", "name=a n=1 "),
        ("{{gone}}{{gone.further}}{ } }}", "{ } }}"),
    ] {
        assert_eq!(text(template, context.clone()), expected, "{template}");
    }
}

/// Each `json` filter doubles a text of quotes: sixteen would make 650 MB of these.
#[test]
fn chained_filters_stay_within_the_limits() {
    assert_eq!(text("{{context.q | json | json}}", json!({"q": "\""})), r#""\"\\\"\"""#);
    let template = format!("{{{{context.q{}}}}}", " | json".repeat(16));
    assert_eq!(text(&template, json!({"q": "\"".repeat(10_000)})), "");
}

#[test]
fn rules_create_new_fields() {
    let context = json!({"tools": [{"name": "a"}, {"name": "b"}], "content": "hi", "dom": {"count": 3}});
    let hints = json!({"transform": {
        "names": {"type": "extract", "value": "$.tools[*].name"},
        "count": {"type": "extract", "value": "$.tools.length"},
        "gone": {"type": "extract", "value": "$.nothing"},
        "say": {"type": "format", "format": "{content} {dom.count} {tools.length} {\"json\": 1} {gone}"},
        "note": {"type": "literal", "literal": {"any": 1}}
    }});
    let expected = json!({
        "names": ["a", "b"], "count": 2, "gone": null, "say": "hi 3 2 {\"json\": 1} ", "note": {"any": 1}
    });
    assert_eq!(shown(&hints, context), expected);
}

#[test]
fn paths_traverse_arrays_and_accept_a_context_prefix() {
    let context = json!({"a": [{"b": 1, "c": 2}], "d.e": 5, "d": {"e": 6, "f": 7}, "links": 1});
    let exclude = json!({"exclude": ["$.a[*].b", "d.e", "context.links", "version"]});
    assert_eq!(shown(&exclude, context.clone()), json!({"a": [{"c": 2}], "d": {"f": 7}}));
    assert_eq!(shown(&json!({"include": ["a.c", "d.f"]}), context), json!({"a": [{"c": 2}], "d": {"f": 7}}));
}

#[test]
fn invalid_hints_are_refused_by_field() {
    assert_eq!(wrong(&json!([])), ["llm_hints"]);
    assert_eq!(wrong(&json!({"include": [1]})), ["llm_hints.include[0]"]);
    assert_eq!(wrong(&json!({"rename": {"a": ""}})), ["llm_hints.rename.a"]);
    assert_eq!(
        wrong(&json!({"transform": {"x": {"type": "extract", "value": "$..a"}}})),
        ["llm_hints.transform.x.value"]
    );
    for template in [
        "{{",
        "{{#if a}}",
        "{{/if}}",
        "{{> partial}}",
        "{{log a}}",
        "{{#with a}}{{/with}}",
        "{{a | upper}}",
        "{{(a}}",
        "{{}}",
    ] {
        assert_eq!(wrong(&json!({"template": template})), ["llm_hints.template"], "{template}");
    }
    // RCRT's own notes beside the hints are accepted.
    assert!(wrong(&json!({"summary": "x", "when_to_use": "y", "comment": "z"})).is_empty());
}

#[test]
fn nested_blocks_are_stopped_by_the_fuel() {
    let items: Vec<u32> = (0..10_000).collect();
    let template = format!("{}{}", "{{#each context.a}}".repeat(10), "{{/each}}".repeat(10));
    // Without a limit this would never end.
    assert_eq!(text(&template, json!({"a": items})), "…");
    let long = "x".repeat(100_000);
    let repeated = text("{{#each context.a}}{{context.long}}{{/each}}", json!({"a": items, "long": long}));
    assert!(repeated.len() < 70_000 && repeated.ends_with('…'), "{}", repeated.len());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["a", "b", "c", "a.b", "context", "this", "length", "title"]).prop_map(str::to_owned),
        "\\PC{1,4}"
    ]
}

fn context() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), any_json()), 0..6).prop_map(|entries| Value::Object(entries.into_iter().collect()))
}

fn template() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "{{#each a}}",
            "{{/each}}",
            "{{#if b}}",
            "{{else}}",
            "{{/if}}",
            "{{this}}",
            "{{context}}",
            "{{a.[0].b}}",
            "{{@key}}",
            "{{../a}}",
            "{{#unless (not a)}}",
            "{{/unless}}",
            "{{a | keys | length}}",
            "{{",
            "}}",
            "{{{",
            "{{!--",
            "{{c | json}}",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn hints() -> impl Strategy<Value = Value> {
    let rule = prop_oneof![
        template().prop_map(|text| json!({"type": "template", "template": text})),
        "\\PC{0,12}".prop_map(|text| json!({"type": "format", "format": text})),
        prop::sample::select(vec!["$", "$.a", "a[*]", "$.a.*.b", "b.length", "$..a", "["])
            .prop_map(|path| json!({"type": "extract", "value": path})),
        any_json().prop_map(|value| json!({"type": "literal", "literal": value})),
        any_json(),
    ];
    let paths = || prop::collection::vec(name(), 0..4);
    (
        prop::collection::vec((name(), rule), 0..5),
        paths(),
        paths(),
        prop::option::of(template()),
        prop::sample::select(vec!["merge", "replace", "x"]),
        prop::collection::vec((name(), name()), 0..3),
    )
        .prop_map(|(rules, include, exclude, template, mode, rename)| {
            json!({
                "transform": rules.into_iter().collect::<Map<_, _>>(), "include": include, "exclude": exclude,
                "template": template, "mode": mode, "rename": rename.into_iter().collect::<std::collections::BTreeMap<_, _>>()
            })
        })
}

/// Gives each leaf a unique text, and collects those below the path.
fn marked(value: &Value, at: &str, path: &str, hidden: bool, next: &mut usize, below: &mut Vec<String>) -> Value {
    match value {
        Value::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| {
                    let here = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                    let hidden = hidden || here == path;
                    (key.clone(), marked(value, &here, path, hidden, next, below))
                })
                .collect(),
        ),
        Value::Array(items) => items.iter().map(|item| marked(item, at, path, hidden, next, below)).collect(),
        _ => {
            *next += 1;
            let mark = format!("<leaf {next}>");
            if hidden {
                below.push(mark.clone());
            }
            mark.into()
        }
    }
}

fn paths_in(value: &Value, at: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let here = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                paths.push(here.clone());
                paths_in(value, &here, paths);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths_in(item, at, paths)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_hints_on_any_record_stay_within_their_limits(hints in hints(), context in context()) {
        let (read, _) = Hints::read("llm_hints", &hints);
        let before = serde_json::to_vec(&context).unwrap().len();
        let after = serde_json::to_vec(&read.apply(&view(context))).unwrap().len();
        prop_assert!(after <= before + MAX_VIEW_BYTES + 10_000);
    }

    #[test]
    fn excluded_fields_are_nowhere_in_the_view(
        hints in hints(), context in context(), which in any::<prop::sample::Index>(), named in any::<bool>(),
    ) {
        let mut paths = Vec::new();
        paths_in(&context, "", &mut paths);
        // Wildcards and surrounding spaces are not part of a name in a path.
        paths.retain(|path| path.trim() == path && !path.is_empty() && !path.contains('*') && !path.starts_with("$."));
        prop_assume!(!paths.is_empty());
        let path = which.get(&paths).clone();
        let (mut next, mut below) = (0, Vec::new());
        let context = marked(&context, "", &path, false, &mut next, &mut below);
        let mut hints = hints;
        let excluded = if named { format!("context.{path}") } else { path.clone() };
        hints["exclude"] = json!([excluded]);
        // Everything that is left is shown by every kind of rule.
        hints["transform"]["all"] = json!({"type": "extract", "value": "$"});
        hints["transform"]["told"] = json!({"type": "template", "template": "{{context}}{{this}}{{#each context}}{{this}}{{/each}}"});
        let (read, _) = Hints::read("llm_hints", &hints);
        let shown = serde_json::to_string(&read.apply(&view(context))).unwrap();
        for mark in below {
            prop_assert!(!shown.contains(&mark), "{} is shown of {}: {}", mark, path, shown);
        }
    }

    #[test]
    fn any_text_is_a_template_or_is_refused(text in template(), context in context()) {
        let (read, _) = Hints::read("llm_hints", &json!({"template": text}));
        read.apply(&view(context));
    }
}
