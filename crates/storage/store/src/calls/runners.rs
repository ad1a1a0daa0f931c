//! The live runners of a tenant: their reports with their load, and how far each has followed the
//! tools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    LiveRunner, RUNNERS_WAIT, ReportReply, RunnerDrain, RunnerInfo, RunnerReport, RunnerSlots, StoreError,
};
use sqlx::types::Json;
use tokio::time::timeout;
use uuid::Uuid;

use crate::calls::applied_changes::{AppliedChanges, BehindRunner};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// The first and the longest pause between two looks at the runners.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LONGEST: Duration = Duration::from_millis(20);
/// A change of the slots alone is written if the last write is at least this old. The slots of a
/// busy runner change with every report.
const LOAD_EVERY: Duration = Duration::from_secs(1);

from_row! {
    struct RunnerRow {
        runner_id: Uuid,
        host: String,
        working_folder: Option<String>,
        applied: i64,
        slots: Json<RunnerSlots>,
        draining: bool,
        drain_requested: bool,
        /// Since the row was written.
        age_ms: f64,
        left_ms: f64,
    }
}

from_row! {
    struct InfoRow {
        runner_id: Uuid,
        host: String,
        version: String,
        working_folder: Option<String>,
        slots: Json<RunnerSlots>,
        claimed: i64,
        running: i64,
        draining: bool,
        drain_requested: bool,
        started_at: DateTime<Utc>,
        allowed_private_hosts: Vec<String>,
        reported_at: DateTime<Utc>,
        left_ms: f64,
    }
}

/// Writes only what is new: a repeated report within the first third of the lease only reads.
pub(crate) async fn report(mut tx: TenantTransaction, report: &RunnerReport) -> Result<ReportReply> {
    let mut live: Vec<RunnerRow> = sqlx::query_as(
        "SELECT runner_id, host, working_folder, applied, slots, draining, drain_requested,
            extract(epoch FROM clock_timestamp() - reported_at)::float8 * 1000 AS age_ms,
            extract(epoch FROM live_until - clock_timestamp())::float8 * 1000 AS left_ms
         FROM runners WHERE live_until > clock_timestamp() ORDER BY runner_id",
    )
    .fetch_all(tx.connection())
    .await?;
    let secrets_revision: String = sqlx::query_scalar(
        "SELECT concat_ws(':',
            (SELECT bit_xor(hashtextextended(concat_ws(' ', id, updated_at), 0)) FROM secrets),
            (SELECT bit_xor(hashtextextended(concat_ws(' ', secret_id, tool_id, tool_version, granted_at), 0))
             FROM secret_grants))",
    )
    .fetch_one(tx.connection())
    .await?;
    let own = live.iter().position(|row| row.runner_id == report.runner_id);
    let drain = own.is_some_and(|own| live[own].drain_requested);
    if report.lease_ms == 0 {
        sqlx::query("DELETE FROM runners WHERE runner_id = $1").bind(report.runner_id).execute(tx.connection()).await?;
        if let Some(own) = own {
            live.remove(own);
        }
    } else if own.is_none_or(|own| is_news(&live[own], report)) {
        upsert(&mut tx, report).await?;
        if own.is_none() {
            live.push(RunnerRow {
                runner_id: report.runner_id,
                host: report.host.clone(),
                working_folder: report.working_folder.clone(),
                applied: report.applied.0,
                slots: Json(report.slots),
                draining: report.draining,
                drain_requested: false,
                age_ms: 0.0,
                left_ms: report.lease_ms as f64,
            });
        }
    }
    tx.commit().await?;
    let runners = live.into_iter().map(|row| LiveRunner {
        runner_id: row.runner_id,
        host: row.host,
        working_folder: row.working_folder,
        lease_left_ms: row.left_ms.max(0.0) as u64,
    });
    Ok(ReportReply { runners: runners.collect(), secrets_revision, drain })
}

fn is_news(row: &RunnerRow, report: &RunnerReport) -> bool {
    row.applied != report.applied.0
        || row.left_ms < report.lease_ms as f64 * 2.0 / 3.0
        || row.host != report.host
        || row.working_folder != report.working_folder
        || row.draining != report.draining
        || (row.slots.0 != report.slots && row.age_ms >= LOAD_EVERY.as_millis() as f64)
}

async fn upsert(tx: &mut TenantTransaction, report: &RunnerReport) -> Result<()> {
    sqlx::query("DELETE FROM runners WHERE live_until < clock_timestamp() AND runner_id <> $1")
        .bind(report.runner_id)
        .execute(tx.connection())
        .await?;
    sqlx::query(
        "INSERT INTO runners (owner_id, runner_id, live_until, applied, host, working_folder, version, started_at,
            slots, draining, allowed_private_hosts, reported_at)
         VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond', $4, $5, $6, $7, $8, $9, $10, $11,
            clock_timestamp())
         ON CONFLICT (owner_id, runner_id) DO UPDATE SET live_until = EXCLUDED.live_until,
            applied = EXCLUDED.applied, host = EXCLUDED.host, working_folder = EXCLUDED.working_folder,
            version = EXCLUDED.version, started_at = EXCLUDED.started_at, slots = EXCLUDED.slots,
            draining = EXCLUDED.draining, allowed_private_hosts = EXCLUDED.allowed_private_hosts,
            reported_at = EXCLUDED.reported_at",
    )
    .bind(tx.owner_id)
    .bind(report.runner_id)
    .bind(report.lease_ms as f64)
    .bind(report.applied.0)
    .bind(&report.host)
    .bind(&report.working_folder)
    .bind(&report.version)
    .bind(report.started_at)
    .bind(Json(report.slots))
    .bind(report.draining)
    .bind(&report.allowed_private_hosts)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The live runners, the oldest first. Their calls are counted from the queue, by the index of
