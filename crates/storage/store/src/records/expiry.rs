//! Expired records. Readers stop seeing them at once; this module deletes them.
//!
//! A batch waits for no lock. A record that is being changed, read for the last time or deleted is
//! skipped, and checked again in the next batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{ErrorCode, HygieneRun, HygieneStats, StoreError, ToolFailure};
use uuid::Uuid;

use crate::calls;
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::{Durability, TenantTransaction};
use crate::records::{self, Remains};

/// Records that one transaction deletes. Each writes up to two events.
const BATCH: i64 = 100;
/// The longest duration of a run that a caller requested.
pub(crate) const MANUAL_RUN_LIMIT: Duration = Duration::from_secs(20);

from_row! {
    struct EndedRow {
        id: Uuid,
        is_request: bool,
        is_health_check: bool,
    }
}

/// What one batch deleted.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    health_checks: u64,
    others: u64,
}

impl Batch {
    fn count(self) -> u64 {
        self.health_checks + self.others
    }
}

/// Deletes a tenant's expired records, batch by batch, until none is left or the time is up, and
/// records the run. `is_asked_for`: recorded even if there was nothing to delete.
pub(crate) async fn run(
    database: &Arc<Database>,
    owner_id: Uuid,
    most: Duration,
    is_asked_for: bool,
) -> Result<HygieneRun> {
    let (at, begun) = (Utc::now(), Instant::now());
    let mut run = HygieneRun::default();
    let ended = loop {
        match batch(TenantTransaction::begin(database, owner_id).await?).await {
            Ok(batch) if batch.count() == 0 => {
                run.is_complete = true;
                break Ok(());
            }
            Ok(batch) => {
                run.health_checks_purged += batch.health_checks;
                run.expired_breadcrumbs_purged += batch.others;
            }
            Err(failure) => break Err(failure),
        }
        if begun.elapsed() >= most {
            break Ok(());
        }
    };
    run.duration_ms = begun.elapsed().as_millis() as u64;
    if is_asked_for || run.total() > 0 || ended.is_err() {
        let recorded = record_run(database, owner_id, at, &run, ended.is_err()).await;
        // The first of the two errors is returned.
        ended.and(recorded)?;
    }
    Ok(run)
}

async fn record_run(
    database: &Arc<Database>,
    owner_id: Uuid,
    at: DateTime<Utc>,
    run: &HygieneRun,
    has_failed: bool,
) -> Result<()> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    sqlx::query(
        "INSERT INTO hygiene AS h (owner_id, runs, purged, last_run_at, last_run_ms, last_run_purged, last_run_errors)
         VALUES ($1, $5, $3, $2, $4, $3, 1 - $5)
         ON CONFLICT (owner_id) DO UPDATE SET runs = h.runs + EXCLUDED.runs, purged = h.purged + EXCLUDED.purged,
            last_run_at = EXCLUDED.last_run_at, last_run_ms = EXCLUDED.last_run_ms,
            last_run_purged = EXCLUDED.last_run_purged, last_run_errors = EXCLUDED.last_run_errors",
    )
    .bind(owner_id)
    .bind(at)
    .bind(run.total() as i64)
    .bind(run.duration_ms as i64)
    .bind(i32::from(!has_failed))
    .execute(tx.connection())
    .await?;
    tx.commit().await
}

/// Deletes expired records, each with its event. A request that is still queued gets the response
/// `Timeout`.
async fn batch(mut tx: TenantTransaction) -> Result<Batch> {
    let candidates: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM breadcrumbs WHERE ttl <= now() ORDER BY ttl LIMIT $1")
            .bind(BATCH)
            .fetch_all(tx.connection())
            .await?;
    if candidates.is_empty() {
        return Ok(Batch::default());
    }
    let free = tx.try_lock_all(&candidates).await?;
    // Checked again: another writer may have extended one of them meanwhile. In the order of the
    // requests, like every operation that locks several calls.
    let ended: Vec<EndedRow> = sqlx::query_as(
        "SELECT id, coalesce(schema_name = 'tool.request.v1', false) AS is_request,
            coalesce(schema_name = 'tool.request.v1' AND 'health:check' = ANY(tags), false) AS is_health_check
         FROM breadcrumbs WHERE id = ANY($1) AND ttl <= clock_timestamp() ORDER BY id FOR UPDATE SKIP LOCKED",
    )
    .bind(&free)
    .fetch_all(tx.connection())
    .await?;
    for request in ended.iter().filter(|record| record.is_request) {
        let reason = ToolFailure::new(ErrorCode::Timeout, "the request's time to live expired before it ran");
        calls::abandon(&mut tx, request.id, reason).await?;
    }
    let ids: Vec<Uuid> = ended.iter().map(|record| record.id).collect();
    if !ids.is_empty() {
        records::remove_all(&mut tx, None, &ids, Remains::Versions).await?;
        tx.commit().await?;
    }
    let health_checks = ended.iter().filter(|record| record.is_health_check).count() as u64;
    Ok(Batch { health_checks, others: ended.len() as u64 - health_checks })
}

from_row! {
    struct StatsRow {
        runs: Option<i64>,
        purged: Option<i64>,
        last_run_at: Option<DateTime<Utc>>,
        last_run_ms: Option<i64>,
        last_run_purged: Option<i64>,
        last_run_errors: Option<i32>,
        waiting: i64,
    }
}

pub(crate) async fn stats(tx: &mut TenantTransaction) -> Result<HygieneStats, StoreError> {
    let row: Result<StatsRow, sqlx::Error> = sqlx::query_as(
        "SELECT h.runs, h.purged, h.last_run_at, h.last_run_ms, h.last_run_purged, h.last_run_errors, e.waiting
         FROM (SELECT count(*) AS waiting FROM breadcrumbs WHERE owner_id = current_tenant() AND ttl <= now()) e
         LEFT JOIN hygiene h ON h.owner_id = current_tenant()",
    )
    .fetch_one(tx.connection())
    .await;
    let row = row.map_err(crate::database::failure::Failure::from)?;
    let count = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default();
    Ok(HygieneStats {
        runs_completed: count(row.runs),
        total_breadcrumbs_purged: count(row.purged),
        last_run_at: row.last_run_at,
        last_run_duration_ms: count(row.last_run_ms),
        last_run_purged: count(row.last_run_purged),
        last_run_errors: row.last_run_errors.unwrap_or_default().unsigned_abs(),
        waiting: count(Some(row.waiting)),
    })
}
