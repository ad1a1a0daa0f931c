//! One call, with its request, response, attempts and stages.

use chrono::{DateTime, TimeDelta, Utc};
use rcrt_breadcrumb::{
    Breadcrumb, CallAttempt, CallDetails, CallQuery, CallStage, CallState, CallSummary, ResponseStatus, Traceparent,
    TtlType,
};
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use super::history;
use super::queued::unknown;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rows;

const MAX_CHILDREN: u32 = 100;
/// The stages that a runner reports, in order. `<name>_ms` is in the response's metadata.
const STAGES: [&str; 5] = ["queue", "claim", "load", "run", "write"];

from_row! {
    struct AttemptsRow {
        runner_id: Option<Uuid>,
        past_attempts: Option<Json<Vec<CallAttempt>>>,
    }
}

/// The caller has checked that the agent can see the request. The records are read with the rights
/// of the transaction. `agent` is that of [`history::list`].
pub(crate) async fn read(mut tx: TenantTransaction, agent: Option<Uuid>, request: Uuid) -> Result<CallDetails> {
    let summary = history::find(&mut tx, request).await?.ok_or_else(|| unknown(request))?;
    let row: AttemptsRow = sqlx::query_as("SELECT runner_id, past_attempts FROM calls WHERE request = $1")
        .bind(request)
        .fetch_one(tx.connection())
        .await?;
    let request_record = readable(&mut tx, Some(request)).await?;
    let response_record = readable(&mut tx, summary.call.response).await?;
    let query = CallQuery { parent: Some(request), limit: MAX_CHILDREN, ..CallQuery::default() };
    let children = history::list(&mut tx, agent, &query).await?.calls;
    let metadata = response_record.as_ref().and_then(|record| record.context.get("metadata"));
    let text = |key: &str| metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_str);
    let runner_id = row.runner_id.or_else(|| text("runner_id")?.parse().ok());
    let traceparent = request_record.as_ref().and_then(|record| record.context.get("traceparent"));
    let callers_trace = || {
        let place: Traceparent = traceparent?.as_str()?.parse().ok()?;
        Some(format!("{:032x}", place.trace_id))
    };
    let trace_id = text("trace_id").map(str::to_owned).or_else(callers_trace);
    let trace_id = trace_id.unwrap_or_else(|| request.simple().to_string());
    let stages = metadata.and_then(|metadata| metadata.get("stages")).map_or_else(
        || stages_of_states(&summary),
        |stages| stages_of_runner(stages, summary.finished_at.unwrap_or(summary.call.queued_at)),
    );
    let mut attempts = row.past_attempts.map(|json| json.0).unwrap_or_default();
    attempts.extend(last_attempt(&summary, runner_id, &stages, attempts.len()));
    Ok(CallDetails { summary, runner_id, trace_id, attempts, stages, children, request_record, response_record })
}

/// `None` also for a record whose reads are counted: this is not one of them.
async fn readable(tx: &mut TenantTransaction, id: Option<Uuid>) -> Result<Option<Breadcrumb>> {
    let Some(id) = id else { return Ok(None) };
    let record = rows::find(tx, id).await?;
    Ok(record.filter(|record| !matches!(record.ttl_type, Some(TtlType::Usage | TtlType::Hybrid))))
}

/// The attempt that runs or that wrote the response. `None` if it is among the past ones.
fn last_attempt(
    summary: &CallSummary,
    runner_id: Option<Uuid>,
    stages: &[CallStage],
    past: usize,
) -> Option<CallAttempt> {
    let is_counted = summary.call.attempt as usize > past && summary.call.state != CallState::Queued;
    let run = stages.iter().find(|stage| stage.name == "run");
    is_counted.then(|| CallAttempt {
        attempt: summary.call.attempt,
        runner_id,
        started_at: summary.started_at.or(run.map(|run| run.started_at)),
        ended_at: summary.finished_at,
        outcome: summary.status.map(|status: ResponseStatus| status.as_str().to_owned()),
    })
}

/// The runner measured how long each stage took. The last one ended when the response was written.
fn stages_of_runner(measured: &Value, ended: DateTime<Utc>) -> Vec<CallStage> {
    let ms = |name: &str| measured.get(format!("{name}_ms")).and_then(Value::as_f64).unwrap_or_default().max(0.0);
    let micros = |ms: f64| TimeDelta::microseconds((ms * 1000.0) as i64);
    let mut at = ended - micros(STAGES.iter().map(|name| ms(name)).sum());
    let stage = |name: &&str| {
        let (started_at, took) = (at, ms(name));
        at += micros(took);
        CallStage { name: (*name).to_owned(), started_at, ended_at: Some(at), duration_ms: Some(took) }
    };
    STAGES.iter().map(stage).collect()
}

/// What the queue knows of a call without a runner's response.
fn stages_of_states(summary: &CallSummary) -> Vec<CallStage> {
    let (claimed, started, finished) = (summary.claimed_at, summary.started_at, summary.finished_at);
    let begun = [("queue", Some(summary.call.queued_at)), ("claim", claimed), ("run", started)];
    let begun: Vec<(&str, DateTime<Utc>)> = begun.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    let ends = begun.iter().skip(1).map(|(_, at)| Some(*at)).chain([finished]);
    begun
        .iter()
        .zip(ends)
        .map(|((name, started_at), ended_at)| CallStage {
            name: (*name).to_owned(),
            started_at: *started_at,
            ended_at,
            duration_ms: ended_at
                .map(|ended| (ended - *started_at).num_microseconds().unwrap_or_default() as f64 / 1e3),
        })
        .collect()
}
