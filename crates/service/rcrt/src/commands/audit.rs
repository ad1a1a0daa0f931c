//! `rcrt audit`: the requests of tools and webhooks to other servers.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{EgressLog, EgressOutcome, EgressQuery, ttl_seconds};
use serde_json::Value;
use uuid::Uuid;

use crate::config::Config;
use crate::connection;
use crate::output::{Output, one_line};

/// Show the outgoing requests of tools and webhooks
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  rcrt audit egress --since 1h
  rcrt audit egress --outcome refused
  rcrt audit egress --tool weather --host api.example.com --limit 1000 -o json")]
pub enum Audit {
    Egress(Egress),
}

/// List outgoing requests, newest first
#[derive(Debug, Args)]
pub struct Egress {
    /// Only of this tool; `webhooks` for deliveries to webhooks
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only to this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only of calls of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<Uuid>,
    /// Only of the call with this request record
    #[arg(long, value_name = "ID")]
    call: Option<Uuid>,
    /// Only with this outcome: answered, refused or failed
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<EgressOutcome>,
    /// Only from this time on: 2026-01-31T12:00:00Z, or 30m, 2h, 7d ago
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<DateTime<Utc>>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<DateTime<Utc>>,
    /// Only entries with a lower id, for the next page
    #[arg(long, value_name = "ID")]
    before: Option<i64>,
    /// Maximum number of rows, 1 to 1000
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
}

fn moment(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(moment) = text.parse() {
        return Ok(moment);
    }
    let ago = ttl_seconds(&Value::from(text))
        .and_then(|seconds| chrono::TimeDelta::try_seconds(i64::try_from(seconds).ok()?));
    let moment = ago.and_then(|ago| Utc::now().checked_sub_signed(ago));
    moment.ok_or_else(|| "must be a time such as 2026-01-31T12:00:00Z, or how long ago: 30m, 2h, 7d".into())
}

impl Audit {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let Self::Egress(asked) = self;
        let Egress { tool, host, agent: agent_id, call, outcome, since, until, before, limit } = asked;
        let query = EgressQuery { tool, host, agent_id, call, outcome, since, until, before, limit };
        let entries = connection::client(config)?.egress_log(&query).await?;
        if output.is_json() {
            return output.json(&entries);
        }
        let rows: Vec<Vec<String>> = entries
            .iter()
            .map(|entry| {
                let record = &entry.record;
                let ended = match (record.status, &record.reason) {
                    (Some(status), _) => status.to_string(),
                    (None, Some(reason)) => format!("{}: {}", record.outcome.as_str(), one_line(reason, 100)),
                    (None, None) => record.outcome.as_str().into(),
                };
                vec![
                    entry.id.to_string(),
                    record.at.format("%Y-%m-%d %H:%M:%S").to_string(),
                    one_line(&record.tool, 40),
                    record.method.clone(),
                    format!("{}:{}", record.host, record.port),
                    record.bytes_out.to_string(),
                    record.bytes_in.to_string(),
                    record.duration_ms.to_string(),
                    ended,
                ]
            })
            .collect();
        output.table(&["ID", "TIME (UTC)", "TOOL", "METHOD", "HOST", "OUT", "IN", "MS", "ENDED"], &rows)
    }
}
