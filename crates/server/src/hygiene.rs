//! Deletion of expired records, for the caller's tenant. The responses have the fields of the
//! original RCRT first, then ours.

use axum::{Json, extract::State};
use breadcrumb::{HygieneRun, HygieneStats};
use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{ServerState, access::Caller, problem::Problem, query::Query};

/// What the purging of ended records came to.
#[derive(Debug, Serialize, ToSchema)]
pub struct HygieneReport {
    /// Agents do not end by themselves here.
    total_agents_cleaned: u64,
    /// Ended records are always taken out.
    hygiene_enabled: bool,
    /// When this was told.
    last_updated: DateTime<Utc>,
    #[serde(flatten)]
    stats: HygieneStats,
}

/// What a run did.
#[derive(Debug, Serialize, ToSchema)]
pub struct HygieneRunReport {
    triggered: bool,
    total_cleaned: u64,
    message: String,
    #[serde(flatten)]
    run: HygieneRun,
}

/// What a purge did, as RCRT tells it.
#[derive(Debug, Serialize, ToSchema)]
pub struct PurgeReport {
    purged: u64,
    ttl_purged: u64,
    health_checks_purged: u64,
    expired_purged: u64,
}

/// How the purging of ended records goes
///
/// Readers never see an ended record; here is told how those of this tenant are taken out, over all servers and restarts.
#[utoipa::path(get, path = "/hygiene/stats", tag = "hygiene", operation_id = "hygiene_stats",
    responses((status = 200, body = HygieneReport)))]
pub async fn stats(
    State(state): State<ServerState>,
    caller: Caller,
    query: Query,
) -> Result<Json<HygieneReport>, Problem> {
    query.finish(&[])?;
    let stats = state.tenancy.hygiene(caller.identity.owner_id).await?;
    Ok(Json(HygieneReport { total_agents_cleaned: 0, hygiene_enabled: true, last_updated: Utc::now(), stats }))
}

/// Take out ended records now
///
/// Those of this tenant, instead of within the next seconds. Takes 20 seconds at most: `is_complete` tells whether more is
/// left.
#[utoipa::path(post, path = "/hygiene/run", tag = "hygiene", operation_id = "hygiene_run",
    responses((status = 200, body = HygieneRunReport)))]
pub async fn run(
    State(state): State<ServerState>,
    caller: Caller,
    query: Query,
) -> Result<Json<HygieneRunReport>, Problem> {
    query.finish(&[])?;
    let run = state.tenancy.run_hygiene(caller.identity.owner_id).await?;
    let message = if run.is_complete { "everything that had ended is taken out" } else { "more is left; run it again" };
    Ok(Json(HygieneRunReport { triggered: true, total_cleaned: run.total(), message: message.to_owned(), run }))
}

/// The same, as RCRT's older clients ask for it
#[utoipa::path(post, path = "/admin/purge", tag = "hygiene", operation_id = "admin_purge",
    responses((status = 200, body = PurgeReport)))]
pub async fn purge(
    State(state): State<ServerState>,
    caller: Caller,
    query: Query,
) -> Result<Json<PurgeReport>, Problem> {
    query.finish(&[])?;
    let run = state.tenancy.run_hygiene(caller.identity.owner_id).await?;
    Ok(Json(PurgeReport {
        purged: run.total(),
        ttl_purged: run.total(),
        health_checks_purged: run.health_checks_purged,
        expired_purged: run.expired_breadcrumbs_purged,
    }))
}
