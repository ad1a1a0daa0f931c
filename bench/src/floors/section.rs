//! The baselines that belong to no single target.

use std::sync::Arc;
use std::time::Duration;

use rcrt_load::Row;

use super::Echo;
use crate::run::{Run, micros};

const SECTION: &str = "floors";
/// About the size of a request of the bench.
const BODY_BYTES: usize = 200;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let echo = Arc::new(Echo::start("x".repeat(BODY_BYTES)).await?);
    let warm_up = Duration::from_millis(500);
    let alone = run.closed(echo.clone(), 1, warm_up, run.seconds(4)).await;
    run.push(Row::new(SECTION, "HTTP echo (axum), one after the other: p50", micros(alone.quantile(0.5)), "µs"));
    let at_low_load = run.at_low_load(echo.clone(), run.seconds(4)).await;
    run.push(Row::new(SECTION, "HTTP echo (axum), at low load: p50", micros(at_low_load.quantile(0.5)), "µs"));
    let loaded = run.closed(echo, 32, warm_up, run.seconds(5)).await;
    run.push(
        Row::new(SECTION, "HTTP echo (axum), 32 in flight", loaded.per_second(), "calls/s")
            .note("client and server on this machine; the same client as for RCRT's calls"),
    );
    Ok(())
}
