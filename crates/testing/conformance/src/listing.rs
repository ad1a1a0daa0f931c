//! Lists and searches.

use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, NewBreadcrumb, Search, SearchMode, Selector};
use serde_json::{Value, json};

use crate::harness::{Agent, Harness, alone, fields, noted};

async fn write(agent: &Agent, title: &str, context: Value, tags: &[&str]) {
    agent.create(noted(title, context, tags), None).await.unwrap();
}

/// The titles that a selector finds, sorted.
async fn found(agent: &Agent, selector: Value) -> Vec<String> {
    let query = BreadcrumbQuery { selector: serde_json::from_value(selector).unwrap(), ..BreadcrumbQuery::default() };
    let mut titles: Vec<String> = agent.list(&query).await.unwrap().into_iter().map(|item| item.title).collect();
    titles.sort();
    titles
}

pub async fn the_newest_change_comes_first_page_by_page(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut ids = Vec::new();
    for title in ["a", "b", "c", "d", "e"] {
        ids.push(agent.create(noted(title, json!({}), &["note"]), None).await.unwrap().id);
    }
    agent.update(ids[1], 1, BreadcrumbChanges::default()).await.unwrap();
    let page = async |limit, offset| {
        let query = BreadcrumbQuery { limit, offset, ..BreadcrumbQuery::default() };
        agent.list(&query).await.unwrap().into_iter().map(|item| item.title).collect::<Vec<_>>()
    };
    assert_eq!(page(2, 0).await, ["b", "e"]);
    assert_eq!(page(2, 2).await, ["d", "c"]);
    assert_eq!(page(2, 4).await, ["a"]);
    assert!(page(2, 5).await.is_empty());
    for limit in [0, 1001] {
        assert_eq!(fields(agent.list(&BreadcrumbQuery { limit, ..BreadcrumbQuery::default() }).await), ["limit"]);
    }
}

