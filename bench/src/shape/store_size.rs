//! Stores of increasing size. Each point has its own instance, which is filled while it is stopped.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Isolation;
use rcrt_load::Target;
use serde_json::json;

use super::point::{Point, Shape};
use crate::instance::{Answers, Filling, QUIET, ToolCalls, adding, fill};
use crate::run::Run;

const RECORDS: [u64; 5] = [0, 1_000, 10_000, 100_000, 1_000_000];
const TOOLS: [u64; 4] = [0, 100, 1_000, 10_000];
/// The last point of each takes longer than all the others together.
const LEFT_OUT_WHEN_QUICK: usize = 2;
const IN_FLIGHT: usize = 32;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    records(run).await?;
    tools(run).await
}

async fn records(run: &mut Run) -> anyhow::Result<()> {
    let shape = Shape {
        name: "store-size-records",
        along: "records in the store",
        latency_of: "at low load",
        points: Vec::new(),
    };
    let fillings = RECORDS.map(|records| (records, Filling { records, tools: 0 }));
    Box::pin(measure(run, shape, &fillings)).await
}

async fn tools(run: &mut Run) -> anyhow::Result<()> {
    let shape = Shape { name: "store-size-tools", along: "more tools", latency_of: "at low load", points: Vec::new() };
    let fillings = TOOLS.map(|tools| (tools, Filling { records: 0, tools }));
    Box::pin(measure(run, shape, &fillings)).await
}

async fn measure(run: &mut Run, mut shape: Shape, fillings: &[(u64, Filling)]) -> anyhow::Result<()> {
    let left_out = if run.is_quick { LEFT_OUT_WHEN_QUICK } else { 0 };
    for &(count, filling) in &fillings[..fillings.len() - left_out] {
        let data = run.folder(&format!("{}-{count}", shape.name));
        run.instance(&data, QUIET).await?.stop().await?;
        if count > 0 {
            fill(&data, filling).await?;
        }
        let instance = run.instance(&data, QUIET).await?;
        let answers = Answers::follow(&instance).await?;
        // When this tool is offered, all older ones have been read and validated, so that does not
        // disturb the measurement.
        let tool = adding("bench-reuse", Isolation::Tool).add(&instance.client()).await?;
        run.rest(&instance).await?;
        let calls = Arc::new(ToolCalls { answers, tool, input: |number| json!({"a": number, "b": 2}) });
        run.closed(calls.clone(), IN_FLIGHT, Duration::ZERO, run.seconds(4)).await;
        let target: Arc<dyn Target> = calls;
        shape.points.push(Point::of(run, count as f64, &target, IN_FLIGHT).await);
        instance.stop().await?;
        tokio::fs::remove_dir_all(&data).await?;
    }
    shape.put(run)
}
