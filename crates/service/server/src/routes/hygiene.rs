//! Deletion of expired records, for the caller's tenant. The responses have the fields of the
//! original RCRT first, then ours.

use axum::{Json, extract::State};
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{HygieneRun, HygieneStats};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::query::Query;
use crate::routes::replies::Reply;

/// Statistics about the deletion of expired records.
#[derive(Debug, Serialize, ToSchema)]
pub struct HygieneReport {
    /// Always 0: agents do not expire here.
    total_agents_cleaned: u64,
    /// Always true: expired records are always deleted.
    hygiene_enabled: bool,
    /// When these statistics were collected.
    last_updated: DateTime<Utc>,
    #[serde(flatten)]
    stats: HygieneStats,
}

/// The result of a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct HygieneRunReport {
    triggered: bool,
    total_cleaned: u64,
    message: String,
    #[serde(flatten)]
    run: HygieneRun,
}

/// The result of a purge, as RCRT reports it.
#[derive(Debug, Serialize, ToSchema)]
pub struct PurgeReport {
    purged: u64,
    ttl_purged: u64,
    health_checks_purged: u64,
    expired_purged: u64,
}

/// Get the statistics of the deletion of expired records
///
/// Readers never see an expired record. These numbers say how those of this tenant are deleted,
/// over all servers and restarts.
#[utoipa::path(get, path = "/hygiene/stats", tag = "hygiene", operation_id = "hygiene_stats",
    responses((status = 200, body = HygieneReport)))]
pub async fn stats(State(state): State<ServerState>, caller: Caller, query: Query) -> Reply<HygieneReport> {
    query.finish()?;
    let stats = state.tenancy.hygiene(caller.identity.owner_id).await?;
    Ok(Json(HygieneReport { total_agents_cleaned: 0, hygiene_enabled: true, last_updated: Utc::now(), stats }))
}

/// Delete expired records now
///
/// Those of this tenant, instead of within the next seconds. Takes at most 20 seconds:
/// `is_complete` is false if more are left.
#[utoipa::path(post, path = "/hygiene/run", tag = "hygiene", operation_id = "hygiene_run",
    responses((status = 200, body = HygieneRunReport)))]
pub async fn run(State(state): State<ServerState>, caller: Caller, query: Query) -> Reply<HygieneRunReport> {
    query.finish()?;
    let run = state.tenancy.run_hygiene(caller.identity.owner_id).await?;
    let message = if run.is_complete { "no expired records are left" } else { "more are left; run it again" };
    Ok(Json(HygieneRunReport { triggered: true, total_cleaned: run.total(), message: message.to_owned(), run }))
}

/// The same, on the path that RCRT's older clients use
#[utoipa::path(post, path = "/admin/purge", tag = "hygiene", operation_id = "admin_purge",
    responses((status = 200, body = PurgeReport)))]
pub async fn purge(State(state): State<ServerState>, caller: Caller, query: Query) -> Reply<PurgeReport> {
    query.finish()?;
    let run = state.tenancy.run_hygiene(caller.identity.owner_id).await?;
    Ok(Json(PurgeReport {
        purged: run.total(),
        ttl_purged: run.total(),
        health_checks_purged: run.health_checks_purged,
        expired_purged: run.expired_breadcrumbs_purged,
    }))
}
