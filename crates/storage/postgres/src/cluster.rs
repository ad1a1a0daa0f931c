use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::account::Account;
use crate::install::Installed;
use crate::{DATABASE, PostgresError, ProgressFn, SUPERUSER, at, ownership};

/// The settings of a new cluster. The operator can edit `postgresql.conf` afterwards. Settings that
/// must always apply are on the server's command line.
const SETTINGS: &[(&str, &str)] = &[
    ("max_connections", "100"),
    ("shared_buffers", "128MB"),
    ("random_page_cost", "1.1"),
    ("max_wal_size", "512MB"),
    // No replication, and no base backups.
    ("wal_level", "minimal"),
    ("max_wal_senders", "0"),
    ("jit", "off"),
    // The log must not contain rows or statements, because both can contain secrets.
    ("log_min_messages", "warning"),
    ("log_min_error_statement", "panic"),
    ("log_error_verbosity", "terse"),
    ("log_line_prefix", "'%m [%p] '"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
];

/// Returns the major version of the cluster, or `None` if it does not exist.
pub(crate) fn major_version(cluster: &Path) -> Result<Option<u32>, PostgresError> {
    if !cluster.try_exists().map_err(at("access", cluster))? {
        return Ok(None);
    }
    let path = cluster.join("PG_VERSION");
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        // Report "not a cluster" only if the file certainly does not exist: a user might delete the
        // folder then.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Vec::new(),
        Err(error) => return Err(at("read", &path)(error)),
    };
    match String::from_utf8_lossy(&text).trim().parse() {
        Ok(major) => Ok(Some(major)),
        Err(_) => Err(PostgresError::NotACluster { path: cluster.to_owned() }),
    }
}

/// Creates the cluster and its empty database if there is none. It is built next to its destination
/// and then renamed, so an interrupted one is never used.
pub(crate) async fn create(
    cluster: &Path,
    installed: &Installed,
    account: &Account,
    durable: bool,
    progress: ProgressFn<'_>,
) -> Result<(), PostgresError> {
    if cluster.exists() {
        return Ok(());
    }
    progress(&format!("Preparing a new database (Postgres {})", installed.version));
    let draft = cluster.with_extension("draft");
    if draft.exists() {
        std::fs::remove_dir_all(&draft).map_err(at("clear", &draft))?;
    }
    std::fs::create_dir(&draft).map_err(at("create", &draft))?;
    ownership::set_owner(&draft, account)?;
    initialise(&draft, installed, account, durable).await?;
    configure(&draft)?;
    create_database(&draft, installed, account, durable).await?;
    std::fs::rename(&draft, cluster).map_err(at("rename the new cluster to", cluster))
}

async fn initialise(
    draft: &Path,
    installed: &Installed,
    account: &Account,
    durable: bool,
) -> Result<(), PostgresError> {
    let mut command = account.command(&installed.bin.join("initdb"), false);
    command.arg("--pgdata").arg(draft);
    command.args(["--username", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--data-checksums", "--no-instructions"]);
    // The built-in provider sorts the same on every machine and needs no installed locale.
    if installed.major >= 17 {
        command.args(["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]);
    } else {
        command.arg("--locale=C.UTF-8");
    }
    if !durable {
        command.arg("--no-sync");
    }
    finish("initdb", &mut command, None).await
}

fn configure(draft: &Path) -> Result<(), PostgresError> {
    let path: PathBuf = draft.join("postgresql.conf");
    let mut text = std::fs::read_to_string(&path).map_err(at("read", &path))?;
    text.push_str("\n# Set when this cluster was created. You can change these.\n");
    for (name, value) in SETTINGS {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = {value}");
    }
    std::fs::write(&path, text).map_err(at("write", &path))
}

/// Uses a standalone backend, so that no server has to be started for one statement.
async fn create_database(
    draft: &Path,
    installed: &Installed,
    account: &Account,
    durable: bool,
) -> Result<(), PostgresError> {
    let mut command = account.command(&installed.bin.join("postgres"), false);
    command.args(["--single", "-D"]).arg(draft);
    command.args(["-c", "exit_on_error=on"]);
    if !durable {
        command.args(["-c", "fsync=off"]);
    }
    command.arg("postgres");
    finish("creating the database", &mut command, Some(&format!("CREATE DATABASE {DATABASE}\n"))).await
}

async fn finish(step: &'static str, command: &mut Command, input: Option<&str>) -> Result<(), PostgresError> {
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).process_group(0);
    let run = |source| PostgresError::Run { program: step.to_owned(), source };
    let mut child = command.spawn().map_err(run)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // If the child has already exited, its status says why.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await.map_err(run)?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).rev().take(6).collect();
    lines.reverse();
    let output = if lines.is_empty() { output.status.to_string() } else { lines.join(" | ") };
    Err(PostgresError::Step { step, output })
}
