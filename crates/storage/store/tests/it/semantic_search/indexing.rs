use std::sync::atomic::Ordering;
use std::time::Duration;

use rcrt_breadcrumb::{
    BreadcrumbChanges, NewBreadcrumb, Search, SearchMode, Selector, Sensitivity, StoreError, schema_names,
};
use rcrt_conformance::harness::object;
use rcrt_store::{EmbeddingOptions, EmbeddingState};
use serde_json::json;
use uuid::Uuid;

use super::fake::Fake;
use super::{World, note, options, titles};

fn near(q: &str) -> Search {
    Search { mode: Some(SearchMode::Vector), ..Search::of(q) }
}

#[tokio::test]
async fn a_record_is_found_by_its_vector_after_it_was_written() {
    let fake = Fake::new("letters", 26);
    let world = World::with(options(fake.clone())).await;
    for title in ["aaab", "zzzy", "mmmn"] {
        world.write(title).await;
    }
    world.until_embedded(3).await;
    let found = world.search(near("zy")).await;
    assert_eq!(titles(&found)[0], "zzzy");
    assert_eq!((found.mode, found.fallback.as_deref()), (SearchMode::Vector, None));
    assert!(found.items.is_sorted_by(|one, next| one.score >= next.score));
    let by_vector = Search { qvec: Some(fake.vector("mn").iter().map(|x| x * 1e30).collect()), ..Search::default() };
    assert_eq!(titles(&world.search(by_vector).await)[0], "mmmn");
    // The default is hybrid: full text finds nothing, the vector does.
    let found = world.search(Search::of("baaa")).await;
    assert_eq!((found.mode, titles(&found)[0]), (SearchMode::Hybrid, "aaab"));
    let short = Search { qvec: Some(vec![1.0; 3]), ..Search::default() };
    let Err(StoreError::Invalid(violations)) = world.agent.search(&short).await else { panic!("3 of 26 numbers") };
    assert!(violations.to_string().contains("has 3 numbers; vectors of the model letters have 26"), "{violations}");
}

#[tokio::test]
async fn named_records_are_compared_however_far_they_are() {
    let world = World::with(options(Fake::new("letters", 26))).await;
    let mut far = [world.write("aaab").await, world.write("bbbc").await];
    far.sort_unstable();
    for title in ["zyzy", "zzyy", "zzzy"] {
        world.write(title).await;
    }
    world.until_embedded(5).await;
    let named = |ids: &[Uuid]| Search { ids: ids.to_vec(), ..near("zy") };
    let found = world.search(named(&far)).await;
    let mut ids: Vec<Uuid> = found.items.iter().map(|item| item.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, far);
    assert!(found.items.iter().all(|item| item.score.is_some_and(|score| score < 0.5)));
    assert!(world.search(named(&[Uuid::new_v4()])).await.items.is_empty());
}

#[tokio::test]
async fn only_changed_text_is_embedded_again() {
    let fake = Fake::new("letters", 26);
    let world = World::with(options(fake.clone())).await;
    let id = world.write("first").await;
    world.until_embedded(1).await;
    let before = fake.texts.lock().unwrap().len();
    // A change that leaves the text as it was.
    let same = BreadcrumbChanges { context: Some(object(json!({"n": 1}))), ..BreadcrumbChanges::default() };
    world.agent.update(id, 1, same).await.unwrap();
    world.write("second").await;
    world.until_embedded(2).await;
    world.until("SELECT count(*) FROM embedding_queue", 0).await;
    assert_eq!(fake.texts.lock().unwrap()[before..], ["second"]);
    let renamed = BreadcrumbChanges { title: Some("third".into()), ..BreadcrumbChanges::default() };
    let checksum = "SELECT count(*) FROM breadcrumb_embeddings WHERE checksum = sha256('third')";
    world.agent.update(id, 2, renamed).await.unwrap();
    world.until(checksum, 1).await;
    assert_eq!(fake.texts.lock().unwrap().last().unwrap(), "third");
}

#[tokio::test]
async fn deleted_and_secret_records_lose_their_vectors() {
    let world = World::with(options(Fake::new("letters", 26))).await;
    let (gone, hidden) = (world.write("gone").await, world.write("hidden").await);
    world.write("stays").await;
    world.until_embedded(3).await;
    world.agent.delete(gone, None).await.unwrap();
    let secret = BreadcrumbChanges { sensitivity: Some(Sensitivity::Secret), ..BreadcrumbChanges::default() };
    world.agent.update(hidden, 1, secret).await.unwrap();
    // Immediately, before the follower has run.
    assert_eq!(titles(&world.search(near("hidden gone")).await), ["stays"]);
    world.until_embedded(1).await;
}

#[tokio::test]
async fn runtime_records_and_secret_records_are_not_embedded() {
    let fake = Fake::new("letters", 26);
    let world = World::with(options(fake.clone())).await;
    let request = NewBreadcrumb {
        schema_name: Some(schema_names::TOOL_REQUEST.into()),
        context: object(json!({"tool": "echo", "input": {}})),
        ..note("request")
    };
    world.agent.create(request, None).await.unwrap();
    world.agent.create(NewBreadcrumb { sensitivity: Sensitivity::Secret, ..note("secret") }, None).await.unwrap();
    world.agent.create(NewBreadcrumb { sensitivity: Sensitivity::Pii, ..note("personal") }, None).await.unwrap();
    world.until_embedded(1).await;
    world.until("SELECT count(*) FROM embedding_queue", 0).await;
    assert_eq!(*fake.texts.lock().unwrap(), ["personal"]);
}

