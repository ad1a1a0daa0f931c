//! Which calls count, and with which latency: the arithmetic of every run, with invented times.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use rcrt_load::Record;

const WARM_UP: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(10);

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The outcome of a call.
#[derive(Debug, Clone)]
enum Fate {
    Answered { after_ms: u64 },
    Failed { after_ms: u64 },
    NeverAnswered,
    NeverSent,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => (1..30_000_u64).prop_map(|after_ms| Fate::Answered { after_ms }),
        1 => (1..30_000_u64).prop_map(|after_ms| Fate::Failed { after_ms }),
        1 => Just(Fate::NeverAnswered),
        1 => Just(Fate::NeverSent),
    ]
}

proptest! {
    #[test]
    fn every_call_of_the_window_counts_once_whatever_its_outcome(
        calls in vec((0..14_000_u64, fate()), 0..200),
        stop_ms in proptest::option::of(0..14_000_u64),
    ) {
        let mut record = Record::new(WARM_UP, WINDOW);
        let given_up = ms(60_000);
        let end = stop_ms.map_or(WARM_UP + WINDOW, |stop| ms(stop).min(WARM_UP + WINDOW));
        if let Some(stop) = stop_ms {
            record.stop(ms(stop));
        }
        let window = WARM_UP..end.max(WARM_UP);
        let (mut due_in_window, mut answered_in_window) = (0, 0);
        let mut expected = [0_u64; 3];
        for (number, (due, fate)) in calls.iter().enumerate() {
            let due = ms(*due);
            let is_in = window.contains(&due);
            due_in_window += u64::from(is_in);
            match fate {
                Fate::Answered { after_ms } => {
                    record.sent(number as u64, due);
                    record.ended(number as u64, due + ms(*after_ms), Ok(()));
                    answered_in_window += u64::from(window.contains(&(due + ms(*after_ms))));
                }
                Fate::Failed { after_ms } => {
                    record.sent(number as u64, due);
                    record.ended(number as u64, due + ms(*after_ms), Err("no".into()));
                    expected[0] += u64::from(is_in);
                }
                Fate::NeverAnswered => {
                    record.sent(number as u64, due);
                    expected[1] += u64::from(is_in);
                }
                Fate::NeverSent => {
                    record.unsent(due);
                    expected[2] += u64::from(is_in);
                }
            }
        }
        let measured = record.close(given_up);
        prop_assert_eq!([measured.failed(), measured.unanswered, measured.unsent], expected);
        prop_assert_eq!(measured.latency.len() + measured.failed(), due_in_window);
        prop_assert_eq!(measured.calls, answered_in_window);
        prop_assert_eq!(measured.took, end.saturating_sub(WARM_UP));
    }

    /// The system does one call at a time and stalls for a while. The generator has so few slots
    /// that it cannot send meanwhile. It must report what a generator with enough slots would have
    /// seen.
    #[test]
    fn a_stall_shows_fully_with_any_number_of_slots(
        stall_at in 2_500..6_000_u64,
        stall_for in 500..4_000_u64,
        slots in 1..20_usize,
    ) {
        const EVERY: u64 = 10;
        const SERVICE: u64 = 2;
        let mut record = Record::new(WARM_UP, WINDOW);
        let mut free_at = 0;
        let mut ends: Vec<u64> = Vec::new();
        let mut truth = Vec::new();
        for number in 0..(12_000 / EVERY) {
            let due = number * EVERY;
            // A slot is free when the call that many before this one has finished.
            let slot_free = ends.len().checked_sub(slots).map_or(0, |index| ends[index]);
            let mut begin = due.max(slot_free).max(free_at);
            if (stall_at..stall_at + stall_for).contains(&begin) {
                begin = stall_at + stall_for;
            }
            free_at = begin + SERVICE;
            ends.push(free_at);
            record.sent(number, ms(due));
            record.ended(number, ms(free_at), Ok(()));
            if due >= 2_000 {
                truth.push(free_at - due);
            }
        }
        truth.sort_unstable();
        let measured = record.close(ms(60_000));
        for quantile in [0.5, 0.9, 0.99, 1.0] {
            let rank = ((quantile * truth.len() as f64).ceil() as usize).max(1);
            let found = measured.quantile(quantile).as_secs_f64() * 1e3;
            let exact = truth[rank - 1] as f64;
            prop_assert!((found - exact).abs() <= exact * 0.002 + 0.001, "{found} at {quantile}, not {exact}");
        }
        // Timing from when a call is sent would show only one slow call for each slot.
        let slow = truth.iter().filter(|&&took| took > stall_for / 2).count();
        prop_assert!(slow as u64 >= stall_for / 2 / EVERY, "{slow}");
    }
}

#[test]
fn too_many_different_failures_are_counted_together() {
    let mut record = Record::new(Duration::ZERO, WINDOW);
    for number in 0..1000 {
        record.sent(number, ms(number));
        record.ended(number, ms(number + 1), Err(format!("request {number} failed")));
    }
    let failures: BTreeMap<String, u64> = record.close(WINDOW).failures;
    assert!(failures.len() < 50, "{failures:?}");
    assert_eq!(failures.values().sum::<u64>(), 1000);
}

#[test]
fn a_result_of_an_unknown_call_changes_nothing() {
    let mut record = Record::new(Duration::ZERO, WINDOW);
    record.ended(7, ms(1), Ok(()));
    record.sent(8, ms(1));
    record.ended(8, ms(3), Ok(()));
    record.ended(8, ms(4), Ok(()));
    let measured = record.close(WINDOW);
    assert_eq!((measured.calls, measured.latency.len()), (1, 1));
}
