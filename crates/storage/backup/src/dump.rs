//! Writes the database to a backup file.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncReadExt;

use crate::file::Draft;
use crate::program::{failure, spawn};
use crate::{BackupError, BackupKey, Database, Manifest};

/// Writes a consistent backup to a new file that only its owner can read. Returns its length in
/// bytes. A failed backup leaves no file. Sets the manifest's format and key.
pub async fn write(database: &Database, manifest: &Manifest, path: &Path, key: &BackupKey) -> Result<u64, BackupError> {
    let mut draft = Draft::begin(path, manifest, key)?;
    match copy(database, &mut draft).await {
        Ok(()) => draft.finish(),
        Err(error) => {
            draft.give_up();
            Err(error)
        }
    }
}

async fn copy(database: &Database, draft: &mut Draft) -> Result<(), BackupError> {
    let mut command = database.command("pg_dump")?;
    // The server that restores it may not have the compression of this one.
    command
        .args(["--format=custom", "--no-owner", "--no-toast-compression"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = spawn(command)?;
    let (Some(archive), Some(mut stderr_pipe)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failure("pg_dump", b"its output cannot be read"));
    };
    let mut stderr = Vec::new();
    let reading = async {
        // Moved in, so that the pipe closes when a write fails. Otherwise pg_dump would block on
        // its pipe while we wait for its stderr.
        let mut archive = archive;
        let mut part = vec![0; 256 * 1024];
        loop {
            match archive.read(&mut part).await {
                Ok(0) | Err(_) => return Ok(()),
                // Blocking, but usually only a copy into the page cache.
                Ok(read) => draft.add(&part[..read])?,
            }
        }
    };
    let (copied, _) = tokio::join!(reading, stderr_pipe.read_to_end(&mut stderr));
    copied?;
    let status = child.wait().await.map_err(|source| BackupError::Run { program: "pg_dump".into(), source })?;
    if status.success() { Ok(()) } else { Err(failure("pg_dump", &stderr)) }
}
