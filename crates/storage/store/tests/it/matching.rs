//! Selectors that take long to match, and what waits for them. The tests block matches with
//! signals, never with time.

use futures::{FutureExt, StreamExt};
use rcrt_breadcrumb::{Breadcrumbs, EventKind, NewBreadcrumb, Selector, SubscribeOptions, SubscriptionItem};
use rcrt_conformance::harness::object;
use rcrt_conformance::{Busy, Harness};
use serde_json::{Value, json};

use crate::harness::StoreHarness;

fn selector() -> Selector {
    let condition = json!({"path": "$.a", "op": "contains_any", "value": [0, 1, 2]});
    serde_json::from_value(json!({"context_match": [condition]})).unwrap()
}

fn many(last: f64) -> NewBreadcrumb {
    let mut items = vec![0.5; 100_000];
    items.push(last);
    NewBreadcrumb { title: "Many".into(), context: object(json!({"a": items})), ..NewBreadcrumb::default() }
}

async fn follow(agent: &dyn Breadcrumbs, by_selectors: bool) -> rcrt_breadcrumb::SubscriptionStream {
    let options = SubscribeOptions { by_selectors, ..SubscribeOptions::default() };
    agent.subscribe(options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_stream_delays_no_other_stream() {
    let harness = StoreHarness::start().await;
    let (busy_agent, other) = (harness.alone().await, harness.alone().await);
    busy_agent.create_selector(selector()).await.unwrap();
    let tenant = busy_agent.identity.owner_id;
    let mut held = follow(&*busy_agent.store, true).await;
    let mut other_events = follow(&*other.store, false).await;
    let busy = Busy::of(tenant).await;
    let id = busy_agent.create(many(1.0), None).await.unwrap().id;
    let next = tokio::spawn(async move {
        let next = held.next().await;
        (next, held)
    });
    Busy::wait_for(tenant, 1).await;
    // The agent's own writes, and another tenant's events.
    busy_agent.create(many(0.5), None).await.unwrap();
    let theirs = other.create(many(1.0), None).await.unwrap().id;
    let Some(Ok(SubscriptionItem::Event(event))) = other_events.next().await else { panic!("an event") };
    assert_eq!((event.breadcrumb_id, event.kind), (theirs, EventKind::Created));
    assert!(!next.is_finished());
    busy.end().await;
    let (next, mut held) = next.await.unwrap();
    let Some(Ok(SubscriptionItem::Event(event))) = next else { panic!("an event") };
    assert_eq!(event.breadcrumb_id, id);
    let Some(Ok(SubscriptionItem::Skipped(_))) = held.next().await else { panic!("it does not match") };
    assert!(other_events.next().now_or_never().is_none());
    harness.close().await;
}

/// The work per event is bounded when a stream is opened.
#[tokio::test]
async fn filters_are_bounded_in_number_and_size() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let refused = async |filters: Vec<Selector>| {
        let options = SubscribeOptions { filters, ..SubscribeOptions::default() };
        match agent.subscribe(options).await {
            Err(rcrt_breadcrumb::StoreError::Invalid(found)) => found.0[0].field.clone(),
            _ => panic!("is refused"),
        }
    };
    assert_eq!(refused(vec![selector(); 21]).await, "filters");
    let mut large = selector();
    large.context_match[0].value = Value::from(vec![0; 30_000]);
    assert_eq!(refused(vec![selector(), large]).await, "filters[1].context_match[0].value");
    harness.close().await;
}
