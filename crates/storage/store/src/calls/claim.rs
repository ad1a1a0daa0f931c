//! Claiming calls from the queue.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Breadcrumb, Claim, ClaimRequest, Lease, Profile, Profiles};
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::database::Database;
use crate::database::failure::{Result, is_unreachable};
use crate::database::from_row::from_row;
use crate::events::Feeds;
use crate::rights::agents;
use crate::rows::row::RecordRow;

from_row! {
    struct ClaimRow {
        fence: i64,
        next_attempt: i32,
        queued_at: DateTime<Utc>,
        ready_at: DateTime<Utc>,
        profiles: Vec<String>,
        allowed_tools: Option<Json<Value>>,
        left_ms: Option<f64>,
        ..record: RecordRow,
    }
}

/// Runs outside of a transaction: the SQL function `claim_calls` is one, and a crash of the
/// database can lose the claim.
///
/// The claim happens even if the future is dropped after the statement was sent. The claimed calls
/// then wait until their leases expire.
pub(crate) async fn claim(
    database: &Arc<Database>,
    feeds: &Feeds,
    owner_id: Uuid,
    claim: &ClaimRequest,
) -> Result<Vec<Claim>> {
    let mut conn = database.acquire().await?;
    let mut rows = ask(conn.connection(), owner_id, claim).await;
    if rows.as_ref().is_err_and(is_unreachable) {
        conn.return_after(&rows);
        conn = database.acquire_tested().await?;
        rows = ask(conn.connection(), owner_id, claim).await;
    }
    conn.return_after(&rows);
    let rows = rows?;
    if !rows.is_empty() {
        feeds.wake_waiting(owner_id);
    }
    Ok(rows
        .into_iter()
        .map(|row| {
            let request = Breadcrumb::from(row.record);
            let mut profiles = Profiles::default();
            for profile in &row.profiles {
                // A profile that a newer version wrote must not allow more here.
                profiles.add(profile.parse().unwrap_or(Profile::Subagent));
            }
            Claim {
                lease: Lease { request: request.id, fence: row.fence },
                attempt: row.next_attempt.unsigned_abs(),
                request,
                profiles,
                allowed_tools: row.allowed_tools.map(|list| Box::new(agents::read_allowed_tools(list))),
                time_left_ms: row.left_ms.map(|left| left.max(0.0) as u64),
                queued_at: row.queued_at,
                ready_at: Some(row.ready_at),
            }
        })
        .collect())
}

async fn ask(
    connection: &mut PgConnection,
    owner_id: Uuid,
    claim: &ClaimRequest,
) -> Result<Vec<ClaimRow>, sqlx::Error> {
    sqlx::query_as("SELECT * FROM claim_calls($1, $2, $3, $4, $5, $6, $7)")
        .bind(owner_id)
        .bind(&claim.except_tools)
        .bind(&claim.awaited_only)
        .bind(&claim.only_tools)
        .bind(i64::from(claim.limit))
        .bind(claim.runner_id)
        .bind(claim.lease_ms as f64)
        .fetch_all(connection)
        .await
}