pub async fn a_list_has_contexts_only_on_request(harness: &impl Harness) {
    let agent = alone(harness).await;
    let created = agent.create(noted("One", json!({"z": 1, "a": 2}), &["note"]), None).await.unwrap();
    let without = agent.list(&BreadcrumbQuery::default()).await.unwrap().remove(0);
    assert_eq!((without.id, without.version, without.context.clone()), (created.id, 1, None));
    assert_eq!((without.tags, without.schema_name.as_deref()), (vec!["note".to_owned()], Some("note.v1")));
    let with = agent.list(&BreadcrumbQuery::tagged("note")).await.unwrap().remove(0);
    assert_eq!(serde_json::to_string(&with.context).unwrap(), r#"{"z":1,"a":2}"#);
}

pub async fn tags_and_schema_select(harness: &impl Harness) {
    let agent = alone(harness).await;
    write(&agent, "ab", json!({}), &["a", "b"]).await;
    write(&agent, "a", json!({}), &["a", "a"]).await;
    write(&agent, "b", json!({}), &["b"]).await;
    let other = NewBreadcrumb { schema_name: Some("other.v1".into()), ..noted("other", json!({}), &["b"]) };
    agent.create(other, None).await.unwrap();
    assert_eq!(found(&agent, json!({"all_tags": ["a"]})).await, ["a", "ab"]);
    assert_eq!(found(&agent, json!({"all_tags": ["a", "b"]})).await, ["ab"]);
    assert_eq!(found(&agent, json!({"any_tags": ["a", "none"]})).await, ["a", "ab"]);
    assert_eq!(found(&agent, json!({"any_tags": ["b"], "schema_name": "note.v1"})).await, ["ab", "b"]);
    assert_eq!(found(&agent, json!({"schema_name": "other.v1"})).await, ["other"]);
    assert_eq!(found(&agent, json!({"all_tags": ["A"]})).await, Vec::<String>::new());
    assert_eq!(found(&agent, json!({})).await.len(), 4);
}

pub async fn every_operator_selects_by_context(harness: &impl Harness) {
    let agent = alone(harness).await;
    write(&agent, "one", json!({"n": 1, "s": "apple", "list": ["x", 2], "o": {"k": null}}), &[]).await;
    write(&agent, "two", json!({"n": 2.5, "s": "pear", "list": [], "o": {"k": {"deep": true}}}), &[]).await;
    write(&agent, "odd", json!({"n": "1", "s": 7}), &[]).await;
    let cases = [
        ("$.n", "eq", json!(1.0), vec!["one"]),
        ("$.n", "ne", json!(1), vec!["odd", "two"]),
        ("$.n", "gt", json!(1), vec!["two"]),
        ("$.n", "lt", json!(2), vec!["one"]),
        ("$.n", "gt", json!("0"), vec!["odd"]),
        ("$.s", "gt", json!("b"), vec!["two"]),
        ("$.s", "contains", json!("ea"), vec!["two"]),
        ("$.list", "contains", json!(2.0), vec!["one"]),
        ("$.list", "contains_any", json!(["y", "x"]), vec!["one"]),
        ("$.s", "contains_any", json!(["zz", "pp"]), vec!["one"]),
        ("$.list[1]", "eq", json!(2), vec!["one"]),
        ("$.o.k", "exists", json!(true), vec!["one", "two"]),
        ("$.o.k", "exists", json!(false), vec!["odd"]),
        ("$.o.k", "exists", Value::Null, vec!["one", "two"]),
        ("$.o.k", "eq", Value::Null, vec!["one"]),
        ("$.o.k", "eq", json!({"deep": true}), vec!["two"]),
        ("$.missing", "ne", json!(1), vec!["odd", "one", "two"]),
    ];
    for (path, op, value, expected) in cases {
        let condition = json!({"context_match": [{"path": path, "op": op, "value": value}]});
        assert_eq!(found(&agent, condition).await, expected, "{path} {op} {value}");
    }
    let both = json!({"context_match": [
        {"path": "$.n", "op": "gt", "value": 0}, {"path": "$.s", "op": "eq", "value": "pear"}]});
    assert_eq!(found(&agent, both).await, ["two"]);
}

pub async fn an_invalid_selector_is_refused(harness: &impl Harness) {
    let agent = alone(harness).await;
    let selector: Selector =
        serde_json::from_value(json!({"context_match": [{"path": "$.n", "op": "gt", "value": true}]})).unwrap();
    let query = BreadcrumbQuery { selector, ..BreadcrumbQuery::default() };
    assert_eq!(fields(agent.list(&query).await), ["context_match[0].value"]);
}

pub async fn a_text_search_ranks_the_best_match_first(harness: &impl Harness) {
    let agent = alone(harness).await;
    write(&agent, "Weather report", json!({"text": "sunny"}), &["report"]).await;
    write(&agent, "Shopping", json!({"items": [{"name": "the weather stone"}]}), &["list"]).await;
    write(&agent, "Other", json!({"text": "nothing here"}), &["report"]).await;
    let search = async |q: &str, selector: Value, include_context| {
        let selector = serde_json::from_value(selector).unwrap();
        let found = agent.search(&Search { selector, include_context, ..Search::of(q) }).await.unwrap();
        // The stores of this suite have no embedder.
        assert_eq!((found.mode, found.fallback), (SearchMode::Text, None));
        assert!(found.items.is_sorted_by(|one, next| one.score >= next.score), "{:?}", found.items);
        found.items
    };
    let titles =
        |items: Vec<rcrt_breadcrumb::BreadcrumbListItem>| items.into_iter().map(|item| item.title).collect::<Vec<_>>();
    assert_eq!(titles(search("weather", json!({}), false).await), ["Weather report", "Shopping"]);
    assert_eq!(titles(search("weather", json!({"all_tags": ["list"]}), false).await), ["Shopping"]);
    assert_eq!(titles(search("weather -stone", json!({}), false).await), ["Weather report"]);
    let guide = NewBreadcrumb { schema_name: Some("tool.guide.v1".into()), ..noted("Weather, guide", json!({}), &[]) };
    agent.create(guide, None).await.unwrap();
    assert_eq!(search("weather", json!({}), false).await.len(), 3);
    let own = json!({"exclude_runtime": true});
    assert_eq!(titles(search("weather", own.clone(), false).await), ["Weather report", "Shopping"]);
    let query = BreadcrumbQuery { selector: serde_json::from_value(own).unwrap(), ..BreadcrumbQuery::default() };
    assert_eq!(agent.list(&query).await.unwrap().len(), 3, "without the guide");
    assert_eq!(search("sunny", json!({}), true).await[0].context.as_ref().unwrap()["text"], "sunny");
    assert!(search("volcano", json!({}), false).await.is_empty());
    let stranger = alone(harness).await;
    let everywhere = Search::of("weather");
    assert!(stranger.search(&everywhere).await.unwrap().items.is_empty());
    assert_eq!(fields(agent.search(&Search { nn: 0, ..everywhere }).await), ["nn"]);
}

pub async fn a_search_names_the_missing_field(harness: &impl Harness) {
    let agent = alone(harness).await;
    assert_eq!(fields(agent.search(&Search::default()).await), ["q"]);
    let by_words = Search { mode: Some(SearchMode::Text), ..Search::default() };
    assert_eq!(fields(agent.search(&by_words).await), ["q"]);
    let by_vector = Search { qvec: Some(vec![1.0, 0.5]), ..Search::default() };
    assert_eq!(fields(agent.search(&by_vector).await), ["qvec"], "the store has no embedder");
    let by_meaning = Search { mode: Some(SearchMode::Vector), ..Search::of("rain") };
    assert_eq!(fields(agent.search(&by_meaning).await), ["mode"]);
    let named = Search { ids: vec![uuid::Uuid::nil()], ..Search::of("rain") };
    assert_eq!(fields(agent.search(&named).await), ["id"]);
    let nowhere = Search { qvec: Some(vec![0.0, 0.0]), ..Search::default() };
    assert_eq!(fields(agent.search(&nowhere).await), ["qvec"]);
}
