//! What is measured at each point of an axis, as rows and as pictures.

use std::sync::Arc;
use std::time::Duration;

use rcrt_load::plot::{Axis, Lines};
use rcrt_load::report::number;
use rcrt_load::{Row, Target};

use crate::run::{Run, millis};

/// One point on an axis.
pub struct Point {
    /// The position on the axis.
    pub x: f64,
    /// Responses per second in a closed loop.
    pub per_second: f64,
    /// Milliseconds: the median, and the 99th percentile.
    pub p50: f64,
    pub p99: f64,
    /// Calls that failed or got no response.
    pub missed: u64,
}

/// One axis, with what was measured along it.
pub struct Shape {
    /// The start of the pictures' names, which begins with the section's.
    pub name: &'static str,
    /// What is counted along it, such as `calls in flight`.
    pub along: &'static str,
    /// The load whose latency is shown.
    pub latency_of: &'static str,
    pub points: Vec<Point>,
}

impl Point {
    /// Measures the rate of `in_flight` callers, and the latency of calls that come one at a time.
    pub async fn of(run: &Run, x: f64, target: &Arc<dyn Target>, in_flight: usize) -> Self {
        let loaded = run.closed(target.clone(), in_flight, Duration::from_secs(1), run.seconds(5)).await;
        let at_low_load = run.at_low_load(target.clone(), run.seconds(8)).await;
        Self {
            x,
            per_second: loaded.per_second(),
            p50: millis(at_low_load.quantile(0.5)),
            p99: millis(at_low_load.quantile(0.99)),
            missed: loaded.missed() + at_low_load.missed(),
        }
    }
}

impl Shape {
    /// Puts rows and pictures into the run. Ratios are to the first point.
    pub fn put(&self, run: &mut Run) -> anyhow::Result<()> {
        let section = format!("the shape of cost: {}", self.along);
        let Some(first) = self.points.first() else { return Ok(()) };
        let base = format!("at {}", number(first.x));
        for point in &self.points {
            let at = format!("{} {}", number(point.x), self.along);
            let with_failures = |row: Row| match point.missed {
                0 => row,
                missed => row.note(format!("{missed} calls failed or got no response")),
            };
            let rate = Row::new(&section, format!("{at}: rate"), point.per_second, "calls/s");
            run.push(with_failures(rate.ratio(first.per_second, &base)));
            for (name, value, of_first) in [("p50", point.p50, first.p50), ("p99", point.p99, first.p99)] {
                let name = format!("{at}: latency {}, {name}", self.latency_of);
                run.push(Row::new(&section, name, value, "ms").ratio(of_first, &base));
            }
        }
        // A logarithmic axis has no zero, so 0 is drawn at 1.
        let at = |value: fn(&Point) -> f64| self.points.iter().map(|point| (point.x.max(1.0), value(point))).collect();
        let x = || Axis::logarithmic(self.along);
        let rate = Lines::new(format!("Rate over {}", self.along), x(), Axis::linear("calls per second"))
            .series("calls per second", at(|point| point.per_second));
        let latency = Lines::new(format!("Latency {} over {}", self.latency_of, self.along), x(), Axis::linear("ms"))
            .series("p50", at(|point| point.p50))
            .series("p99", at(|point| point.p99));
        run.pictures.push((format!("{}-rate", self.name), rate.svg()?));
        run.pictures.push((format!("{}-latency", self.name), latency.svg()?));
        Ok(())
    }
}