/// leased calls.
pub(crate) async fn list(mut tx: TenantTransaction) -> Result<Vec<RunnerInfo>> {
    read(&mut tx).await
}

async fn read(tx: &mut TenantTransaction) -> Result<Vec<RunnerInfo>> {
    let rows: Vec<InfoRow> = sqlx::query_as(
        "WITH held AS (
            SELECT runner_id, count(*) FILTER (WHERE state = 'claimed') AS claimed,
                count(*) FILTER (WHERE state = 'running') AS running
            FROM calls WHERE runner_id IS NOT NULL GROUP BY runner_id)
         SELECT r.*, COALESCE(held.claimed, 0) AS claimed, COALESCE(held.running, 0) AS running,
            extract(epoch FROM r.live_until - clock_timestamp())::float8 * 1000 AS left_ms
         FROM runners r LEFT JOIN held USING (runner_id)
         WHERE r.live_until > clock_timestamp() ORDER BY r.started_at, r.runner_id",
    )
    .fetch_all(tx.connection())
    .await?;
    let runners = rows.into_iter().map(|row| RunnerInfo {
        runner_id: row.runner_id,
        host: row.host,
        version: row.version,
        working_folder: row.working_folder,
        slots: row.slots.0,
        claimed: row.claimed.unsigned_abs(),
        running: row.running.unsigned_abs(),
        draining: row.draining,
        drain_requested: row.drain_requested,
        started_at: row.started_at,
        reported_at: row.reported_at,
        lease_left_ms: row.left_ms.max(0.0) as u64,
        allowed_private_hosts: row.allowed_private_hosts,
    });
    Ok(runners.collect())
}

/// Asks a runner to drain, or to take calls again. It reads that with its next report.
pub(crate) async fn drain(mut tx: TenantTransaction, id: Uuid, drain: RunnerDrain) -> Result<RunnerInfo> {
    sqlx::query("UPDATE runners SET drain_requested = $2 WHERE runner_id = $1 AND live_until > clock_timestamp()")
        .bind(id)
        .bind(drain.drain)
        .execute(tx.connection())
        .await?;
    let asked = read(&mut tx).await?.into_iter().find(|runner| runner.runner_id == id);
    tx.commit().await?;
    asked.ok_or_else(|| StoreError::NotFound { what: "runner", id }.into())
}

/// The live runners that have not applied the newest change of this record.
pub(crate) async fn behind(mut tx: TenantTransaction, record: Uuid) -> Result<Vec<BehindRunner>> {
    let rows: Vec<(Uuid, i64)> = sqlx::query_as(
        "SELECT r.runner_id, e.change FROM runners r
         CROSS JOIN LATERAL (
            SELECT max(number) AS change FROM events
            WHERE owner_id = r.owner_id AND number > r.applied AND breadcrumb_id = $1) e
         WHERE r.live_until > clock_timestamp() AND e.change IS NOT NULL
         ORDER BY r.runner_id",
    )
    .bind(record)
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(|(runner_id, change)| BehindRunner { runner_id, change }).collect())
}

/// Waits until no live runner is behind, or for [`RUNNERS_WAIT`]. The write is committed, so a
/// failure here is not one of the write.
pub(crate) async fn wait(database: &Arc<Database>, applied: &AppliedChanges, owner_id: Uuid, record: Uuid) {
    let (begun, mut pause) = (Instant::now(), LOOK_FIRST);
    loop {
        let looked = async { behind(TenantTransaction::begin(database, owner_id).await?, record).await };
        let behind = match looked.await {
            Ok(behind) if behind.is_empty() => return,
            Ok(behind) => behind,
            Err(failure) => {
                let error = StoreError::from(failure);
                return tracing::warn!(%record, %error, "whether the runners use the changed tool is not known");
            }
        };
        let left = RUNNERS_WAIT.saturating_sub(begun.elapsed());
        if left.is_zero() {
            let runners = behind.iter().map(|one| one.runner_id.to_string()).collect::<Vec<_>>().join(", ");
            return tracing::warn!(%record, %runners, "these runners do not use the changed tool yet");
        }
        if timeout(pause.min(left), applied.until_applied(owner_id, behind)).await.is_ok() {
            return;
        }
        pause = (pause * 2).min(LOOK_LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use rcrt_breadcrumb::{EventNumber, SlotCount};
    use rcrt_conformance::runners::report_of;

    use super::*;

    #[test]
    fn the_load_alone_is_written_once_in_a_while_and_the_rest_at_once() {
        let report = RunnerReport {
            lease_ms: 15_000,
            applied: EventNumber(1),
            working_folder: None,
            slots: RunnerSlots::default(),
            ..report_of(Uuid::from_u128(1))
        };
        let row = |age_ms| RunnerRow {
            runner_id: report.runner_id,
            host: report.host.clone(),
            working_folder: None,
            applied: 1,
            slots: Json(report.slots),
            draining: false,
            drain_requested: false,
            age_ms,
            left_ms: 15_000.0 - age_ms,
        };
        let slots = RunnerSlots { worker: SlotCount { used: 1, free: 7 }, ..RunnerSlots::default() };
        let busy = RunnerReport { slots, ..report.clone() };
        assert!(!is_news(&row(4_000.0), &report));
        assert!(is_news(&row(6_000.0), &report), "the lease is extended");
        assert!(!is_news(&row(900.0), &busy));
        assert!(is_news(&row(1_000.0), &busy));
        assert!(is_news(&row(0.0), &RunnerReport { draining: true, ..busy }));
        assert!(is_news(&row(0.0), &RunnerReport { applied: EventNumber(2), ..report }));
    }
}
