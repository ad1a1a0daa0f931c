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
/// CONCURRENTLY` of the lock's holder would wait for that. The lock is the one that sqlx takes, so
/// older versions of this program respect it too.
pub(super) async fn take(connection: &mut PgConnection, progress: Progress<'_>) -> Result<(), sqlx::Error> {
    let name: String = sqlx::query_scalar("SELECT current_database()").fetch_one(&mut *connection).await?;
    let key = 0x3d32_ad9e * i64::from(crc32(name.as_bytes()));
    let mut is_reported = false;
    while !sqlx::query_scalar::<_, bool>("SELECT pg_try_advisory_lock($1)")
        .bind(key)
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

/// CRC-32 as in zip and PNG.
fn crc32(bytes: &[u8]) -> u32 {
    let shifted = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shifted))
}

#[cfg(test)]
mod tests {
    #[test]
    fn crc32_matches_the_standard_check_value() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
    }
}
