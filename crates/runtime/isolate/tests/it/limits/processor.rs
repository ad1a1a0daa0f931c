//! The CPU share and the CPU time budget, with control groups and without.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::{CgroupUse, Invocation};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::watched::{PASSES_THE_GATE, Watched};
use crate::fixture::{Gate, NoHostOps, PATIENCE_MS, block_on, function, invocation, run_in};

const BOTH: [CgroupUse; 2] = [CgroupUse::WhereTheyAre, CgroupUse::None];

fn limited(body: &str, cpu_percent: u64, cpu_ms: u64) -> Invocation {
    let mut call = invocation(&function(body), Value::Null);
    call.limits.timeout_ms = PATIENCE_MS;
    call.limits.cpu_percent = cpu_percent;
    call.limits.cpu_ms = Some(cpu_ms);
    call
}

#[test]
fn a_busy_call_gets_its_share_and_no_more() {
    for cgroups in BOTH {
        block_on(async {
            let watched = Watched::start(cgroups, |_| {}).await;
            let gate = Arc::new(Gate::default());
            let body =
                format!("{PASSES_THE_GATE} for (const end = Date.now() + 3000; Date.now() < end;); return 'done'");
            let call = watched.sandbox.run(limited(&body, 20, 100_000), gate.clone(), CancellationToken::new());
            let begun = async {
                gate.reached.notified().await;
                let begun = (watched.cpu_time(), Instant::now());
                gate.open.notify_one();
                begun
            };
            let (outcome, (before, begun)) = tokio::join!(call, begun);
            let (used, passed) = (watched.cpu_time().saturating_sub(before), begun.elapsed());
            assert_eq!(outcome.result.unwrap(), "done");
            let share = used.as_secs_f64() / passed.as_secs_f64() * 100.0;
            assert!((2.0..32.0).contains(&share), "{cgroups:?}: {share} percent: {used:?} of {passed:?}");
            watched.sandbox.close().await;
        });
    }
}

#[test]
fn a_call_above_its_cpu_budget_is_ended_and_others_continue() {
    let busy_loops = [
        "for (;;);",
        "for (;;) await null;",
        // It cannot be terminated from outside, so its process is killed.
        "/(a+)+b/.exec('a'.repeat(60))",
        "while (true) { try { for (;;); } finally { continue; } }",
    ];
    for cgroups in BOTH {
        block_on(async {
            let watched = Watched::start(cgroups, |options| options.max_workers = 2).await;
            let mut other = invocation(&function(&format!("{PASSES_THE_GATE} return 'still here'")), Value::Null);
            other.owner_id = Uuid::from_u128(2);
            other.limits.timeout_ms = PATIENCE_MS;
            let burn = async || {
                for body in busy_loops {
                    let failure = run_in(&watched.sandbox, limited(body, 100, 250)).await.result.expect_err(body);
                    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{cgroups:?} {body}: {failure}");
                    assert!(failure.message.contains("250 ms of processor time"), "{failure}");
                    assert!(!failure.is_retryable);
                    assert_eq!(failure.details.unwrap(), json!({ "limit": "cpu_ms", "allowed": 250 }));
                }
            };
            assert_eq!(watched.at_the_gate(other, burn).await.0.unwrap(), "still here");
            watched.sandbox.close().await;
        });
    }
}

#[test]
fn a_throttled_call_reaches_its_budget_too() {
    for cgroups in BOTH {
        block_on(async {
            let watched = Watched::start(cgroups, |_| {}).await;
            let failure = run_in(&watched.sandbox, limited("for (;;);", 25, 150)).await.result.unwrap_err();
            assert_eq!(failure.details.unwrap()["limit"], "cpu_ms", "{cgroups:?}");
            // The next call of the same process is not throttled.
            let next = run_in(&watched.sandbox, limited("return 'next'", 100, 10_000)).await;
            assert_eq!(next.result.unwrap(), "next");
            watched.sandbox.close().await;
        });
    }
}

#[test]
fn waiting_costs_no_budget() {
    for cgroups in BOTH {
        block_on(async {
            let watched = Watched::start(cgroups, |_| {}).await;
            let body = "await new Promise((r) => setTimeout(r, 1200)); return 'rested'";
            let outcome = run_in(&watched.sandbox, limited(body, 100, 1000)).await;
            assert_eq!(outcome.result.unwrap(), "rested", "{cgroups:?}");
            watched.sandbox.close().await;
        });
    }
}

#[test]
fn a_budget_is_per_call_and_not_per_process() {
    block_on(async {
        let watched = Watched::start(CgroupUse::None, |_| {}).await;
        let half = "for (const end = Date.now() + 300; Date.now() < end;); return 1";
        for _ in 0..4 {
            assert_eq!(run_in(&watched.sandbox, limited(half, 100, 800)).await.result.unwrap(), 1);
        }
        watched.sandbox.close().await;
    });
}

#[test]
fn a_throttled_process_can_be_cancelled_and_killed() {
    for cgroups in BOTH {
        for body in ["for (;;);", "/(a+)+b/.exec('a'.repeat(60))"] {
            block_on(async {
                let watched = Watched::start(cgroups, |_| {}).await;
                let gate = Arc::new(Gate::default());
                let cancel = CancellationToken::new();
                let call = limited(&format!("{PASSES_THE_GATE} {body}"), 1, 100_000);
                let run = watched.sandbox.run(call, gate.clone(), cancel.clone());
                let soon = async {
                    gate.reached.notified().await;
                    let before = watched.cpu_time();
                    gate.open.notify_one();
                    // It uses the CPU, so its share is used up.
                    while watched.cpu_time() == before {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    cancel.cancel();
                };
                let (outcome, ()) = tokio::join!(run, soon);
                assert_eq!(outcome.result.unwrap_err().code, ErrorCode::Cancelled, "{cgroups:?} {body}");
                let next = watched.sandbox.run(
                    invocation(&function("return 'next'"), Value::Null),
                    Arc::new(NoHostOps),
                    CancellationToken::new(),
                );
                assert_eq!(next.await.result.unwrap(), "next");
                watched.sandbox.close().await;
                assert_eq!(watched.processes(), Vec::<u32>::new());
            });
        }
    }
}
