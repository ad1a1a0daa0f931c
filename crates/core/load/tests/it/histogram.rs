//! Durations have a precision of a thousandth.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use rcrt_load::Histogram;

/// Whether a reported duration is within a thousandth of the true one.
fn is_close(found: Duration, truth: Duration) -> bool {
    found.abs_diff(truth).as_nanos() <= truth.as_nanos() / 1000 + 1
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_sorted_durations(
        mut nanos in vec(1..10_000_000_000_u64, 1..400),
        quantile in 0.0..=1.0_f64,
    ) {
        let histogram: Histogram = nanos.iter().copied().map(Duration::from_nanos).collect();
        nanos.sort_unstable();
        let rank = ((quantile * nanos.len() as f64).ceil() as usize).clamp(1, nanos.len());
        // If the product is a whole number except for rounding, the neighbour is right too.
        let near = [rank - 1, rank, rank + 1].into_iter().filter(|rank| (1..=nanos.len()).contains(rank));
        let found = histogram.quantile(quantile);
        prop_assert!(
            near.map(|rank| Duration::from_nanos(nanos[rank - 1])).any(|truth| is_close(found, truth)),
            "{found:?} at {quantile} of {nanos:?}"
        );
        prop_assert_eq!(histogram.len(), nanos.len() as u64);
        prop_assert!(is_close(histogram.max(), Duration::from_nanos(nanos[nanos.len() - 1])));
        prop_assert!(is_close(histogram.min(), Duration::from_nanos(nanos[0])));
    }

    #[test]
    fn quantiles_never_fall(nanos in vec(0..u64::MAX, 0..100), a in 0.0..=1.0_f64, b in 0.0..=1.0_f64) {
        let histogram: Histogram = nanos.into_iter().map(Duration::from_nanos).collect();
        prop_assert!(histogram.quantile(a.min(b)) <= histogram.quantile(a.max(b)));
        prop_assert!(histogram.quantile(1.0) <= histogram.max());
    }

    #[test]
    fn adding_equals_one_histogram_of_all(
        one in vec(1..1_000_000_000_u64, 0..100),
        other in vec(1..1_000_000_000_u64, 0..100),
    ) {
        let of = |nanos: &[u64]| nanos.iter().copied().map(Duration::from_nanos).collect::<Histogram>();
        let mut sum = of(&one);
        sum.add(&of(&other));
        let all = of(&[one, other].concat());
        prop_assert_eq!(serde_json::to_value(&sum).unwrap(), serde_json::to_value(&all).unwrap());
    }
}

#[test]
fn an_empty_histogram_is_zero_everywhere() {
    let empty = Histogram::new();
    assert!(empty.is_empty());
    assert_eq!((empty.quantile(0.5), empty.max(), empty.mean()), Default::default());
}

#[test]
fn json_has_milliseconds() {
    let histogram: Histogram = (1..=100).map(Duration::from_millis).collect();
    let json = serde_json::to_value(&histogram).unwrap();
    assert_eq!(json["count"], 100);
    let p99 = json["p99_ms"].as_f64().unwrap();
    assert!((98.9..=99.1).contains(&p99), "{json}");
}
