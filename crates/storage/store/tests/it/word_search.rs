//! Search by words: which records are found, what a score depends on, and what a search of many
//! records looks at.

use rcrt_breadcrumb::{BreadcrumbQuery, NewBreadcrumb, Search, SearchMode, Selector, ToolRequest, Visibility};
use rcrt_conformance::Agent;
use rcrt_conformance::harness::{Harness, note, noted};
use serde_json::json;

use crate::harness::StoreHarness;

async fn write(agent: &Agent, titles: &[&str]) {
    for title in titles {
        agent.create(note(title), None).await.unwrap();
    }
}

fn by_words(q: &str) -> Search {
    Search { mode: Some(SearchMode::Text), ..Search::of(q) }
}

async fn found(agent: &Agent, search: Search) -> Vec<(String, f64)> {
    let items = agent.search(&search).await.unwrap().items;
    items.into_iter().map(|item| (item.title, item.score.unwrap())).collect()
}

async fn titles(agent: &Agent, q: &str) -> Vec<String> {
    found(agent, by_words(q)).await.into_iter().map(|(title, _)| title).collect()
}

#[tokio::test]
async fn a_rare_word_counts_most_and_no_word_is_required() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    write(&agent, &["Error E4711", "Error E4712", "Error E4713", "A mean error", "Nothing"]).await;
    assert_eq!(titles(&agent, "what does error E4713 mean?").await[0], "Error E4713");
    // Each of the four has a word, "Nothing" none.
    assert_eq!(titles(&agent, "what does error E4713 mean?").await.len(), 4);
    assert!(titles(&agent, "volcano").await.is_empty());
    assert!(titles(&agent, "what does the").await.is_empty(), "words that do not count");
    harness.close().await;
}

#[tokio::test]
async fn codes_with_hyphens_and_underscores_are_found_whole() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    write(
        &agent,
        &["Quota 17, limit 71", "See E_QUOTA_71", "See E_QUOTA_17", "Invoice INV-88213", "Invoice INV-88231"],
    )
    .await;
    assert_eq!(titles(&agent, "what is E_QUOTA_17").await[0], "See E_QUOTA_17");
    for question in ["is INV-88213 paid", "is invoice 88213 paid"] {
        assert_eq!(titles(&agent, question).await[0], "Invoice INV-88213", "{question}");
    }
    harness.close().await;
}

#[tokio::test]
async fn a_call_is_found_by_its_input_and_not_by_its_trace() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut request = ToolRequest::record("erupt", json!({"place": "volcano", "number": 88213}), None, None);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    request.context.insert("traceparent".into(), format!("00-{trace}-00f067aa0ba902b7-01").into());
    agent.create(request, None).await.unwrap();
    for question in ["volcano", "88213", "erupt"] {
        assert_eq!(titles(&agent, question).await, ["Call erupt"], "{question}");
    }
    assert!(titles(&agent, trace).await.is_empty());
    harness.close().await;
}

#[tokio::test]
async fn a_tag_with_an_id_is_looked_up_as_a_tag() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let id = "01a21aaf-613f-751e-9579-21f0f48a5d76";
    let tags = [format!("request:{id}"), "request:order-17".to_owned()];
    agent.create(NewBreadcrumb { tags: tags.to_vec(), ..note("Answer") }, None).await.unwrap();
    assert!(titles(&agent, id).await.is_empty() && titles(&agent, "01a21aaf").await.is_empty());
    assert_eq!(titles(&agent, "order-17").await, ["Answer"]);
    for tag in tags {
        assert_eq!(agent.list(&BreadcrumbQuery::tagged(&tag)).await.unwrap().len(), 1, "{tag}");
    }
    harness.close().await;
}

#[tokio::test]
async fn phrases_exclusions_and_alternatives_are_required() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    write(&agent, &["A connection was reset", "The reset of a connection", "A connection reset", "A late fee"]).await;
    let sorted = async |q: &str| {
        let mut found = titles(&agent, q).await;
        found.sort();
        found
    };
    assert_eq!(sorted("\"connection reset\"").await, ["A connection reset"]);
    // The other words rank and are not required.
    assert_eq!(sorted("why \"connection reset\" volcano").await, ["A connection reset"]);
    assert_eq!(
        sorted("connection -\"connection reset\"").await,
        ["A connection was reset", "The reset of a connection"]
    );
    assert_eq!(sorted("reset fee -connection").await, ["A late fee"]);
    assert_eq!(sorted("connection \"connection reset\" OR \"late fee\"").await, ["A connection reset", "A late fee"]);
    assert_eq!(sorted("-connection").await, ["A late fee"]);
    harness.close().await;
}

#[tokio::test]
async fn a_score_does_not_depend_on_records_that_the_agent_cannot_see() {
    let harness = StoreHarness::start().await;
    let tenant = harness.tenant().await;
    let (agent, other) =
        (harness.agent_with(tenant, &[rcrt_breadcrumb::Role::Emitter]).await, harness.agent(tenant).await);
    write(&agent, &["walrus and seal", "walrus", "seal"]).await;
    // As many records for both agents, so that only the words differ.
    for _ in 0..20 {
        let hidden = NewBreadcrumb { visibility: Visibility::Private, ..note("something else") };
        other.create(hidden, None).await.unwrap();
    }
    let before = found(&agent, by_words("walrus seal")).await;
    let everything = other.list(&rcrt_breadcrumb::BreadcrumbQuery { limit: 100, ..Default::default() }).await.unwrap();
    for record in everything.iter().filter(|record| record.title == "something else") {
        let changes = rcrt_breadcrumb::BreadcrumbChanges { title: Some("walrus".into()), ..Default::default() };
        other.update(record.id, record.version, changes).await.unwrap();
    }
    assert_eq!(found(&agent, by_words("walrus seal")).await, before);
    assert!((found(&other, by_words("walrus seal")).await[0].1 - before[0].1).abs() > f64::EPSILON);
    harness.close().await;
}

#[tokio::test]
async fn a_common_word_only_fills_what_rarer_ones_leave() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    agent.create(noted("The oldest timeout", json!({}), &["tagged"]), None).await.unwrap();
    write(&agent, &["E4713 once", "E4713 with a timeout"]).await;
    let many = sqlx::query(
        "INSERT INTO breadcrumbs (owner_id, id, title, context, tags, visibility, sensitivity, version, checksum,
            size_bytes, created_at, updated_at, words)
         SELECT $1, gen_random_uuid(), 'Timeout ' || n, '{}', '{}', 'team', 'low', 1, '', 2,
            now() + n * interval '1 s', now() + n * interval '1 s', to_tsvector('english', 'Timeout x' || n)
         FROM generate_series(1, 12000) n",
    );
    let mut admin = harness.admin().await;
    many.bind(agent.identity.owner_id).execute(&mut admin).await.unwrap();
    let mut both = titles(&agent, "timeout E4713").await;
    assert!(both[2..].iter().all(|title| title.to_lowercase().contains("timeout")), "{both:?}");
    both.truncate(2);
    both.sort();
    assert_eq!(both, ["E4713 once", "E4713 with a timeout"]);
    // Alone it finds the newest of those that match equally well, ...
    assert_eq!(titles(&agent, "timeout").await.len(), 10);
    // ... and all of those with a tag, whatever their age is.
    let tagged = Selector { all_tags: vec!["tagged".into()], ..Selector::default() };
    let tagged = found(&agent, Search { selector: tagged, ..by_words("timeout E4713") }).await;
    assert_eq!(tagged.len(), 1);
    harness.close().await;
}
