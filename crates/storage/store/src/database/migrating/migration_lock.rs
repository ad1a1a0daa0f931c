//! A lock: one process migrates at a time.

use std::time::Duration;

use sqlx::PgConnection;

use super::Progress;

/// The pause between two attempts to get the lock.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until no other process migrates this database, and holds the lock until the connection
/// closes.
///
/// It polls, because a statement that waits for the lock would hold a snapshot, and a `CREATE INDEX
/// CONCURRENTLY` of the lock's holder would wait for that.
pub(super) async fn acquire(connection: &mut PgConnection, progress: Progress<'_>) -> Result<(), sqlx::Error> {
    let mut is_reported = false;
    while !sqlx::query_scalar::<_, bool>("SELECT pg_try_advisory_lock(hashtext('rcrt.migrate'))")
        .fetch_one(&mut *connection)
        .await?
    {
        if !is_reported {
            progress("Waiting for another server to finish its migrations");
            is_reported = true;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
