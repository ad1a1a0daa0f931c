//! Taking waiting calls.

use breadcrumb::{Breadcrumb, Claim, ClaimRequest, Lease, Profile, Profiles};
use chrono::{DateTime, Utc};

use crate::failure::Done;
use crate::row::{RecordRow, record_columns};
use crate::transaction::TenantTransaction;

#[derive(sqlx::FromRow)]
struct ClaimRow {
    fence: i64,
    next_attempt: i32,
    queued_at: DateTime<Utc>,
    ready_at: DateTime<Utc>,
    profiles: Vec<String>,
    left_ms: Option<f64>,
    #[sqlx(flatten)]
    record: RecordRow,
}

/// Claimers pass over each other's rows instead of waiting. A call whose request has ended, or
/// whose deadline has passed, is left to be answered.
///
/// The fence is a time in microseconds and not a mere count: a claim may be lost in a crash of the database (it is
/// committed without waiting for the disk), and the claim after it must not get the same number.
pub(crate) async fn claim(mut tx: TenantTransaction, claim: &ClaimRequest) -> Done<Vec<Claim>> {
    let rows: Vec<ClaimRow> = sqlx::query_as(concat!(
        "WITH next AS (
            SELECT c.request FROM calls c
            JOIN breadcrumbs r ON r.id = c.request AND (r.ttl IS NULL OR r.ttl > now())
            WHERE c.state = 'queued' AND (c.run_after IS NULL OR c.run_after <= now())
                AND (c.deadline_at IS NULL OR c.deadline_at > clock_timestamp()) AND c.tool <> ALL($1)
            ORDER BY c.queued_at, c.request
            LIMIT $2
            FOR UPDATE OF c SKIP LOCKED),
        taken AS (
            UPDATE calls c SET state = 'claimed', runner_id = $3,
                fence = GREATEST(c.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
                lease_until = clock_timestamp() + $4 * interval '1 millisecond'
            FROM next WHERE c.request = next.request
            RETURNING c.request, c.fence, c.attempt + 1 AS next_attempt, c.queued_at,
                GREATEST(c.queued_at, c.run_after) AS ready_at, c.profiles,
                (extract(epoch FROM c.deadline_at - clock_timestamp()) * 1000)::float8 AS left_ms)
        SELECT taken.fence, taken.next_attempt, taken.queued_at, taken.ready_at, taken.profiles, taken.left_ms, ",
        record_columns!(),
        " FROM taken JOIN breadcrumbs b ON b.id = taken.request ORDER BY taken.queued_at, taken.request"
    ))
    .bind(&claim.except_tools)
    .bind(i64::from(claim.limit))
    .bind(claim.runner_id)
    .bind(claim.lease_ms as f64)
    .fetch_all(tx.connection())
    .await?;
    if !rows.is_empty() {
        tx.commit().await?;
    }
    Ok(rows
        .into_iter()
        .map(|row| {
            let request = Breadcrumb::from(row.record);
            let mut profiles = Profiles::default();
            for profile in &row.profiles {
                // One that a newer version wrote must not open anything here.
                profiles.add(profile.parse().unwrap_or(Profile::Subagent));
            }
            Claim {
                lease: Lease { request: request.id, fence: row.fence },
                attempt: row.next_attempt.unsigned_abs(),
                request,
                profiles,
                time_left_ms: row.left_ms.map(|left| left.max(0.0) as u64),
                queued_at: row.queued_at,
                ready_at: Some(row.ready_at),
            }
        })
        .collect())
}
