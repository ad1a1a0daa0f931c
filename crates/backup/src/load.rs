//! From the file to the database.

use std::io::Read;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;

use crate::program::{failure, spawn};
use crate::{Backup, BackupError, Database};

/// Puts the backup's tables into a database that has none of them, in one transaction: all of it or nothing.
pub async fn load(backup: &Backup, database: &Database) -> Result<(), BackupError> {
    let mut archive = backup.archive()?;
    let mut command = database.command("pg_restore")?;
    command.args(["--format=custom", "--no-owner", "--exit-on-error", "--single-transaction"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = spawn(command)?;
    let Some(mut input) = child.stdin.take() else { return Err(failure("pg_restore", b"it takes no input")) };
    let writing = async move {
        let mut part = vec![0; 256 * 1024];
        loop {
            let read = archive.read(&mut part)?;
            // One that ended early says why on its own.
            if read == 0 || input.write_all(&part[..read]).await.is_err() {
                return std::io::Result::Ok(());
            }
        }
    };
    let (written, ended) = tokio::join!(writing, child.wait_with_output());
    let run = |source| BackupError::Run { program: "pg_restore".into(), source };
    written.map_err(run)?;
    let output = ended.map_err(run)?;
    if output.status.success() { Ok(()) } else { Err(failure("pg_restore", &output.stderr)) }
}
