//! What a runner reports of itself.

use rcrt_breadcrumb::{CallState, ResponseStatus, RunnerDrain, RunnerInfo, SlotCount};
use rcrt_runner::RunnerOptions;
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, PATIENCE, Running, code, native, options};

/// The fixture's one runner, once it is listed like this.
async fn listed(fixture: &Fixture, passes: impl Fn(&RunnerInfo) -> bool) -> RunnerInfo {
    let found = async {
        loop {
            if let Some(runner) = fixture.person.runners().await.unwrap().pop().filter(|runner| passes(runner)) {
                return runner;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("the runner in time")
}

#[tokio::test]
async fn a_runner_is_listed_with_its_load_until_it_has_drained() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("computes", json!({}))).await;
    let http = json!({"implementation": {"type": "http", "url": "https://api.example.com/"}});
    fixture.create(native("waits", http)).await;
    let (computes, waits) = (fake.waits("computes"), fake.waits("waits"));
    let settings = RunnerOptions {
        host: "here".into(),
        working_folder: Some("/work".into()),
        max_waiting: 100,
        allowed_private: vec!["ollama=localhost:11434".parse().unwrap()],
        drain: PATIENCE,
        ..options()
    };
    let runner_id = settings.runner_id;
    let runner = fixture.start_with(&fake, settings);
    let idle = listed(&fixture, |_| true).await;
    assert_eq!((idle.runner_id, idle.host.as_str()), (runner_id, "here"));
    assert_eq!((idle.version.as_str(), idle.working_folder.as_deref()), (env!("CARGO_PKG_VERSION"), Some("/work")));
    assert_eq!(idle.allowed_private_hosts, ["ollama=localhost:11434"]);
    assert_eq!((idle.claimed, idle.running, idle.draining), (0, 0, false));
    assert_eq!(
        (idle.slots.worker, idle.slots.waiting),
        (SlotCount { used: 0, free: 8 }, SlotCount { used: 0, free: 100 })
    );

    fixture.ask("computes", json!({})).await;
    for _ in 0..2 {
        fixture.ask("waits", json!({})).await;
    }
    let busy = listed(&fixture, |runner| (runner.slots.waiting.used, runner.slots.worker.used) == (2, 1)).await;
    assert_eq!((busy.slots.worker.free, busy.slots.waiting.free), (7, 98));
    listed(&fixture, |runner| (runner.claimed, runner.running) == (0, 3)).await;

    runner.request_stop();
    let draining = listed(&fixture, |runner| runner.draining).await;
    assert_eq!((draining.running, draining.started_at), (3, idle.started_at));
    computes.add_permits(1);
    waits.add_permits(2);
    runner.stop().await;
    assert!(fixture.person.runners().await.unwrap().is_empty());
}

/// Through the queue only, and through local dispatch.
#[tokio::test]
async fn a_runner_that_is_asked_to_drain_leaves_calls_in_the_queue_until_it_may_take_them_again() {
    for is_local in [false, true] {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        fixture.create(code("computes", json!({}))).await;
        let gate = fake.waits("computes");
        let options = options();
        let runner_id = options.runner_id;
        let runner = if is_local {
            fixture.start_with(&fake, options)
        } else {
            Running::start(fixture.runner.clone(), &fake, options)
        };
        listed(&fixture, |_| true).await;
        let running = fixture.ask("computes", json!({})).await;
        fake.until(|progress| progress.begun == 1).await;

        let asked = fixture.person.drain_runner(runner_id, RunnerDrain { drain: true }).await.unwrap();
        assert!(asked.drain_requested);
        listed(&fixture, |runner| runner.draining).await;
        let waiting = fixture.ask("computes", json!({})).await;
        gate.add_permits(1);
        assert_eq!(fixture.answer(running).await.status, ResponseStatus::Success);
        listed(&fixture, |runner| (runner.claimed, runner.running) == (0, 0)).await;
        assert_eq!(fixture.person.call(waiting).await.unwrap().state, CallState::Queued);

        gate.add_permits(1);
        fixture.person.drain_runner(runner_id, RunnerDrain { drain: false }).await.unwrap();
        assert_eq!(fixture.answer(waiting).await.status, ResponseStatus::Success);
        listed(&fixture, |runner| !runner.draining).await;
        runner.stop().await;
    }
}
