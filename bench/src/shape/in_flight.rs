//! An increasing number of callers at once.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Isolation;
use rcrt_load::Row;
use serde_json::json;

use super::point::{Point, Shape};
use crate::instance::{Answers, ToolCalls, adding};
use crate::run::{Run, millis};

const SECTION: &str = "the shape of cost: calls in flight";
/// The rate of the most callers, of the highest rate of all: flat, but for what a measurement
/// varies.
const SHARE: f64 = 0.9;
const CALLERS: [usize; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000];

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("in-flight"), &[]).await?;
    let answers = Answers::follow(&instance).await?;
    let tool = adding("bench-reuse", Isolation::Tool).add(&instance.client()).await?;
    let calls = Arc::new(ToolCalls { answers, tool, input: |number| json!({"a": number, "b": 2}) });
    run.closed(calls.clone(), 32, Duration::ZERO, run.seconds(4)).await;
    let mut shape =
        Shape { name: "in-flight", along: "calls in flight", latency_of: "under that load", points: Vec::new() };
    for callers in CALLERS {
        let measured = run.closed(calls.clone(), callers, Duration::from_secs(1), run.seconds(5)).await;
        shape.points.push(Point {
            x: callers as f64,
            per_second: measured.per_second(),
            p50: millis(measured.quantile(0.5)),
            p99: millis(measured.quantile(0.99)),
            missed: measured.missed(),
        });
    }
    drop(calls);
    instance.stop().await?;
    shape.put(run)?;
    let highest = shape.points.iter().map(|point| point.per_second).fold(0.0, f64::max);
    let Some(last) = shape.points.last() else { return Ok(()) };
    let name = format!("rate with {} in flight, of the highest rate", last.x);
    let row = Row::new(SECTION, name, last.per_second, "calls/s").ratio(highest, "the highest rate");
    run.push(row.target(format!("≥ {SHARE} × the highest"), last.missed == 0 && last.per_second >= SHARE * highest));
    Ok(())
}
