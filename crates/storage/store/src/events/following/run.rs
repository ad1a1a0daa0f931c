//! A follower's task: holds or waits for the lease, and visits the tenants that have new events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::StoreError;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Follower;
use super::step::{StepOutcome, step};
use super::watch::Watch;
use crate::database::failure::Result;
use crate::events::EventStreams;

/// How long other processes wait before they take over from one that crashed.
const LEASE: Duration = Duration::from_secs(10);
/// The poll interval for the lease, and for events without a wake-up.
const POLL: Duration = Duration::from_secs(1);
/// The poll interval for events that wait for an older transaction.
const PENDING_POLL: Duration = Duration::from_millis(25);

/// Until the store is closed.
pub(crate) async fn run<F: Follower>(streams: Arc<EventStreams>, follower: Arc<F>) {
    let who = Uuid::new_v4();
    let stop = streams.database.stop.clone();
    // A step that is dropped early is rolled back.
    tokio::select! {
        () = stop.cancelled() => {}
        () = follow(&streams, &*follower, who) => {}
    }
    if let Err(failure) = leave(&streams, &*follower, who).await {
        tracing::debug!(error = %StoreError::from(failure), "a follower's lease was not released; it expires");
    }
}

async fn follow<F: Follower>(streams: &Arc<EventStreams>, follower: &F, who: Uuid) {
    let watch = streams.feeds.watches.watch();
    let mut is_failing = false;
    loop {
        let round = round(streams, follower, who, &watch, &mut is_failing).await;
        match round {
            Ok(()) => {}
            Err(failure) => {
                // A database that is unreachable for a while causes one log line.
                if !is_failing {
                    let error = StoreError::from(failure);
                    tracing::warn!(follower = follower.name(), %error, "events cannot be followed; retrying");
                    is_failing = true;
                }
                sleep(POLL).await;
            }
        }
    }
}

/// From one check of the lease to the next.
async fn round<F: Follower>(
    streams: &Arc<EventStreams>,
    follower: &F,
    who: Uuid,
    watch: &Watch,
    is_failing: &mut bool,
) -> Result<()> {
    let looked_at = Instant::now();
    let turn = turn(streams, follower, who).await?;
    let Some(mut tenants) = turn else {
        watch.take();
        sleep(POLL).await;
        return Ok(());
    };
    // Tenants that are skipped until the next poll: those that failed, and those without this
    // follower.
    let (mut failed, mut absent) = (HashSet::new(), HashSet::new());
    loop {
        tenants.extend(watch.take());
        tenants.retain(|tenant| !failed.contains(tenant) && !absent.contains(tenant));
        // One page of each tenant at a time, so that no tenant waits for another's backlog.
        let mut is_waiting = false;
        for tenant in tenants.clone() {
            match step(&streams.database, follower, tenant).await {
                Ok(StepOutcome::Done) => {
                    tenants.remove(&tenant);
                }
                Ok(StepOutcome::Absent) => {
                    tenants.remove(&tenant);
                    absent.insert(tenant);
                }
                Ok(StepOutcome::More) => {}
                Ok(StepOutcome::Waiting | StepOutcome::Overtaken) => is_waiting = true,
                Err(failure) if failure.is_unreachable() => return Err(failure),
                // A failure in one tenant must not stop the others.
                Err(failure) => {
                    tenants.remove(&tenant);
                    failed.insert(tenant);
                    if !*is_failing {
                        let error = StoreError::from(failure);
                        tracing::warn!(follower = follower.name(), %tenant, %error, "events of a tenant cannot be followed; retrying");
                        *is_failing = true;
                    }
                }
            }
        }
        let rest = (looked_at + POLL).saturating_duration_since(Instant::now());
        if rest.is_zero() {
            *is_failing &= !failed.is_empty();
            return Ok(());
        }
        if is_waiting {
            sleep(PENDING_POLL.min(rest)).await;
        } else if tenants.is_empty() {
            tokio::select! {
                () = watch.changed() => sleep(follower.batch_delay()).await,
                () = sleep(rest) => {}
            }
        }
    }
}

/// The tenants with something new, or `None` while another process holds the lease.
async fn turn<F: Follower>(streams: &Arc<EventStreams>, follower: &F, who: Uuid) -> Result<Option<HashSet<Uuid>>> {
    let mut tx = streams.database.begin("BEGIN; SET LOCAL synchronous_commit = off").await?;
    let rows: Vec<(bool, Option<Uuid>)> = sqlx::query_as("SELECT * FROM follow_events($1, $2, $3, $4)")
        .bind(follower.name())
        .bind(who)
        .bind(LEASE.as_secs_f64() * 1000.0)
        .bind(follower.is_in_every_tenant())
        .fetch_all(&mut *tx)
        .await?;
    tx.commit().await?;
    if !rows.first().is_some_and(|(is_held, _)| *is_held) {
        return Ok(None);
    }
    Ok(Some(rows.into_iter().filter_map(|(_, tenant)| tenant).collect()))
}

async fn leave<F: Follower>(streams: &Arc<EventStreams>, follower: &F, who: Uuid) -> Result<()> {
    let mut tx = streams.database.begin("BEGIN").await?;
    sqlx::query("SELECT stop_following($1, $2)").bind(follower.name()).bind(who).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(())
}
