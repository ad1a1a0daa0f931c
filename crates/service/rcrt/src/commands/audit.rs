//! `rcrt audit`: who changed agents, grants, secrets and tools; and the requests of tools and
//! webhooks to other servers.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{AuditLog, AuditQuery, EgressLog, EgressOutcome, EgressQuery, ttl_seconds};
use serde_json::Value;
use uuid::Uuid;

use super::agent;
use crate::config::{Config, id};
use crate::connection;
use crate::output::{Output, one_line};

/// Show the audit log, or the outgoing requests of tools and webhooks
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = "\
Without a subcommand, it lists the audit log, newest first: changes of agents, tokens, grants, secrets, webhooks and \
tools, and uses of secrets.

Examples:
  rcrt audit --since 1d
  rcrt audit --action secret.decrypted --agent 0198c0de-0000-7000-8000-000000000001
  rcrt audit --action tool
  rcrt audit egress --since 1h
  rcrt audit egress --outcome refused
  rcrt audit egress --tool weather --host api.example.com --limit 1000 -o json")]
pub struct Audit {
    #[command(subcommand)]
    which: Option<Which>,
    #[command(flatten)]
    log: Log,
}

#[derive(Debug, Subcommand)]
enum Which {
    Egress(Egress),
}

#[derive(Debug, Args)]
struct Log {
    /// Only this action, such as secret.decrypted, or this group of actions: agent, token, acl,
    /// secret, tool, webhook
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only what this agent did, by its name or id
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only changes and uses of what has this id: an agent, a token, a secret, a record
    #[arg(long, value_name = "ID", value_parser = id)]
    subject: Option<Uuid>,
    /// Only what was done for the tool with this record
    #[arg(long, value_name = "ID", value_parser = id)]
    tool_id: Option<Uuid>,
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

/// List outgoing requests, newest first
#[derive(Debug, Args)]
pub struct Egress {
    /// Only of this tool; `webhooks` for deliveries to webhooks
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only to this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only of calls of this agent, by its name or id
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only of the call with this request record
    #[arg(long, value_name = "ID", value_parser = id)]
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

pub fn moment(text: &str) -> Result<DateTime<Utc>, String> {
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
        match self.which {
            Some(Which::Egress(asked)) => asked.run(config, output).await,
            None => self.log.run(config, output).await,
        }
    }
}

impl Log {
    async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let Self { action, agent, subject, tool_id, since, until, before, limit } = self;
        let client = connection::client(config)?;
        let agent_id = agent::id_of(&client, agent.as_deref()).await?;
        let query = AuditQuery { action, agent_id, subject, tool_id, since, until, before, limit };
        let entries = client.audit_log(&query).await?;
        if output.is_json() {
            return output.json(&entries);
        }
        let agents = client.agents().await?;
        let name = |id: Uuid| {
            let named = agents.iter().find(|agent| agent.id == id);
            named.map_or_else(|| id.to_string(), |agent| one_line(&agent.name, 40))
        };
        let rows: Vec<Vec<String>> = entries
            .iter()
            .map(|entry| {
                vec![
                    entry.id.to_string(),
                    entry.at.format("%Y-%m-%d %H:%M:%S").to_string(),
                    entry.agent_id.map_or_else(|| "operator".into(), name),
                    entry.action.clone(),
                    entry.subject.to_string(),
                    one_line(&entry.subject_name, 40),
                    entry.reason.as_deref().map_or_else(String::new, |reason| one_line(reason, 200)),
                ]
            })
            .collect();
        output.table(&["ID", "TIME (UTC)", "AGENT", "ACTION", "SUBJECT", "NAME", "REASON"], &rows)
    }
}

impl Egress {
    async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let Self { tool, host, agent, call, outcome, since, until, before, limit } = self;
        let client = connection::client(config)?;
        let agent_id = agent::id_of(&client, agent.as_deref()).await?;
        let query = EgressQuery { tool, host, agent_id, call, outcome, since, until, before, limit };
        let entries = client.egress_log(&query).await?;
        let heading = ["ID", "TIME (UTC)", "TOOL", "METHOD", "HOST", "OUT", "IN", "MS", "ENDED"];
        output.list(&entries, &heading, |entry| {
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
    }
}
