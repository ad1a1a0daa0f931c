//! An open loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rcrt_load::{Pace, Plan, drive};
use tokio_util::sync::CancellationToken;

use crate::targets::{Does, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_due_call_is_sent_once() {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = sent.clone();
    let target = Does(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let pace = Pace::Open { per_second: 1000.0, in_flight: 1000 };
    let measured = run(Arc::new(target), pace, 100, &CancellationToken::new()).await;
    // However slow the machine is: all of them were due, and each found a free slot.
    assert_eq!(sent.load(Ordering::SeqCst), 100);
    assert_eq!(measured.latency.len(), 100);
    assert_eq!((measured.unsent, measured.unanswered, measured.failed()), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_a_stalled_system_delays_count_with_their_waiting_time() {
    const WINDOW_MS: u64 = 100;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    // No call finishes, so no slot becomes free. Some time after the window the run gives up.
    let target = Does(move |number| {
        let stopping = stopping.clone();
        async move {
            if number == 0 {
                tokio::time::sleep(Duration::from_millis(WINDOW_MS)).await;
                stopping.cancel();
            }
            std::future::pending().await
        }
    });
    let pace = Pace::Open { per_second: 500.0, in_flight: 3 };
    let measured = run(Arc::new(target), pace, WINDOW_MS, &stop).await;
    assert_eq!((measured.calls, measured.unsent + measured.unanswered), (0, 50), "{measured:?}");
    assert!((1..=3).contains(&measured.unanswered), "{measured:?}");
    assert_eq!(measured.latency.len(), 50);
    // The fourth call was due after 6 ms, and had waited for the rest of the window at least.
    assert!(measured.quantile(46.0 / 50.0) >= Duration::from_millis(90), "{measured:?}");
    assert!(!measured.is_stopped, "the window was over");
}

#[tokio::test]
async fn a_stop_takes_effect_before_the_next_call_is_due() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let target = Does(move |_| {
        stopping.cancel();
        async { Ok(()) }
    });
    // The second call is due in half an hour.
    let plan = Plan {
        pace: Pace::Open { per_second: 1.0 / 1800.0, in_flight: 1 },
        warm_up: Duration::ZERO,
        duration: Duration::from_hours(1),
    };
    let measured = drive(Arc::new(target), &plan, &stop).await;
    assert!(measured.is_stopped);
    assert_eq!((measured.latency.len(), measured.unsent), (1, 0));
}
