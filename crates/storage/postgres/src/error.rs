use std::path::PathBuf;

use nix::unistd::{Uid, User};

use crate::LockHolder;

/// Why Postgres is not available. The messages are for the user at the terminal.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error("the data folder {} is in use by {holder}", data_dir.display())]
    Held { data_dir: PathBuf, holder: Box<LockHolder> },

    #[error("no Postgres with pgvector was found; from the package index: {wheel}; on this machine: {machine}")]
    NotFound { wheel: String, machine: String },

    #[error(
        "Postgres refuses to run as root; user namespaces are not available ({namespace}), and neither is another user ({user}); \
         run as an ordinary user, or name a database with --database-url"
    )]
    AsRoot { namespace: String, user: String },

    #[error("the data folder {} is not a folder; name another one, or move it away", path.display())]
    NotAFolder { path: PathBuf },

    #[error(
        "{} belongs to another user ({}); run as that user, or choose another data folder; if the data is yours, stop the \
         processes that use it and change its owner with chown -R",
        path.display(),
        user(*owner)
    )]
    ForeignOwner { path: PathBuf, owner: u32 },

    #[error("cannot {what} {}: {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },

    #[error("cannot run {program}: {source}")]
    Run { program: String, source: std::io::Error },

    #[error("{step} failed: {output}")]
    Step { step: &'static str, output: String },

    #[error("{} does not look like a Postgres cluster; move it away, or choose another data folder", path.display())]
    NotACluster { path: PathBuf },

    #[error("Postgres did not start: {log}")]
    NotStarted { log: String },

    #[error("Postgres (process {pid}), left over from an earlier run, does not stop")]
    LeftoverStays { pid: i32 },

    #[error("Postgres could not be kept running ({attempts} attempts in a row failed): {log}")]
    GaveUp { attempts: u32, log: String },

    #[error("Postgres was stopped")]
    Stopped,
}

fn user(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => format!("{}, uid {uid}", user.name),
        _ => format!("uid {uid}"),
    }
}
