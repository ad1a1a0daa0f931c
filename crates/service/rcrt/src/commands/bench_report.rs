//! The result of `rcrt bench`, for people and for programs.

use rcrt_load::plot::{PlotError, percentiles};
use rcrt_load::{Measured, Report, Row, Table};
use serde::Serialize;
use serde_json::Value;

use crate::output::{Output, Style, one_line};

/// The displayed quantiles.
const QUANTILES: [(&str, f64); 5] =
    [("latency p50", 0.5), ("latency p90", 0.9), ("latency p99", 0.99), ("latency p99.9", 0.999), ("latency max", 1.0)];
/// Characters of a failure's message on one line.
const SENTENCE: usize = 120;

/// The report, and the measurements that it was made from.
#[derive(Debug, Serialize)]
pub struct Findings {
    #[serde(flatten)]
    report: Report,
    plan: Value,
    measured: Measured,
}

impl Findings {
    pub fn new(command: String, server_version: String, plan: Value, measured: Measured) -> Self {
        let mut report = Report::new("rcrt bench", command);
        report.versions.insert("rcrt".into(), env!("CARGO_PKG_VERSION").into());
        report.versions.insert("server".into(), server_version);
        report.rows = rows(&measured);
        Self { report, plan, measured }
    }

    pub fn measured(&self) -> &Measured {
        &self.measured
    }

    /// Draws the latencies as SVG.
    pub fn picture(&self) -> Result<String, PlotError> {
        let rate = rcrt_load::report::number(self.measured.per_second());
        let title = format!("{} calls/s: {}", rate, self.report.command);
        percentiles(one_line(&title, 110), &[("latency", &self.measured.latency)]).svg()
    }

    pub fn show(&self, output: Output) -> anyhow::Result<()> {
        if output.is_json() {
            return output.json(self);
        }
        let mut table = Table::new(["what", "value"]);
        for row in &self.report.rows {
            let value = row.value.map(rcrt_load::report::number).unwrap_or_default();
            table.row([row.name.clone(), format!("{value} {}", row.unit)]);
        }
        for line in table.to_string().trim_end().lines() {
            output.line(line)?;
        }
        for (sentence, count) in &self.measured.failures {
            let line = format!("{count} × {}", one_line(sentence, SENTENCE));
            output.line(&output.paint(Style::Bad, &line))?;
        }
        Ok(())
    }
}

fn rows(measured: &Measured) -> Vec<Row> {
    let row = |name: &str, value: f64, unit: &str| Row::new("bench", name, value, unit);
    let mut rows = vec![
        row("answered", measured.calls as f64, "calls"),
        row("measured for", measured.took.as_secs_f64(), "s"),
        row("rate", measured.per_second(), "calls/s"),
    ];
    if !measured.latency.is_empty() {
        let ms = |quantile| measured.quantile(quantile).as_secs_f64() * 1e3;
        rows.extend(QUANTILES.map(|(name, quantile)| row(name, ms(quantile), "ms")));
    }
    let misses =
        [("failed", measured.failed()), ("due and not sent", measured.unsent), ("not answered", measured.unanswered)];
    rows.extend(
        misses.into_iter().filter(|&(_, count)| count > 0).map(|(name, count)| row(name, count as f64, "calls")),
    );
    rows
}
