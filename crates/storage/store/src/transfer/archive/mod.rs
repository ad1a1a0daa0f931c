//! Archives: files with what retention deletes, written before it is deleted.
//!
//! A file has a range of one tenant's events, or some of its old calls, as compressed lines of an
//! [export](super). It is made in steps. Each is one transaction under the tenant's lock: what the
//! file will have is recorded, then the file is written and is recorded as complete, then its
//! content may be deleted. So several servers take turns, and after a crash the next step makes the
//! same file again: nothing is deleted that is in no file, and nothing is in two.

mod calls;
mod events;
mod file;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, NaiveTime, Utc};
use rcrt_breadcrumb::StoreError;
use tokio::time::Instant;
use uuid::Uuid;

use crate::database::Database;
use crate::database::batches::tenants_before;
use crate::database::failure::{Failure, Result};
use crate::database::transaction::TenantTransaction;

/// After this time, a run begins no other file with calls, or with events, of a tenant.
const ARCHIVING: Duration = Duration::from_secs(2);

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It deleted so many records, or prepared the next step of the same file.
    Continued(usize),
    /// A file is done.
    Finished,
    /// Nothing is left to do now, or another server does it.
    Nothing,
}

/// Archives events and calls from before these times, in all tenants, and deletes the calls.
/// Returns how many records were deleted. A failure in one tenant does not stop the others.
pub(crate) async fn run(
    database: &Arc<Database>,
    folder: &Path,
    events_before: DateTime<Utc>,
    calls_before: Option<DateTime<Utc>>,
) -> Result<usize> {
    let (mut count, mut failed) = (0, None);
    for tenant in tenants_before(database, "SELECT tenants_with_events_to_archive($1)", events_before).await? {
        let done = repeat(|| Box::pin(events::step(database, folder, tenant, events_before))).await;
        note(done, &mut count, &mut failed)?;
    }
    if let Some(before) = calls_before {
        for tenant in tenants_before(database, "SELECT tenants_with_calls_to_archive($1)", before).await? {
            let done = repeat(|| Box::pin(calls::step(database, folder, tenant, before))).await;
            note(done, &mut count, &mut failed)?;
        }
    }
    failed.map_or(Ok(count), Err)
}

/// The begin of the day of this time: files have whole days, so that there are few of them.
pub(crate) fn begin_of_day(time: DateTime<Utc>) -> DateTime<Utc> {
    time.date_naive().and_time(NaiveTime::MIN).and_utc()
}

async fn repeat<F: Future<Output = Result<Step>>>(step: impl Fn() -> F) -> Result<usize> {
    let (begun, mut count) = (Instant::now(), 0);
    loop {
        match step().await? {
            Step::Continued(deleted) => count += deleted,
            Step::Finished if begun.elapsed() < ARCHIVING => {}
            Step::Finished | Step::Nothing => return Ok(count),
        }
    }
}

/// Only an unreachable database is returned at once.
fn note(done: Result<usize>, count: &mut usize, failed: &mut Option<Failure>) -> Result<()> {
    match done {
        Ok(some) => *count += some,
        Err(failure) if failure.is_unreachable() => return Err(failure),
        Err(failure) => *failed = Some(failure),
    }
    Ok(())
}

/// Begins a step. `None` if another server is in one, or the tenant was deleted. The lock ends with
/// the transaction, also if this process is killed.
async fn begin(database: &Arc<Database>, tenant: Uuid) -> Result<Option<(TenantTransaction, String)>> {
    let mut tx = TenantTransaction::begin(database, tenant).await?;
    let name: Option<String> = sqlx::query_scalar(
        "SELECT CASE WHEN pg_try_advisory_xact_lock(hashtextextended('rcrt.archive ' || current_tenant(), 0))
            THEN (SELECT t.name FROM find_tenant(current_tenant()) t) END",
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(name.map(|name| (tx, name)))
}

/// Ends a step that found nothing to do. A transaction that is only dropped keeps the tenant's lock
/// for a moment, and the next step would take it for another server's.
async fn nothing(tx: TenantTransaction) -> Result<Step> {
    tx.commit().await?;
    Ok(Step::Nothing)
}

/// The name of a file: the tenant's folder, what it has, the day and the range.
fn file_name(tenant: Uuid, name: &str, kind: &str, day: DateTime<Utc>, range: &str) -> String {
    let is_plain = |text: &str| {
        !text.starts_with('.') && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let folder = if is_plain(name) { name.to_owned() } else { tenant.to_string() };
    format!("{folder}/{kind}-{}-{range}.jsonl.gz", day.format("%Y-%m-%d"))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    StoreError::Unavailable(format!(
        "the archive {} cannot be written: {error}; until it can, calls and events are kept",
        path.display()
    ))
    .into()
}