#[tokio::test]
async fn personal_data_does_not_leave_the_machine() {
    let remote = Fake::remote();
    let world = World::with(options(remote.clone())).await;
    let open = world.write("open").await;
    world.agent.create(NewBreadcrumb { sensitivity: Sensitivity::Pii, ..note("personal") }, None).await.unwrap();
    world.write("also open").await;
    world.until_embedded(2).await;
    world.until("SELECT count(*) FROM embedding_queue", 0).await;
    let pii = BreadcrumbChanges {
        sensitivity: Some(Sensitivity::Pii),
        title: Some("now personal".into()),
        ..BreadcrumbChanges::default()
    };
    world.agent.update(open, 1, pii).await.unwrap();
    world.until_embedded(1).await;
    let mut texts = remote.texts.lock().unwrap().clone();
    texts.sort_unstable();
    assert_eq!(texts, ["also open", "open"]);
}

#[tokio::test]
async fn a_new_model_embeds_all_records_and_deletes_the_old_vectors() {
    let world = World::with(options(Fake::new("old", 26))).await;
    for title in ["aaab", "zzzy", "mmmn", "ffff", "gggg"] {
        world.write(title).await;
    }
    world.until_embedded(5).await;
    let new = Fake::new("new", 7);
    let world = world.again(options(new.clone())).await;
    // Named models, because the current model is at first still the old one.
    world.until("SELECT count(*) FROM breadcrumb_embeddings e JOIN embedding_models m ON m.id = e.model WHERE m.name = 'new'", 5).await;
    world.until("SELECT count(*) FROM breadcrumb_embeddings e JOIN embedding_models m ON m.id = e.model WHERE m.name = 'old'", 0).await;
    world.until("SELECT count(*) FROM embedding_backfills WHERE NOT is_done", 0).await;
    assert_eq!(titles(&world.search(near("zy")).await)[0], "zzzy");
    let EmbeddingState::Ready { model, dimensions, .. } = world.store.embedding_state() else { panic!("not ready") };
    assert_eq!((model.as_str(), dimensions), ("new", 7));
    // The same model again has nothing to do.
    let again = Fake::new("new", 7);
    let world = world.again(options(again.clone())).await;
    world.write("hhhh").await;
    world.until_embedded(6).await;
    assert_eq!(*again.texts.lock().unwrap(), ["hhhh"]);
}

#[tokio::test]
async fn an_embedder_that_never_responds_blocks_no_one() {
    let fake = Fake::new("letters", 26);
    fake.is_stuck.store(true, Ordering::SeqCst);
    let timeout = Duration::from_millis(20);
    let world = World::with(EmbeddingOptions { timeout, ..options(fake.clone()) }).await;
    let mut changes = world.store.embedding_changes().unwrap();
    changes.wait_for(|state| matches!(state, EmbeddingState::Ready { .. })).await.unwrap();
    for title in ["a storm of letters", "a calm"] {
        world.write(title).await;
    }
    let found = world.search(Search::of("storm")).await;
    assert_eq!((found.mode, titles(&found)), (SearchMode::Text, vec!["a storm of letters"]));
    assert_eq!(found.fallback.as_deref(), Some("the embedder took too long"));
    let error = world.agent.search(&near("storm")).await.unwrap_err();
    assert!(matches!(&error, StoreError::Busy(text) if text.contains("took too long")), "{error:?}");
    world.store.close().await;
}

#[tokio::test]
async fn a_filter_returns_only_matching_records() {
    let world = World::with(options(Fake::new("letters", 26))).await;
    for (title, tags, schema, n) in
        [("aaab", ["x", "y"], "one.v1", 1), ("aaac", ["x", "z"], "one.v1", 2), ("aaad", ["w", "z"], "two.v1", 2)]
    {
        let record = NewBreadcrumb {
            tags: tags.map(str::to_owned).into(),
            schema_name: Some(schema.into()),
            context: object(json!({"n": n})),
            ..note(title)
        };
        world.agent.create(record, None).await.unwrap();
    }
    world.until_embedded(3).await;
    for mode in [SearchMode::Vector, SearchMode::Hybrid] {
        for (selector, wanted) in [
            (json!({"all_tags": ["x"]}), vec!["aaab", "aaac"]),
            (json!({"all_tags": ["x", "z"]}), vec!["aaac"]),
            (json!({"any_tags": ["y", "w"]}), vec!["aaab", "aaad"]),
            (json!({"schema_name": "two.v1"}), vec!["aaad"]),
            (json!({"context_match": [{"path": "$.n", "op": "eq", "value": 2}]}), vec!["aaac", "aaad"]),
        ] {
            let selector: Selector = serde_json::from_value(selector).unwrap();
            let found = world.search(Search { mode: Some(mode), selector, ..Search::of("aaa") }).await;
            let mut found = titles(&found);
            found.sort_unstable();
            assert_eq!(found, wanted);
        }
    }
}
