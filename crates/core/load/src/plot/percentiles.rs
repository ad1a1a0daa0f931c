//! Latency by the share of calls that are slower: it shows where the tail begins and how long it
//! is.

use crate::histogram::Histogram;
use crate::plot::{Axis, Lines};

/// How many points there are for each nine.
const PER_NINE: u32 = 8;

/// A picture of some latencies. From left to right, 1 call in 2, in 10, in 100 and so on is slower
/// than the line's height. Each line stops where only its slowest call remains.
pub fn percentiles(title: impl Into<String>, latencies: &[(&str, &Histogram)]) -> Lines {
    let x = Axis::logarithmic("one call in … is slower");
    let mut lines = Lines::new(title, x, Axis::logarithmic("milliseconds"));
    for &(name, latency) in latencies {
        lines = lines.series(name, points(latency));
    }
    lines
}

fn points(latency: &Histogram) -> Vec<(f64, f64)> {
    let most = latency.len() as f64;
    let steps = (most.max(1.0).log10() * f64::from(PER_NINE)).ceil() as u32;
    (0..steps)
        .map(|step| 10f64.powf(f64::from(step) / f64::from(PER_NINE)))
        .chain((most > 0.0).then_some(most))
        .map(|one_in| (one_in, latency.quantile(1.0 - 1.0 / one_in).as_secs_f64() * 1e3))
        .collect()
}
