//! From the database to the file.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncReadExt;

use crate::file::Draft;
use crate::program::{failure, spawn};
use crate::{BackupError, BackupKey, Database, Manifest};

/// Writes a backup to a file that is not there yet, as it stands at one moment; only its owner may read it. Gives its
/// length in bytes. What does not come to its end leaves no file. The manifest's format and key are set here.
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
    command.args(["--format=custom", "--no-owner"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = spawn(command)?;
    let (Some(archive), Some(mut said)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failure("pg_dump", b"it has no output"));
    };
    let mut stderr = Vec::new();
    let reading = async {
        // Closed when the file takes no more: else pg_dump would wait for its pipe, and we for what it says.
        let mut archive = archive;
        let mut part = vec![0; 256 * 1024];
        loop {
            match archive.read(&mut part).await {
                Ok(0) | Err(_) => return Ok(()),
                // To a file of this machine, as a rule into its memory.
                Ok(read) => draft.add(&part[..read])?,
            }
        }
    };
    let (copied, _) = tokio::join!(reading, said.read_to_end(&mut stderr));
    copied?;
    let status = child.wait().await.map_err(|source| BackupError::Run { program: "pg_dump".into(), source })?;
    if status.success() { Ok(()) } else { Err(failure("pg_dump", &stderr)) }
}
