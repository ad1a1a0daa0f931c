//! One step of one follower in one tenant: a read, and a transaction that writes the prepared work.

use std::sync::Arc;

use uuid::Uuid;

use super::{CatchUpReason, EventHeader, Follower};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::{Durability, TenantTransaction};

/// The most events of one step.
const STEP: i64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepOutcome {
    /// Nothing is left.
    Done,
    /// It does not follow this tenant.
    Absent,
    /// There are more events.
    More,
    /// The next events wait for an older transaction to end.
    Waiting,
    /// Another process moved the cursor meanwhile, so nothing was done.
    Overtaken,
}

from_row! {
    struct CursorRow {
        number: i64,
        has_missed: bool,
    }
}

from_row! {
    struct Next {
        is_complete: bool,
        ..event: EventHeader,
    }
}

pub(super) async fn step<F: Follower>(database: &Arc<Database>, follower: &F, owner_id: Uuid) -> Result<StepOutcome> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    let row: Option<CursorRow> = sqlx::query_as(
        "SELECT c.number, coalesce(f.number > c.number, false) AS has_missed
         FROM event_cursors c LEFT JOIN pruned_events f ON f.owner_id = c.owner_id
         WHERE c.owner_id = $1 AND c.follower = $2",
    )
    .bind(owner_id)
    .bind(follower.name())
    .fetch_optional(tx.connection())
    .await?;
    let cursor = match row {
        Some(CursorRow { number, has_missed: false }) => number,
        Some(_) => return catch_up(tx, follower, CatchUpReason::EventsForgotten).await,
        None if follower.is_in_every_tenant() => return catch_up(tx, follower, CatchUpReason::FirstRun).await,
        None => return Ok(StepOutcome::Absent),
    };
    let mut next: Vec<Next> = sqlx::query_as(
        "SELECT number, kind, breadcrumb_id, version, at, size_bytes, number < event_horizon() AS is_complete FROM events
         WHERE owner_id = $1 AND number > $2 ORDER BY number LIMIT $3",
    )
    .bind(owner_id)
    .bind(cursor)
    .bind(STEP)
    .fetch_all(tx.connection())
    .await?;
    let read = next.len();
    next.truncate(next.iter().take_while(|next| next.is_complete).count());
    let after = if next.len() < read {
        StepOutcome::Waiting
    } else if read as i64 == STEP {
        StepOutcome::More
    } else {
        StepOutcome::Done
    };
    drop(tx);
    let mut events: Vec<EventHeader> = next.into_iter().map(|next| next.event).collect();
    if events.is_empty() {
        return Ok(after);
    }
    let (prepared, prepared_for) = follower.prepare(owner_id, &events).await?;
    let after = if prepared_for < events.len() { StepOutcome::More } else { after };
    events.truncate(prepared_for.max(1));
    let Some(last) = events.last().map(|event| event.number) else { return Ok(after) };
    // A crash loses the work and the cursor together, or neither.
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    follower.take(&mut tx, &events, prepared).await?;
    // The last write: until here no lock is held that others wait for.
    let moved = sqlx::query(
        "UPDATE event_cursors SET number = $4, moved_at = now() WHERE owner_id = $1 AND follower = $2 AND number = $3",
    )
    .bind(owner_id)
    .bind(follower.name())
    .bind(cursor)
    .bind(last)
    .execute(tx.connection())
    .await?;
    if moved.rows_affected() == 0 {
        return Ok(StepOutcome::Overtaken);
    }
    tx.commit().await?;
    follower.stepped(owner_id);
    Ok(after)
}

/// Changes after the start of this read arrive as events.
async fn catch_up<F: Follower>(mut tx: TenantTransaction, follower: &F, missed: CatchUpReason) -> Result<StepOutcome> {
    let owner_id = tx.owner_id;
    let present = present(&mut tx).await?;
    follower.catch_up(&mut tx, missed).await?;
    sqlx::query(
        "INSERT INTO event_cursors (owner_id, follower, number) VALUES ($1, $2, $3)
         ON CONFLICT (owner_id, follower) DO UPDATE SET number = greatest(event_cursors.number, EXCLUDED.number),
            moved_at = now()",
    )
    .bind(owner_id)
    .bind(follower.name())
    .bind(present)
    .execute(tx.connection())
    .await?;
    tx.commit().await?;
    follower.stepped(owner_id);
    Ok(StepOutcome::More)
}

async fn present(tx: &mut TenantTransaction) -> Result<i64> {
    Ok(sqlx::query_scalar("SELECT event_horizon() - 1").fetch_one(tx.connection()).await?)
}

/// Starts a follower in this tenant, in this transaction, with what commits from now on, unless it
/// already exists. Returns the number before the first event that it can receive.
pub(crate) async fn begin_at_present(tx: &mut TenantTransaction, follower: &str) -> Result<i64> {
    let owner_id = tx.owner_id;
    let present = present(tx).await?;
    sqlx::query(
        "INSERT INTO event_cursors (owner_id, follower, number) VALUES ($1, $2, $3)
         ON CONFLICT (owner_id, follower) DO NOTHING",
    )
    .bind(owner_id)
    .bind(follower)
    .bind(present)
    .execute(tx.connection())
    .await?;
    Ok(present)
}
