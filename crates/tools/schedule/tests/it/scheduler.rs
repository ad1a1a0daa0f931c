//! One or several schedulers when times come, pass, or are changed by others.

use std::sync::Arc;

use chrono::TimeDelta;
use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, Profile, schema_names};
use rcrt_schedule::{Status, name_tag};
use rcrt_test_tenant::golden;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::clock::moment;
use crate::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn fire_writes_a_record_with_its_details() {
    let fixture = Fixture::at("2026-03-27T12:00:00Z").await;
    fixture.schedule("standup", "0 9 * * MON-FRI", json!({"timezone": "Europe/Berlin"})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.clock.set("2026-03-30T07:00:05Z");
    watch.fired("2026-03-30T07:00:00Z").await;
    running.stop().await;

    let record = fixture.records(schema_names::SCHEDULE_FIRED).await.remove(0);
    let id = fixture.record("standup").await.id;
    assert_eq!(
        record.tags,
        [
            "schedule-fired",
            "profile:scheduled",
            "schedule:standup",
            &rcrt_schedule::fire_tag(id, moment("2026-03-30T07:00:00Z"))
        ]
    );
    let shown = serde_json::to_string_pretty(&record.context).unwrap().replace(&id.to_string(), "<schedule>");
    golden(env!("CARGO_MANIFEST_DIR"), "fired.json", &shown);
    assert!(record.ttl.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn fire_with_a_tool_is_a_request_under_the_creators_profiles() {
    let fixture = Fixture::at("2026-03-27T12:00:00Z").await;
    let input = json!({
        "name": "rates", "cron": "0 */6 * * *", "description": "Keep the rates fresh.",
        "tool": "web_fetch", "input": {"url": "https://example.com/rates.json"}
    });
    let mut call = fixture.call("schedule_task", input);
    call.profiles.add(Profile::Subagent);
    call.request.workspace = Some("workspace:finance".into());
    call.request.session = Some("s1".into());
    fixture.run(call).await.unwrap();
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.clock.set("2026-03-27T18:00:00Z");
    watch.fired("2026-03-27T18:00:00Z").await;
    running.stop().await;

    let record = fixture.records(schema_names::TOOL_REQUEST).await.remove(0);
    let id = fixture.record("rates").await.id;
    let shown = json!({"tags": record.tags, "context": record.context});
    let shown = serde_json::to_string_pretty(&shown).unwrap().replace(&id.to_string(), "<schedule>");
    golden(env!("CARGO_MANIFEST_DIR"), "request.json", &shown);
    assert_eq!(fixture.store().call(record.id).await.unwrap().tool, "web_fetch");
    assert!(fixture.fired().await.is_empty(), "a request instead of a record");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_schedulers_fire_each_time_once() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("often", "*/5 * * * *", json!({})).await;
    fixture.schedule("call", "*/10 * * * *", json!({"tool": "echo"})).await;
    let mut watch = fixture.watch().await;
    let running: Vec<_> = (0..5).map(|_| fixture.scheduler()).collect();
    let mut expected = Vec::new();
    for step in 1..=24 {
        fixture.clock.forward(TimeDelta::minutes(5));
        let at = moment("2026-03-01T00:00:00Z") + TimeDelta::minutes(5 * step);
        expected.push(at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
        watch.until(|schedule| schedule.name == "often" && schedule.state.fires == step as u64).await;
        if step % 2 == 0 {
            let fires = step as u64 / 2;
            fixture.watched_fires(&mut watch, "call", fires).await;
        }
    }
    for one in running {
        one.stop().await;
    }
    assert_eq!(fixture.fired().await, expected);
    let requests = fixture.records(schema_names::TOOL_REQUEST).await;
    let mut times: Vec<&Value> = requests.iter().map(|request| &request.context["schedule"]["scheduled_for"]).collect();
    times.dedup();
    assert_eq!((times.len(), requests.len()), (12, 12));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_schedules_are_noticed_by_events() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    // The scheduler waits for nothing yet. It may read the first of these, and learns of the second
    // by an event.
    for name in ["first", "second"] {
        fixture.schedule(name, "*/5 * * * *", json!({})).await;
        fixture.clock.forward(TimeDelta::minutes(5));
        watch.until(|schedule| schedule.name == name && schedule.state.fires == 1).await;
    }
    running.stop().await;
    assert_eq!(fixture.fired().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn hand_written_record_is_followed() {
    let fixture = Fixture::at("2026-03-01T00:03:00Z").await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    let record = NewBreadcrumb {
        title: "By hand".into(),
        context: json!({"name": "by hand", "cron": "*/5 * * * *", "mine": 7}).as_object().unwrap().clone(),
        tags: vec!["schedule".into(), name_tag("by hand")],
        schema_name: Some(schema_names::SCHEDULE.into()),
        ..NewBreadcrumb::default()
    };
    fixture.store().create(record, None).await.unwrap();
    watch.until(|schedule| schedule.state.next_fire == Some(moment("2026-03-01T00:05:00Z"))).await;
    fixture.clock.set("2026-03-01T00:05:00Z");
    watch.fires(1).await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T00:05:00Z"]);
    assert_eq!(fixture.record("by hand").await.context["mine"], 7, "fields of others stay");
}

/// The store adds the author's profile to the record's tags, and it applies to what a runner fires.
#[tokio::test(flavor = "multi_thread")]
async fn hand_written_record_fires_under_its_authors_profile() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    let record = NewBreadcrumb {
        title: "By hand".into(),
        context: json!({"name": "by hand", "cron": "0 12 * * *", "tool": "echo"}).as_object().unwrap().clone(),
        tags: vec![name_tag("by hand"), "profile:subagent".into()],
        schema_name: Some(schema_names::SCHEDULE.into()),
        ..NewBreadcrumb::default()
    };
    fixture.store().create(record, None).await.unwrap();
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    watch.until(|schedule| schedule.state.next_fire.is_some()).await;
    fixture.clock.set("2026-03-01T12:00:00Z");
    watch.fires(1).await;
    running.stop().await;
    let tags = fixture.records(schema_names::TOOL_REQUEST).await.remove(0).tags;
    assert!(tags.contains(&"profile:subagent".into()) && tags.contains(&"profile:scheduled".into()), "{tags:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_times_make_one_fire_that_counts_them() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("hourly", "0 * * * *", json!({})).await;
    fixture.clock.set("2026-03-01T05:30:00Z");
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    let schedule = watch.fired("2026-03-01T05:00:00Z").await;
    running.stop().await;

    let fired = fixture.records(schema_names::SCHEDULE_FIRED).await;
    assert_eq!(fired.len(), 1);
    let field = |key: &str| fired[0].context[key].clone();
    assert_eq!((field("catch_up"), field("missed")), (json!(true), json!(4)));
    assert_eq!(field("missed_since"), "2026-03-01T01:00:00Z");
    assert_eq!((schedule.state.fires, schedule.state.missed), (1, 4));
    assert_eq!(schedule.state.next_fire, Some(moment("2026-03-01T06:00:00Z")));
}

#[tokio::test(flavor = "multi_thread")]
async fn regular_fire_reports_missed_times() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("skips", "0 * * * *", json!({"missed": "skip"})).await;
    fixture.clock.set("2026-03-01T05:00:30Z");
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    watch.fired("2026-03-01T05:00:00Z").await;
    running.stop().await;
    let fired = fixture.records(schema_names::SCHEDULE_FIRED).await;
    assert_eq!((&fired[0].context["catch_up"], &fired[0].context["missed"]), (&json!(false), &json!(4)));
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_times_can_be_skipped() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("skips", "0 * * * *", json!({"missed": "skip"})).await;
    fixture.clock.set("2026-03-01T05:30:00Z");
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    let schedule = watch.until(|schedule| schedule.state.missed == 5).await;
    assert_eq!(schedule.state.next_fire, Some(moment("2026-03-01T06:00:00Z")));
    fixture.clock.set("2026-03-01T06:00:00Z");
    watch.fired("2026-03-01T06:00:00Z").await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T06:00:00Z"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn count_of_missed_times_is_bounded() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("often", "*/10 * * * * *", json!({})).await;
    fixture.clock.set("2036-03-01T00:00:05Z");
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    watch.fired("2036-03-01T00:00:00Z").await;
    running.stop().await;
    let fired = fixture.records(schema_names::SCHEDULE_FIRED).await;
    assert_eq!((&fired[0].context["missed"], &fired[0].context["missed_more"]), (&json!(1000), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn run_once_task_ends_with_its_fire() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("once", "30 14 * * *", json!({"run_once": true})).await;
    let mut watch = fixture.watch().await;
    let running: Vec<_> = (0..3).map(|_| fixture.scheduler()).collect();
    fixture.clock.set("2026-03-01T14:30:00Z");
    let schedule = watch.until(|schedule| schedule.status == Status::Done).await;
    fixture.clock.set("2026-03-05T00:00:00Z");
    for one in running {
        one.stop().await;
    }
    assert_eq!(fixture.fired().await, ["2026-03-01T14:30:00Z"]);
    assert_eq!((schedule.state.fires, schedule.state.next_fire), (1, None));
    assert!(fixture.record("once").await.ttl.is_some(), "it is not kept for ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_expression_applies_from_the_change() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("moved", "0 12 * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.clock.set("2026-03-01T10:00:00Z");
    fixture.change("moved", |context| context["cron"] = "0 9,15 * * *".into()).await;
    let schedule = watch.until(|schedule| schedule.state.next_fire == Some(moment("2026-03-01T15:00:00Z"))).await;
    assert_eq!(schedule.state.missed, 0, "nine o'clock was never awaited");
    fixture.clock.set("2026-03-01T15:00:00Z");
    watch.fires(1).await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T15:00:00Z"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_expression_is_ignored_until_it_is_fixed() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("broken", "0 12 * * *", json!({})).await;
    fixture.schedule("other", "*/30 * * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.change("broken", |context| context["cron"] = "* * * * * *".into()).await;
    fixture.clock.set("2026-03-01T13:00:00Z");
    watch.until(|schedule| schedule.name == "other" && schedule.state.fires == 1).await;
    let listed = fixture.ask("list_scheduled_tasks", json!({"name": "broken"})).await.unwrap();
    assert_eq!(
        listed["tasks"][0]["problem"],
        "cron: fires up to every 1 s; the shortest interval allowed is 10 s, which the operator sets with \
         --min-schedule-interval"
    );
    fixture.change("broken", |context| context["cron"] = "0 14 * * *".into()).await;
    watch.until(|schedule| schedule.state.next_fire == Some(moment("2026-03-01T14:00:00Z"))).await;
    fixture.clock.set("2026-03-01T14:00:00Z");
    watch.until(|schedule| schedule.name == "broken" && schedule.state.fires == 1).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_schedule_stops_firing() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("gone", "0 12 * * *", json!({})).await;
    fixture.schedule("stays", "0 12 * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    let gone = fixture.record("gone").await.id;
    fixture.store().delete(gone, None).await.unwrap();
    fixture.clock.set("2026-03-01T12:00:00Z");
    watch.fires(1).await;
    running.stop().await;
    let fired = fixture.records(schema_names::SCHEDULE_FIRED).await;
    assert_eq!(fired.iter().map(|record| &record.context["name"]).collect::<Vec<_>>(), ["stays"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_task_stops_firing_and_frees_its_name() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("again", "0 12 * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    let cancelled = fixture.ask("cancel_scheduled_task", json!({"name": "again"})).await.unwrap();
    assert_eq!(cancelled["status"], "cancelled");
    fixture.clock.set("2026-03-01T13:00:00Z");
    fixture.schedule("again", "0 14 * * *", json!({})).await;
    fixture.clock.set("2026-03-01T14:00:00Z");
    watch.fires(1).await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T14:00:00Z"]);
    let record = fixture.record("again").await;
    assert_eq!(
        (record.ttl, &record.context["state"]["fires"]),
        (None, &json!(1)),
        "it is active again and starts from zero"
    );
}

/// As the dashboard pauses and resumes it: by its record.
#[tokio::test(flavor = "multi_thread")]
async fn paused_task_does_not_fire_and_continues_from_its_resumption() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("hourly", "0 * * * *", json!({})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.clock.set("2026-03-01T01:00:00Z");
    watch.fired("2026-03-01T01:00:00Z").await;
    let set = |status: &'static str| {
        move |context: &mut serde_json::Map<String, Value>| {
            context["status"] = status.into();
            context["state"]["basis"] = Value::Null;
            context["state"]["next_fire"] = Value::Null;
        }
    };
    fixture.change("hourly", set("paused")).await;
    // Its name is taken, and it is listed.
    let listed = fixture.ask("list_scheduled_tasks", json!({})).await.unwrap();
    assert_eq!(listed["tasks"][0]["status"], "paused");
    fixture.clock.set("2026-03-01T05:30:00Z");
    fixture.change("hourly", set("active")).await;
    let next = moment("2026-03-01T06:00:00Z");
    watch.until(|schedule| schedule.state.next_fire == Some(next)).await;
    fixture.clock.set("2026-03-01T06:00:00Z");
    watch.fired("2026-03-01T06:00:00Z").await;
    running.stop().await;
    assert_eq!(fixture.fired().await, ["2026-03-01T01:00:00Z", "2026-03-01T06:00:00Z"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_fire_is_reported_and_the_next_is_tried() {
    let fixture = Fixture::at("2026-03-01T00:00:00Z").await;
    fixture.schedule("bad", "0 * * * *", json!({"tool": "echo"})).await;
    fixture.change("bad", |context| context["tool"] = "".into()).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    fixture.clock.set("2026-03-01T01:00:00Z");
    let schedule = watch.fired("2026-03-01T01:00:00Z").await;
    assert!(schedule.state.error.is_some_and(|error| error.contains("context.tool")));
    assert_eq!(schedule.state.fires, 0);
    fixture.change("bad", |context| context["tool"] = "echo".into()).await;
    fixture.clock.set("2026-03-01T02:00:00Z");
    let schedule = watch.fired("2026-03-01T02:00:00Z").await;
    running.stop().await;
    assert_eq!((schedule.state.error, schedule.state.fires), (None, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn fires_continue_across_a_clock_change() {
    let fixture = Fixture::at("2026-03-28T12:00:00Z").await;
    fixture.schedule("night", "30 2 * * *", json!({"timezone": "Europe/Berlin"})).await;
    let (mut watch, running) = (fixture.watch().await, fixture.scheduler());
    for time in ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"] {
        fixture.clock.set(time);
        watch.fired(time).await;
    }
    running.stop().await;
    let records = fixture.records(schema_names::SCHEDULE_FIRED).await;
    let times: Vec<&Value> = records.iter().map(|record| &record.context["local_time"]).collect();
    assert_eq!(times, ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00", "2026-03-31T02:30:00+02:00"]);
}

impl Fixture {
    /// Changes the task's record by hand, despite concurrent changes.
    async fn change(&self, name: &str, change: impl Fn(&mut serde_json::Map<String, Value>)) {
        loop {
            let record = self.record(name).await;
            let mut context = record.context;
            change(&mut context);
            let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
            match self.store().update(record.id, record.version, changes).await {
                Err(rcrt_breadcrumb::StoreError::VersionConflict { .. }) => {}
                written => return drop(written.unwrap()),
            }
        }
    }

    async fn watched_fires(&self, _watch: &mut crate::fixture::Watch, name: &str, fires: u64) {
        let store: Arc<dyn rcrt_breadcrumb::Breadcrumbs> = self.store();
        let id: Uuid = self.record(name).await.id;
        while store.get(id).await.unwrap().context["state"]["fires"] != fires {
            tokio::task::yield_now().await;
        }
    }
}
