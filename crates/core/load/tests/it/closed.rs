//! A closed loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rcrt_load::{Pace, Plan, drive};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use crate::targets::{Does, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_the_planned_number_of_callers_work_at_once() {
    const CALLERS: usize = 5;
    let (together, at_work, most) =
        (Arc::new(Barrier::new(CALLERS)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (stop, seen) = (CancellationToken::new(), most.clone());
    let stopping = stop.clone();
    let target = Does(move |number| {
        let (together, at_work, most, stop) = (together.clone(), at_work.clone(), most.clone(), stopping.clone());
        async move {
            most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            if number < CALLERS as u64 {
                // Returns only when all of them are here.
                together.wait().await;
            } else if number > 1000 {
                stop.cancel();
            }
            at_work.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let measured = run(Arc::new(target), Pace::Closed { in_flight: CALLERS }, 3_600_000, &stop).await;
    assert_eq!(seen.load(Ordering::SeqCst), CALLERS as u64);
    assert!(measured.failures.is_empty() && measured.unanswered == 0 && measured.unsent == 0, "{measured:?}");
    assert!(measured.answered() >= 1000, "{measured:?}");
}

#[tokio::test]
async fn each_call_counts_once_as_success_or_failure() {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = sent.clone();
    let target = Does(move |number: u64| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move { if number % 3 == 1 { Err("every third".into()) } else { Ok(()) } }
    });
    let measured = run(Arc::new(target), Pace::Closed { in_flight: 1 }, 20, &CancellationToken::new()).await;
    let sent = sent.load(Ordering::SeqCst);
    assert_eq!(measured.failed(), (sent + 1) / 3);
    assert_eq!(measured.latency.len() + measured.failed(), sent);
    assert!(measured.calls <= measured.latency.len(), "{measured:?}");
    assert!(measured.failures.keys().all(|sentence| sentence == "every third"), "{measured:?}");
}

#[tokio::test]
async fn a_stopped_run_sends_no_more_and_reports_what_it_saw() {
    let (stop, sent) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
    let (stopping, counter) = (stop.clone(), sent.clone());
    let target = Does(move |number| {
        counter.fetch_add(1, Ordering::SeqCst);
        if number == 10 {
            stopping.cancel();
        }
        async { Ok(()) }
    });
    let measured = run(Arc::new(target), Pace::Closed { in_flight: 1 }, 3_600_000, &stop).await;
    assert_eq!(sent.load(Ordering::SeqCst), 11);
    assert!(measured.is_stopped);
    assert!(measured.took < Duration::from_hours(1), "{measured:?}");
    assert!(measured.calls >= 10, "{measured:?}");
}

#[tokio::test]
async fn calls_that_never_finish_do_not_delay_a_stopped_run() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let target = Does(move |number| {
        let stopping = stopping.clone();
        async move {
            if number == 3 {
                stopping.cancel();
            }
            std::future::pending().await
        }
    });
    let measured = run(Arc::new(target), Pace::Closed { in_flight: 4 }, 3_600_000, &stop).await;
    assert_eq!((measured.calls, measured.unanswered), (0, 4));
    assert_eq!(measured.latency.len(), 4);
}

#[tokio::test]
async fn calls_of_the_warm_up_do_not_count() {
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let target = Does(move |number| {
        if number == 5 {
            stopping.cancel();
        }
        async move { if number % 2 == 0 { Ok(()) } else { Err("no".into()) } }
    });
    let plan = Plan {
        pace: Pace::Closed { in_flight: 1 },
        warm_up: Duration::from_hours(1),
        duration: Duration::from_secs(1),
    };
    let measured = drive(Arc::new(target), &plan, &stop).await;
    assert_eq!((measured.calls, measured.missed(), measured.latency.len()), (0, 0, 0));
    assert_eq!((measured.took, measured.per_second()), (Duration::ZERO, 0.0));
}

#[tokio::test]
async fn a_run_that_is_not_stopped_lasts_as_long_as_planned() {
    let target = Does(|_| async { Ok(()) });
    let measured = run(Arc::new(target), Pace::Closed { in_flight: 2 }, 20, &CancellationToken::new()).await;
    assert!(!measured.is_stopped);
    assert_eq!(measured.took, Duration::from_millis(20));
}
