//! A lock: one process migrates at a time.

use std::time::Duration;

use sqlx::PgConnection;

use super::Progress;

/// Between two looks whether another has done its work.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until no other process migrates this database, and holds the lock until the connection
/// ends.
///
/// The lock is asked for again and again: a statement that waits for it would hold a snapshot, and a
/// `CREATE INDEX CONCURRENTLY` of the one that has it would wait for that. It is the lock that sqlx takes, so that
/// versions of this program from before take turns with it too.
pub(super) async fn take(connection: &mut PgConnection, progress: Progress<'_>) -> Result<(), sqlx::Error> {
    let name: String = sqlx::query_scalar("SELECT current_database()").fetch_one(&mut *connection).await?;
    let key = 0x3d32_ad9e * i64::from(crc32(name.as_bytes()));
    let mut is_told = false;
    while !sqlx::query_scalar::<_, bool>("SELECT pg_try_advisory_lock($1)")
        .bind(key)
        .fetch_one(&mut *connection)
        .await?
    {
        if !is_told {
            progress("Waiting for another server that applies migrations");
            is_told = true;
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
    fn the_checksum_is_the_usual_one() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
    }
}
