//! Archives of calls: requests, responses and logs. Their ids are recorded before the file is
//! written, and only they are deleted after it.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::Breadcrumb;
use uuid::Uuid;

use super::file::ArchiveFile;
use super::{Step, begin, file_name};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::records::prune;
use crate::rows::row::{RecordRow, record_columns};
use crate::transfer::line::Line;

/// The most records of a file, and the most bytes of their contexts (a larger single record is
/// still written): they are in memory at once.
const FILE: i64 = 5000;
const FILE_BYTES: i64 = 16 * 1024 * 1024;

from_row! {
    struct Planned {
        file: String,
        records: Vec<Uuid>,
        is_written: bool,
    }
}

pub(super) async fn step(database: &Arc<Database>, folder: &Path, tenant: Uuid, before: DateTime<Utc>) -> Result<Step> {
    let Some((mut tx, name)) = begin(database, tenant).await? else { return Ok(Step::Nothing) };
    let planned: Option<Planned> =
        sqlx::query_as("SELECT file, records, is_written FROM call_archives WHERE owner_id = current_tenant()")
            .fetch_optional(tx.connection())
            .await?;
    match planned {
        None => plan(tx, &name, before).await,
        Some(planned) if !planned.is_written => write(tx, folder, &name, &planned).await,
        Some(planned) => delete(tx, &planned.records, before).await,
    }
}

/// Records which records the next file will have.
async fn plan(mut tx: TenantTransaction, name: &str, before: DateTime<Utc>) -> Result<Step> {
    let old = prune::old_calls(&mut tx, before, FILE).await?;
    let chosen: Vec<(Uuid, DateTime<Utc>)> = sqlx::query_as(
        "SELECT s.id, s.updated_at FROM (
            SELECT b.id, b.updated_at,
                sum(b.size_bytes) OVER (ORDER BY b.updated_at, b.id) - b.size_bytes AS bytes_before
            FROM breadcrumbs b WHERE b.owner_id = current_tenant() AND b.id = ANY ($1)) s
         WHERE s.bytes_before < $2 ORDER BY s.updated_at, s.id LIMIT $3",
    )
    .bind(old)
    .bind(FILE_BYTES)
    .bind(FILE)
    .fetch_all(tx.connection())
    .await?;
    let Some(day) = chosen.first().map(|(_, at)| *at) else { return super::nothing(tx).await };
    let records: Vec<Uuid> = chosen.into_iter().map(|(id, _)| id).collect();
    sqlx::query("INSERT INTO call_archives (owner_id, file, records) VALUES (current_tenant(), $1, $2)")
        .bind(file_name(tx.owner_id, name, "calls", day, &Uuid::now_v7().to_string()))
        .bind(records)
        .execute(tx.connection())
        .await?;
    tx.commit().await?;
    Ok(Step::Continued(0))
}

async fn write(mut tx: TenantTransaction, folder: &Path, name: &str, planned: &Planned) -> Result<Step> {
    let rows: Vec<RecordRow> = sqlx::query_as(concat!(
        "SELECT ",
        record_columns!(),
        " FROM breadcrumbs b WHERE b.owner_id = current_tenant() AND b.id = ANY ($1) ORDER BY b.id"
    ))
    .bind(&planned.records)
    .fetch_all(tx.connection())
    .await?;
    let lines = rows.into_iter().map(|row| Line::Record(Box::new(Breadcrumb::from(row)))).collect();
    let file = ArchiveFile::create(folder, &planned.file, name).await?;
    file.put(lines).await?.finish().await?;
    sqlx::query("UPDATE call_archives SET is_written = true WHERE owner_id = current_tenant()")
        .execute(tx.connection())
        .await?;
    tx.commit().await?;
    Ok(Step::Continued(0))
}

/// Deletes a batch. A record that was changed since is not old any more, and stays.
async fn delete(mut tx: TenantTransaction, records: &[Uuid], before: DateTime<Utc>) -> Result<Step> {
    let left: Vec<Uuid> = sqlx::query_scalar(
        "SELECT b.id FROM breadcrumbs b WHERE b.owner_id = current_tenant() AND b.id = ANY ($1) AND b.updated_at < $2
         LIMIT $3",
    )
    .bind(records)
    .bind(before)
    .bind(prune::CALLS)
    .fetch_all(tx.connection())
    .await?;
    if left.is_empty() {
        sqlx::query("DELETE FROM call_archives WHERE owner_id = current_tenant()").execute(tx.connection()).await?;
        tx.commit().await?;
        return Ok(Step::Finished);
    }
    match prune::delete_calls(tx, &left, before).await? {
        // Others have locked them all: the next run deletes them.
        0 => Ok(Step::Nothing),
        some => Ok(Step::Continued(some)),
    }
}
