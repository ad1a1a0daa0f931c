//! Restores a backup file to a database.

use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::program::{failure, spawn};
use crate::{Backup, BackupError, Database};

/// Restores the backup's tables into a database without tables, in one transaction. The database's
/// user owns them afterwards. The archive's statements run with that user's rights, so it must be
/// an ordinary user. Extensions must already exist. Comments are left out, because only the owner
/// of an extension can comment on it.
pub async fn load(backup: &Backup, database: &Database) -> Result<(), BackupError> {
    let mut archive = backup.archive()?;
    let mut command = database.command("pg_restore")?;
    command.args(["--format=custom", "--no-owner", "--no-comments", "--exit-on-error", "--single-transaction"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = spawn(command)?;
    let (Some(input), Some(mut stderr_pipe)) = (child.stdin.take(), child.stderr.take()) else {
        return Err(failure("pg_restore", b"its input cannot be written"));
    };
    let writing = async {
        let mut input = input;
        loop {
            match archive.part() {
                // If pg_restore stopped early, its status and stderr say why.
                Ok(part) if part.is_empty() || input.write_all(&part).await.is_err() => return Ok(()),
                Ok(_) => {}
                Err(error) => {
                    // Kill it before it sees the end of the archive, so that nothing is committed.
                    child.kill().await?;
                    return Err(error);
                }
            }
        }
    };
    let mut stderr = Vec::new();
    let (written, read) = tokio::join!(writing, stderr_pipe.read_to_end(&mut stderr));
    let run = |source| BackupError::Run { program: "pg_restore".into(), source };
    written.map_err(run)?;
    read.map_err(run)?;
    let status = child.wait().await.map_err(run)?;
    if status.success() { Ok(()) } else { Err(failure("pg_restore", &stderr)) }
}
