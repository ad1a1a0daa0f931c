//! Schedulers that die during a fire: before and after each of its three writes.

use std::sync::atomic::Ordering;

use chrono::TimeDelta;
use rcrt_breadcrumb::{NewBreadcrumb, schema_names};
use rcrt_schedule::{Status, fire_tag};
use rcrt_test_tenant::{FailingStore, Stop};
use serde_json::json;

use crate::clock::moment;
use crate::fixture::Fixture;

const POINTS: [Stop; 6] =
    [Stop::Before(0), Stop::After(0), Stop::Before(1), Stop::After(1), Stop::Before(2), Stop::After(2)];
const NOON: &str = "2026-03-01T12:00:00Z";

/// A fixture with one task that came due, and a scheduler that died at this point.
async fn stopped_at(stop: Stop, more: serde_json::Value) -> Fixture {
    let fixture = Fixture::at("2026-03-01T11:00:00Z").await;
    fixture.schedule("noon", "0 12 * * *", more).await;
    let store = FailingStore::stopping(fixture.store(), stop);
    let stopping = fixture.scheduler_on(store.clone());
    fixture.clock.set(NOON);
    store.stopped().await;
    stopping.kill().await;
    fixture
}

/// Runs another scheduler until the next day's noon has fired too. Then its work on the first fire
/// is done.
async fn works_again(fixture: &Fixture) {
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    let is_done = |state: &rcrt_schedule::State| state.fires == 1 && state.firing.is_none();
    while !is_done(&rcrt_schedule::Schedule::read(&fixture.record("noon").await.context).unwrap().state) {
        // It waits by its own clock before it finishes another's fire.
        fixture.clock.forward(TimeDelta::seconds(1));
        tokio::task::yield_now().await;
    }
    fixture.clock.set("2026-03-02T12:00:00Z");
    watch.fired("2026-03-02T12:00:00Z").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn next_scheduler_finishes_the_fire_once() {
    for stop in POINTS {
        let fixture = Box::pin(stopped_at(stop, json!({}))).await;
        works_again(&fixture).await;
        assert_eq!(fixture.fired().await, [NOON, "2026-03-02T12:00:00Z"], "{stop:?}");
        assert_eq!(fixture.record("noon").await.context["state"]["fires"], 2, "{stop:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn next_scheduler_finishes_the_call_once() {
    for stop in POINTS {
        let fixture = Box::pin(stopped_at(stop, json!({"tool": "echo", "input": {"text": "hello"}}))).await;
        works_again(&fixture).await;
        let requests = fixture.records(schema_names::TOOL_REQUEST).await;
        let times: Vec<_> = requests.iter().map(|request| &request.context["schedule"]["scheduled_for"]).collect();
        assert_eq!(times, [NOON, "2026-03-02T12:00:00Z"], "{stop:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn surviving_schedulers_finish_the_fire_once() {
    for stop in POINTS {
        let fixture = Fixture::at("2026-03-01T11:00:00Z").await;
        fixture.schedule("noon", "0 12 * * *", json!({"run_once": true})).await;
        let store = FailingStore::stopping(fixture.store(), stop);
        let stopping = fixture.scheduler_on(store.clone());
        let others: Vec<_> = (0..3).map(|_| fixture.scheduler()).collect();
        fixture.clock.set(NOON);
        // If another scheduler was faster, this one does not reach its end.
        while fixture.record("noon").await.context["status"] != "done" {
            fixture.clock.forward(TimeDelta::seconds(1));
            tokio::task::yield_now().await;
        }
        stopping.kill().await;
        for other in others {
            other.stop().await;
        }
        assert_eq!(fixture.fired().await.len(), 1, "{stop:?}");
        assert_eq!(fixture.record("noon").await.context["state"]["fires"], 1, "{stop:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn old_unfinished_fire_is_found_and_not_repeated() {
    let fixture = Box::pin(stopped_at(Stop::After(0), json!({}))).await;
    // It was written, but its key is no longer remembered.
    let id = fixture.record("noon").await.id;
    let fired = NewBreadcrumb {
        title: "fired".into(),
        context: json!({"scheduled_for": NOON}).as_object().unwrap().clone(),
        tags: vec![fire_tag(id, moment(NOON))],
        schema_name: Some(schema_names::SCHEDULE_FIRED.into()),
        ..NewBreadcrumb::default()
    };
    fixture.store().create(fired, None).await.unwrap();
    fixture.clock.set("2026-03-04T11:00:00Z");
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    while !fixture.record("noon").await.context["state"]["firing"].is_null() {
        fixture.clock.forward(TimeDelta::seconds(1));
        tokio::task::yield_now().await;
    }
    watch.until(|schedule| schedule.state.next_fire == Some(moment("2026-03-04T12:00:00Z"))).await;
    running.stop().await;
    assert_eq!(fixture.fired().await, [NOON, "2026-03-03T12:00:00Z"], "the second is the catch-up of what was missed");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_cancelled_while_its_scheduler_is_dead_does_not_fire() {
    let fixture = Box::pin(stopped_at(Stop::After(0), json!({}))).await;
    let cancelled = fixture.ask("cancel_scheduled_task", json!({"name": "noon"})).await.unwrap();
    assert!(cancelled["note"].as_str().unwrap().contains("had already started"), "{cancelled}");
    fixture.schedule("other", "30 12 * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.clock.set("2026-03-01T12:30:00Z");
    watch.until(|schedule| schedule.name == "other" && schedule.state.fires == 1).await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T12:30:00Z"]);
}

/// The scheduler is held after it marks a fire as done and before its next write. The task is
/// cancelled meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn task_cancelled_during_its_fire_stays_cancelled() {
    let fixture = Box::pin(stopped_at(Stop::After(1), json!({"run_once": true}))).await;
    fixture.ask("cancel_scheduled_task", json!({"name": "noon"})).await.unwrap();
    let running = fixture.scheduler();
    fixture.clock.set("2026-03-02T13:00:00Z");
    running.stop().await;
    let schedule = rcrt_schedule::Schedule::read(&fixture.record("noon").await.context).unwrap();
    assert_eq!((schedule.status, schedule.state.firing), (Status::Cancelled, None));
    assert_eq!(fixture.fired().await, [NOON]);
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_store_is_retried() {
    let fixture = Fixture::at("2026-03-01T11:00:00Z").await;
    fixture.schedule("noon", "0 12 * * *", json!({"run_once": true})).await;
    let store = FailingStore::new(fixture.store());
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler_on(store.clone()));
    // Writes that fail, and writes that succeed without a response.
    store.writes_fail.store(5, Ordering::SeqCst);
    fixture.clock.set(NOON);
    let time_passes = async {
        loop {
            fixture.clock.forward(TimeDelta::seconds(1));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = watch.until(|schedule| schedule.status == Status::Done) => {}
        () = time_passes => {}
    }
    running.stop().await;
    assert_eq!(store.writes_fail.load(Ordering::SeqCst), 0);
    assert_eq!(fixture.fired().await.len(), 1);
}

/// Regression: schedules were not followed until a list of all of them succeeded.
#[tokio::test(flavor = "multi_thread")]
async fn known_schedules_fire_while_lists_fail() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("listed", "0 12 * * *", json!({})).await;
    let store = FailingStore::new(fixture.store());
    store.lists_fail.store(true, Ordering::SeqCst);
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler_on(store.clone()));
    store.list_failed.notified().await;
    // This one is known through events.
    fixture.schedule("heard", "0 6 * * *", json!({})).await;
    fixture.clock.set("2026-03-01T06:00:00Z");
    watch.fired("2026-03-01T06:00:00Z").await;
    store.lists_fail.store(false, Ordering::SeqCst);
    fixture.clock.set(NOON);
    watch.fired(NOON).await;
    // A later failed list removes no known schedule.
    store.lists_fail.store(true, Ordering::SeqCst);
    fixture.clock.set("2026-03-02T06:00:00Z");
    watch.fired("2026-03-02T06:00:00Z").await;
    fixture.clock.set("2026-03-02T12:00:00Z");
    watch.fired("2026-03-02T12:00:00Z").await;
    running.stop().await;
    assert_eq!(fixture.fired().await.len(), 4);
}
