//! Background work: lost runners, requests past their deadline, expired records, old events.
//!
//! Several servers can do it at the same time: each piece of work locks its rows.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use rcrt_breadcrumb::StoreError;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::calls::{self, egress_log, stats};
use crate::database::Database;
use crate::database::batches::{repeat, tenants, tenants_before};
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::records::{event_ranges, expiry, prune, purge};
use crate::rights::tokens;
use crate::store::Inner;
use crate::transfer::archive;
use crate::{Retention, Store, retention};

/// The longest time until a lost runner or an expired record is noticed.
const SWEEP: Duration = Duration::from_secs(1);
/// The most time of a sweep that is spent on expired records.
const EXPIRING: Duration = Duration::from_millis(500);
const EXPIRED_LEASES: &str = "SELECT tenants_with_expired_leases()";
const PASSED_DEADLINES: &str = "SELECT tenants_with_passed_deadlines()";
const ORPHANS: &str = "SELECT tenants_with_orphans()";
const PRUNE: Duration = Duration::from_mins(1);
/// The most time of one prune that is spent on the old calls, and on the old versions, of a tenant.
const PRUNING: Duration = Duration::from_secs(2);

impl Store {
    /// Requeues or finishes every call whose lease has expired, in all tenants. Returns how many.
    /// The store does so every second.
    pub async fn rescue(&self) -> Result<usize, StoreError> {
        Ok(in_each(&self.inner.database, EXPIRED_LEASES, calls::rescue).await?)
    }

    /// Writes the response to every queued request that is past its deadline, in all tenants.
    /// Returns how many. The store does so every second.
    pub async fn time_out_overdue(&self) -> Result<usize, StoreError> {
        Ok(in_each(&self.inner.database, PASSED_DEADLINES, calls::time_out_overdue).await?)
    }

    /// Cancels every call that a finished call waited for, in all tenants. Returns how many. The
    /// store does so every second.
    pub async fn cancel_orphans(&self) -> Result<usize, StoreError> {
        Ok(in_each(&self.inner.database, ORPHANS, calls::cancel_orphans).await?)
    }

    /// Deletes every expired record, in all tenants. Returns how many. The store does so every
    /// second.
    pub async fn expire(&self) -> Result<usize, StoreError> {
        Ok(expire(&self.inner.database, Duration::MAX).await?)
    }

    /// Deletes requests, responses, old versions, events and entries of the egress log that are
    /// past their retention, old statistics of calls, idempotency keys older than one day, and
    /// revocations of tokens that have expired. Returns how many. Calls and events are archived
    /// before, with [`crate::StoreOptions::archive`]. The store does so every minute, unless
    /// [`crate::StoreOptions::prunes`] is off.
    pub async fn prune(&self) -> Result<usize, StoreError> {
        Ok(prune(&self.inner).await?)
    }

    /// Counts finished calls into the statistics, in all tenants. The store does so every second.
    pub async fn count_calls(&self) -> Result<(), StoreError> {
        Ok(stats::count_all(&self.inner.database).await?)
    }

    /// Deletes all rows of deleted tenants. Returns how many there were. The store also does this
    /// by itself.
    pub async fn purge(&self) -> Result<u64, StoreError> {
        Ok(purge::purge(&self.inner.database).await?)
    }
}

/// What a store does by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sweeps {
    pub(crate) is_on: bool,
    /// Whether a sweep also deletes what is past its retention.
    pub(crate) prunes: bool,
}

/// Runs until the store is closed.
pub(crate) async fn run(store: Arc<Inner>, sweeps: Sweeps) {
    maintain(&store, sweeps).await;
    // Released here and not when the store is dropped, which may happen after the runtime is gone.
    store.database.release_all();
}

