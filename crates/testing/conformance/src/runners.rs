//! The list of live runners.

use chrono::{DateTime, TimeDelta, Utc};
use rcrt_breadcrumb::{ClaimRequest, EventNumber, RunnerDrain, RunnerReport, RunnerSlots, SlotCount};
use tokio::time::timeout;
use uuid::Uuid;

use crate::harness::{Harness, PATIENCE, alone, assert_not_found, claim_of, fields, request};

/// The report of an idle runner.
pub fn report_of(runner_id: Uuid) -> RunnerReport {
    RunnerReport {
        runner_id,
        lease_ms: 600_000,
        applied: EventNumber(0),
        host: "host".into(),
        working_folder: Some("/work".into()),
        version: "1.2.3".into(),
        started_at: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        slots: slots(0),
        draining: false,
        allowed_private_hosts: vec!["ollama=localhost:11434".into()],
    }
}

fn slots(used: u32) -> RunnerSlots {
    RunnerSlots { worker: SlotCount { used, free: 8 - used }, waiting: SlotCount { used: 0, free: 2000 } }
}

pub async fn live_runners_are_listed_with_their_load(harness: &impl Harness) {
    let agent = alone(harness).await;
    assert!(agent.runners().await.unwrap().is_empty());
    let begun = Utc::now() - TimeDelta::minutes(1);
    let (busy, idle) = (report_of(Uuid::new_v4()), report_of(Uuid::new_v4()));
    let idle = RunnerReport { started_at: busy.started_at + TimeDelta::hours(1), working_folder: None, ..idle };
    for report in [&idle, &busy] {
        agent.report_runner(report).await.unwrap();
    }
    for _ in 0..3 {
        agent.create(request(), None).await.unwrap();
    }
    let claim = ClaimRequest { runner_id: busy.runner_id, ..claim_of(3) };
    let claims = agent.claim(&claim).await.unwrap();
    agent.start(claims[0].lease, 1).await.unwrap();

    let listed = agent.runners().await.unwrap();
    assert_eq!(listed.iter().map(|runner| runner.runner_id).collect::<Vec<_>>(), [busy.runner_id, idle.runner_id]);
    let first = &listed[0];
    assert_eq!((first.host.as_str(), first.version.as_str()), ("host", "1.2.3"));
    assert_eq!((first.working_folder.as_deref(), first.started_at), (Some("/work"), busy.started_at));
    assert_eq!(first.allowed_private_hosts, ["ollama=localhost:11434"]);
    assert_eq!((first.claimed, first.running, first.draining), (2, 1, false));
    assert_eq!((first.slots, first.reported_at > begun), (slots(0), true));
    assert!((1..=600_000).contains(&first.lease_left_ms), "{first:?}");
    assert_eq!((listed[1].working_folder.as_deref(), listed[1].claimed, listed[1].running), (None, 0, 0));

    // Its load follows its reports within moments, and its drain at once.
    let loaded = RunnerReport { slots: slots(3), ..busy.clone() };
    let follows = async {
        while agent.runners().await.unwrap()[0].slots != slots(3) {
            agent.report_runner(&loaded).await.unwrap();
        }
    };
    timeout(PATIENCE, follows).await.expect("the load in time");
    agent.report_runner(&RunnerReport { draining: true, slots: slots(1), ..busy.clone() }).await.unwrap();
    let drained = agent.runners().await.unwrap().remove(0);
    assert_eq!((drained.draining, drained.slots), (true, slots(1)));

    assert!(alone(harness).await.runners().await.unwrap().is_empty(), "those of another tenant");
    agent.report_runner(&RunnerReport { lease_ms: 0, ..busy }).await.unwrap();
    let left = agent.runners().await.unwrap();
    assert_eq!(left.iter().map(|runner| runner.runner_id).collect::<Vec<_>>(), [idle.runner_id]);
}

pub async fn an_invalid_report_of_a_runner_is_refused(harness: &impl Harness) {
    let agent = alone(harness).await;
    let report = RunnerReport {
        lease_ms: 1,
        host: "\0".into(),
        version: "v".repeat(4097),
        started_at: DateTime::from_timestamp(-1, 0).unwrap(),
        slots: RunnerSlots { worker: SlotCount { used: u32::MAX, free: 0 }, ..slots(0) },
        allowed_private_hosts: vec!["localhost".into(), "=localhost".into()],
        ..report_of(Uuid::new_v4())
    };
    assert_eq!(
        fields(agent.report_runner(&report).await),
        ["lease_ms", "host", "version", "slots.worker.used", "allowed_private_hosts[1]", "started_at"]
    );
    assert!(agent.runners().await.unwrap().is_empty());
}

pub async fn a_runner_learns_that_it_should_drain(harness: &impl Harness) {
    let agent = alone(harness).await;
    let (one, other) = (report_of(Uuid::new_v4()), report_of(Uuid::new_v4()));
    for report in [&one, &other] {
        assert!(!agent.report_runner(report).await.unwrap().drain);
    }
    let asked = agent.drain_runner(one.runner_id, RunnerDrain { drain: true }).await.unwrap();
    assert_eq!((asked.runner_id, asked.drain_requested, asked.draining), (one.runner_id, true, false));
    assert!(agent.report_runner(&one).await.unwrap().drain);
    // Its own reports do not end the wish, and it is about no other runner.
    assert!(agent.report_runner(&RunnerReport { draining: true, ..one.clone() }).await.unwrap().drain);
    assert!(!agent.report_runner(&other).await.unwrap().drain);
    let listed = agent.runners().await.unwrap();
    let of = |id| listed.iter().find(|runner| runner.runner_id == id).unwrap();
    assert_eq!((of(one.runner_id).draining, of(one.runner_id).drain_requested), (true, true));
    assert_eq!((of(other.runner_id).draining, of(other.runner_id).drain_requested), (false, false));

    let asked = agent.drain_runner(one.runner_id, RunnerDrain { drain: false }).await.unwrap();
    assert!(!asked.drain_requested);
    assert!(!agent.report_runner(&one).await.unwrap().drain);
    assert_not_found(agent.drain_runner(Uuid::new_v4(), RunnerDrain { drain: true }).await);
    assert_not_found(alone(harness).await.drain_runner(one.runner_id, RunnerDrain { drain: true }).await);
    agent.report_runner(&RunnerReport { lease_ms: 0, ..one.clone() }).await.unwrap();
    assert_not_found(agent.drain_runner(one.runner_id, RunnerDrain { drain: true }).await);
}
