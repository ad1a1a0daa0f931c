//! From the file to the database.

use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::program::{failure, spawn};
use crate::{Backup, BackupError, Database};

/// Puts the backup's tables into a database that has none of them, in one transaction: all of it or nothing. All of them
/// belong to the database's user then, and what the archive says is done with that user's rights: let it be an ordinary
/// one. Extensions must be there already; comments are left out, since those on extensions are their owner's.
pub async fn load(backup: &Backup, database: &Database) -> Result<(), BackupError> {
    let mut archive = backup.archive()?;
    let mut command = database.command("pg_restore")?;
    command.args(["--format=custom", "--no-owner", "--no-comments", "--exit-on-error", "--single-transaction"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = spawn(command)?;
    let (Some(input), Some(mut said)) = (child.stdin.take(), child.stderr.take()) else {
        return Err(failure("pg_restore", b"it takes no input"));
    };
    let writing = async {
        let mut input = input;
        loop {
            match archive.part() {
                // One that ended early says why on its own.
                Ok(part) if part.is_empty() || input.write_all(&part).await.is_err() => return Ok(()),
                Ok(_) => {}
                Err(error) => {
                    // Before it sees the archive's end, so nothing is committed.
                    child.kill().await?;
                    return Err(error);
                }
            }
        }
    };
    let mut stderr = Vec::new();
    let (written, read) = tokio::join!(writing, said.read_to_end(&mut stderr));
    let run = |source| BackupError::Run { program: "pg_restore".into(), source };
    written.map_err(run)?;
    read.map_err(run)?;
    let status = child.wait().await.map_err(run)?;
    if status.success() { Ok(()) } else { Err(failure("pg_restore", &stderr)) }
}
