//! The live runners of a tenant: their reports, and how far each has followed the tools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rcrt_breadcrumb::{LiveRunner, RUNNERS_WAIT, ReportReply, RunnerReport, StoreError};
use uuid::Uuid;

use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// The first and the longest pause between two looks at the runners.
const LOOK_FIRST: Duration = Duration::from_millis(2);
const LOOK_LONGEST: Duration = Duration::from_millis(20);

from_row! {
    struct RunnerRow {
        runner_id: Uuid,
        host: String,
        working_folder: Option<String>,
        applied: i64,
        left_ms: f64,
    }
}

/// Writes only what is new: a repeated report within the first third of the lease only reads.
pub(crate) async fn report(mut tx: TenantTransaction, report: &RunnerReport) -> Result<ReportReply> {
    let mut live: Vec<RunnerRow> = sqlx::query_as(
        "SELECT runner_id, host, working_folder, applied,
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
    Ok(ReportReply { runners: runners.collect(), secrets_revision })
}

fn is_news(row: &RunnerRow, report: &RunnerReport) -> bool {
    row.applied != report.applied.0
        || row.left_ms < report.lease_ms as f64 * 2.0 / 3.0
        || row.host != report.host
        || row.working_folder != report.working_folder
}

async fn upsert(tx: &mut TenantTransaction, report: &RunnerReport) -> Result<()> {
    sqlx::query("DELETE FROM runners WHERE live_until < clock_timestamp() AND runner_id <> $1")
        .bind(report.runner_id)
        .execute(tx.connection())
        .await?;
    sqlx::query(
        "INSERT INTO runners (owner_id, runner_id, live_until, applied, host, working_folder)
         VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond', $4, $5, $6)
         ON CONFLICT (owner_id, runner_id) DO UPDATE SET live_until = EXCLUDED.live_until,
            applied = EXCLUDED.applied, host = EXCLUDED.host, working_folder = EXCLUDED.working_folder",
    )
    .bind(tx.owner_id)
    .bind(report.runner_id)
    .bind(report.lease_ms as f64)
    .bind(report.applied.0)
    .bind(&report.host)
    .bind(&report.working_folder)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The live runners that have not applied the newest change of this record.
pub(crate) async fn behind(mut tx: TenantTransaction, record: Uuid) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(
        "SELECT r.runner_id FROM runners r
         WHERE r.live_until > clock_timestamp() AND EXISTS (
            SELECT FROM events e WHERE e.owner_id = r.owner_id AND e.number > r.applied AND e.breadcrumb_id = $1)
         ORDER BY r.runner_id",
    )
    .bind(record)
    .fetch_all(tx.connection())
    .await?)
}

/// Waits until no live runner is behind, or for [`RUNNERS_WAIT`]. The write is committed, so a
/// failure here is not one of the write.
pub(crate) async fn wait(database: &Arc<Database>, owner_id: Uuid, record: Uuid) {
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
            let runners = behind.iter().map(Uuid::to_string).collect::<Vec<_>>().join(", ");
            return tracing::warn!(%record, %runners, "these runners do not use the changed tool yet");
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(LOOK_LONGEST);
    }
}