async fn maintain(store: &Inner, sweeps: Sweeps) {
    let database = &store.database;
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut pruned_at: Option<Instant> = None;
    let (mut is_failing, mut has_warned) = (false, false);
    loop {
        tokio::select! {
            () = database.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        database.release_unused();
        let sweep = async {
            store.shares.refresh(database).await?;
            if !sweeps.is_on {
                return Ok::<_, crate::database::failure::Failure>(());
            }
            in_each(database, EXPIRED_LEASES, calls::rescue).await?;
            in_each(database, PASSED_DEADLINES, calls::time_out_overdue).await?;
            in_each(database, ORPHANS, calls::cancel_orphans).await?;
            stats::count_all(database).await?;
            let expired = expire(database, EXPIRING).await;
            if sweeps.prunes && pruned_at.is_none_or(|at| at.elapsed() >= PRUNE) {
                // Also if it fails: what cannot be archived is tried again a minute later.
                pruned_at = Some(Instant::now());
                if retention::record(database, store.retention, store.archive.is_some()).await? && !has_warned {
                    tracing::warn!("{}", retention::OTHER_OPTIONS);
                    has_warned = true;
                }
                prune(store).await?;
            }
            expired?;
            Ok::<_, crate::database::failure::Failure>(())
        };
        let result = tokio::select! {
            () = database.stop.cancelled() => return,
            result = sweep => result,
        };
        match result {
            Ok(()) => is_failing = false,
            // A database that is unreachable for a while causes one log line.
            Err(failure) if !is_failing => {
                tracing::warn!(error = %StoreError::from(failure), "housekeeping failed; retrying");
                is_failing = true;
            }
            Err(_) => {}
        }
    }
}

/// Repeats the work in each tenant that the query returns. Returns how many rows were changed.
async fn in_each<F: Future<Output = Result<usize>>>(
    database: &Arc<Database>,
    of: &'static str,
    work: fn(TenantTransaction) -> F,
) -> Result<usize> {
    let mut count = 0;
    for tenant in tenants(database, of).await? {
        count += repeat(database, tenant, Duration::MAX, work).await?;
    }
    Ok(count)
}

/// Takes at most this long, so that many expired records do not delay other housekeeping.
async fn expire(database: &Arc<Database>, most: Duration) -> Result<usize> {
    let begun = Instant::now();
    let (mut count, mut failed) = (0, None);
    for tenant in tenants(database, "SELECT tenants_with_expired_records()").await? {
        // Each tenant gets at least one batch, however many records another has.
        let left = most.saturating_sub(begun.elapsed());
        match expiry::run(database, tenant, left, false).await {
            Ok(run) => count += run.total(),
            Err(failure) if failure.is_unreachable() => return Err(failure),
            // A failure in one tenant must not stop the others.
            Err(failure) => failed = Some(failure),
        }
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

async fn prune(store: &Inner) -> Result<usize> {
    let database = &store.database;
    store.quotas.forget_deleted_elsewhere(database).await?;
    let mut count = 0;
    let Retention { calls, versions, events, egress } = store.retention;
    let is_archived = store.archive.is_some();
    // Of an archive, whole days.
    let before = |kept: Duration| {
        let before = Utc::now() - kept;
        if is_archived { archive::begin_of_day(before) } else { before }
    };
    let (before_events, before_calls) = (before(events), calls.map(before));
    let archived = match &store.archive {
        Some(folder) => Box::pin(archive::run(database, folder, before_events, before_calls)).await,
        None => Ok(0),
    };
    count += event_ranges::renew(database, before_events).await?;
    for tenant in tenants_before(database, "SELECT tenants_with_old_events($1)", before_events).await? {
        let batch = |tx| prune::events(tx, before_events, is_archived);
        count += repeat(database, tenant, Duration::MAX, batch).await?;
    }
    // A tenant with many old calls leaves time for the others and for the other work of this loop.
    if let Some(before) = before_calls.filter(|_| !is_archived) {
        for tenant in tenants_before(database, "SELECT tenants_with_old_calls($1)", before).await? {
            count += repeat(database, tenant, PRUNING, |tx| prune::calls(tx, before)).await?;
        }
    }
    if let Some(versions) = versions {
        // An event shows the version that it reports.
        let before = Utc::now() - versions.max(events);
        for tenant in tenants_before(database, "SELECT tenants_with_old_versions($1)", before).await? {
            count += repeat(database, tenant, PRUNING, |tx| prune::versions(tx, before)).await?;
        }
    }
    for tenant in tenants(database, "SELECT tenants_with_expired_tokens()").await? {
        count += tokens::forget_expired(TenantTransaction::begin(database, tenant).await?).await?;
    }
    count += egress_log::prune(database, Utc::now() - egress, egress_log::MOST_ENTRIES).await?;
    count += stats::prune(database).await?;
    let before = Utc::now() - prune::KEY_RETENTION;
    for tenant in tenants_before(database, "SELECT tenants_with_old_idempotency_keys($1)", before).await? {
        count += repeat(database, tenant, Duration::MAX, |tx| prune::keys(tx, before)).await?;
    }
    // Last, so that a full disk of the archive does not stop the rest.
    Ok(count + archived?)
}
