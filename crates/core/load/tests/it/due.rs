//! When calls fall due.

use std::time::Duration;

use proptest::prelude::*;
use rcrt_load::Due;

proptest! {
    #[test]
    fn due_times_increase_and_errors_do_not_add_up(
        per_second in 0.001..1_000_000.0_f64,
        number in 0..10_000_000_u64,
    ) {
        let due = Due::at(per_second);
        prop_assert!(due.of(number) <= due.of(number + 1));
        // Floats of some seconds are precise to far below a microsecond, for any number of calls.
        let exact = number as f64 / per_second;
        prop_assert!((due.of(number).as_secs_f64() - exact).abs() <= 1e-9 * exact.max(1.0));
    }

    #[test]
    fn before_counts_the_calls_that_are_due_earlier(
        per_second in 0.001..100_000.0_f64,
        end_us in 0..100_000_000_u64,
    ) {
        let (due, end) = (Due::at(per_second), Duration::from_micros(end_us));
        let count = due.before(end);
        prop_assert!(due.of(count) >= end);
        prop_assert!(count == 0 || due.of(count - 1) < end);
    }
}

#[test]
fn the_first_call_is_due_at_once() {
    assert_eq!(Due::at(0.001).of(0), Duration::ZERO);
    assert_eq!(Due::at(10.0).before(Duration::from_secs(1)), 10);
}
