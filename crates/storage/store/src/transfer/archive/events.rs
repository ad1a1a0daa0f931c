//! Archives of events: the events up to a number are in files. Numbers below the horizon are final,
//! so a range of them always has the same events.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::file::ArchiveFile;
use super::{Step, begin, file_name};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::events::read_own;
use crate::transfer::line::{ArchivedEvent, Line};

/// The most events of a file.
const FILE: i64 = 100_000;

from_row! {
    #[derive(Default)]
    struct Progress {
        /// Up to here, events are in files.
        number: i64,
        file: Option<String>,
        last_number: Option<i64>,
    }
}

from_row! {
    struct Range {
        first_number: Option<i64>,
        last_number: Option<i64>,
        first_at: Option<DateTime<Utc>>,
    }
}

pub(super) async fn step(database: &Arc<Database>, folder: &Path, tenant: Uuid, before: DateTime<Utc>) -> Result<Step> {
    let Some((mut tx, name)) = begin(database, tenant).await? else { return Ok(Step::Nothing) };
    let progress: Option<Progress> =
        sqlx::query_as("SELECT number, file, last_number FROM event_archives WHERE owner_id = current_tenant()")
            .fetch_optional(tx.connection())
            .await?;
    let progress = progress.unwrap_or_default();
    let (Some(file), Some(last)) = (&progress.file, progress.last_number) else {
        return plan(tx, &name, progress.number, before).await;
    };
    let written = ArchiveFile::create(folder, file, &name).await?;
    write(database, &mut tx, written, progress.number, last).await?;
    sqlx::query(
        "UPDATE event_archives SET number = last_number, file = NULL, last_number = NULL
         WHERE owner_id = current_tenant()",
    )
    .execute(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(Step::Finished)
}

/// Records which events the next file will have.
async fn plan(mut tx: TenantTransaction, name: &str, after: i64, before: DateTime<Utc>) -> Result<Step> {
    let range: Range = sqlx::query_as(
        "SELECT min(n.number) AS first_number, max(n.number) AS last_number, min(n.at) AS first_at FROM (
            SELECT e.number, e.at FROM events e
            WHERE e.owner_id = current_tenant() AND e.number > $1 AND e.number < event_horizon()
            ORDER BY e.number LIMIT $3) n
         WHERE n.at < $2",
    )
    .bind(after)
    .bind(before)
    .bind(FILE)
    .fetch_one(tx.connection())
    .await?;
    let Range { first_number: Some(first), last_number: Some(last), first_at: Some(at) } = range else {
        return super::nothing(tx).await;
    };
    sqlx::query(
        "INSERT INTO event_archives (owner_id, number, file, last_number) VALUES (current_tenant(), $1, $2, $3)
         ON CONFLICT (owner_id) DO UPDATE SET file = EXCLUDED.file, last_number = EXCLUDED.last_number",
    )
    .bind(after)
    .bind(file_name(tx.owner_id, name, "events", at, &format!("{first}-{last}")))
    .bind(last)
    .execute(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(Step::Continued(0))
}

async fn write(
    database: &Arc<Database>,
    tx: &mut TenantTransaction,
    mut file: ArchiveFile,
    mut after: i64,
    last: i64,
) -> Result<()> {
    while after < last {
        let page = read_own(database, tx.owner_id, after).await?;
        // The page is whole, because the lock was held while it was read. And a transaction that is
        // idle for too long is ended.
        sqlx::query("SELECT 1").execute(tx.connection()).await?;
        let Some((events, newest)) = page else { break };
        let lines = events
            .into_iter()
            .filter(|event| event.number.0 <= last)
            .map(|event| Line::Event(Box::new(ArchivedEvent { number: event.number.0, event })))
            .collect();
        file = file.put(lines).await?;
        after = newest;
    }
    file.finish().await
}
