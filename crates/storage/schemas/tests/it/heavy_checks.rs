//! The cost limits of definitions and their checks, and what slow checks must not delay. Checks are
//! blocked by signals, never by time.

use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, StoreError};
use rcrt_conformance::harness::{PATIENCE, fields, noted, object};
use rcrt_conformance::{Busy, Harness};
use serde_json::{Value, json};

use crate::harness::{LayerHarness, definition, of_notes};

/// A context whose check is too slow for a transaction.
fn large(n: i64) -> Value {
    json!({"n": n, "many": vec![0; 100_000]})
}

fn context(value: Value) -> BreadcrumbChanges {
    BreadcrumbChanges { context: Some(object(value)), ..BreadcrumbChanges::default() }
}

fn costly_patterns(count: usize) -> Value {
    let pattern = |n: usize| (format!("p{n}"), json!({"pattern": format!("\\p{{L}}{{20}}{n}")}));
    json!({"properties": (0..count).map(pattern).collect::<serde_json::Map<_, _>>()})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_waits_for_a_check() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    agent.create(of_notes(json!({})), None).await.unwrap();
    let id = agent.create(noted("x", json!({"n": 1}), &[]), None).await.unwrap().id;
    let busy = Busy::of(agent.identity.owner_id).await;

    let changing = harness.here(&agent);
    let change = tokio::spawn(async move { changing.update(id, 1, context(large(2))).await });
    // It has read the record and rolled back the transaction.
    Busy::wait_for(agent.identity.owner_id, 1).await;
    harness.database.no_transaction_is_open().await;
    // It delays neither a change of the same record, nor another tenant's write that needs a check.
    agent.update(id, 1, context(json!({"n": 3}))).await.unwrap();
    let stranger = harness.alone().await;
    stranger.create(of_notes(json!({})), None).await.unwrap();
    stranger.create(noted("x", large(1), &[]), None).await.unwrap();
    assert!(!change.is_finished());
    busy.end().await;
    // It was checked for a version that is no longer the current one.
    assert_eq!(change.await.unwrap(), Err(StoreError::VersionConflict { expected: 1, actual: 2 }));

    let updated = agent.update(id, 2, context(large(4))).await.unwrap();
    assert_eq!((updated.version, &updated.context["n"]), (3, &json!(4)));
    assert_eq!(fields(agent.update(id, 3, context(large(0))).await), ["context.n"]);
    assert_eq!(
        agent.update(id, 2, context(large(0))).await,
        Err(StoreError::VersionConflict { expected: 2, actual: 3 })
    );
    harness.close().await;
}

/// A record of 1 KB for which the validator collected three million errors: 3.4 s and 1.2 GB, in
/// the transaction of the change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_errors_of_a_small_record_are_not_collected_in_a_transaction() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let required: Vec<String> = (0..6_000).map(|n| format!("n{n}")).collect();
    let schema = json!({"properties": {"many": {"items": {"required": required}}}});
    agent.create(of_notes(json!({"schema": schema})), None).await.unwrap();
    let id = agent.create(noted("x", json!({"n": 1}), &[]), None).await.unwrap().id;
    let busy = Busy::of(agent.identity.owner_id).await;
    let changing = harness.here(&agent);
    let change = context(json!({"many": vec![json!({}); 300]}));
    let change = tokio::spawn(async move { changing.update(id, 1, change).await });
    Busy::wait_for(agent.identity.owner_id, 1).await;
    harness.database.no_transaction_is_open().await;
    busy.end().await;
    assert_eq!(fields(change.await.unwrap()), ["context.many[0].n0"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_that_changes_is_compiled_before_its_transaction() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let id = agent.create(of_notes(json!({})), None).await.unwrap().id;
    let busy = Busy::of(agent.identity.owner_id).await;
    let changing = harness.here(&agent);
    let stricter = of_notes(json!({"schema": {"properties": {"n": {"minimum": 10}}}})).context;
    let change = BreadcrumbChanges { context: Some(stricter), ..BreadcrumbChanges::default() };
    let change = tokio::spawn(async move { changing.update(id, 1, change).await });
    Busy::wait_for(agent.identity.owner_id, 1).await;
    harness.database.no_transaction_is_open().await;
    agent.create(noted("x", json!({"n": 1}), &[]), None).await.unwrap();
    assert!(!change.is_finished());
    busy.end().await;
    assert_eq!(change.await.unwrap().unwrap().version, 2);
    assert_eq!(fields(agent.create(noted("x", json!({"n": 1}), &[]), None).await), ["context.n"]);
    harness.close().await;
}

/// 58 KB with 1,500 such patterns took 2.8 GB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patterns_that_need_too_much_memory_are_refused_with_their_field() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let found = fields(agent.create(of_notes(json!({"schema": costly_patterns(1500)})), None).await);
    assert!(found[0].starts_with("context.schema.properties.p"), "{found:?}");
    harness.close().await;
}

/// Each is small enough, but together they are not. A deletion frees memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_definitions_of_a_tenant_share_one_memory_limit() {
    let harness = LayerHarness::start().await;
    let agent = harness.alone().await;
    let of = |n: usize| -> NewBreadcrumb {
        definition(json!({"schema_name": format!("note{n}.v1"), "schema": costly_patterns(2)}))
    };
    let mut made = Vec::new();
    let refused = loop {
        match agent.create(of(made.len()), None).await {
            Ok(created) => made.push(created.id),
            refused => break fields(refused),
        }
        assert!(made.len() < 40, "there is a bound");
    };
    assert_eq!(refused, ["context.schema"]);
    assert!(made.len() > 8, "{}", made.len());
    harness.alone().await.create(of(0), None).await.unwrap();
    agent.delete(made[0], None).await.unwrap();
    // A read of all definitions that began before the deletion holds the deleted one until it ends.
    let freed = async { while agent.create(of(made.len()), None).await.is_err() {} };
    tokio::time::timeout(PATIENCE, freed).await.expect("the deletion frees memory");
    harness.close().await;
}
