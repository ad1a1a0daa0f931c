//! Writes a database into one file, and restores it: the archive of `pg_dump`, with a manifest and
//! an HMAC around it.
//!
//! A backup shows one moment, even while others write. What is encrypted in the database is
//! encrypted in the file. This crate deliberately knows nothing about tables, tenants and key
//! files. The caller fills in the manifest, checks it, and decides which database is overwritten.
//!
//! Begin with `file.rs` (the format), `dump.rs` and `load.rs`.
//!
//! # Example
//! ```no_run
//! use std::path::Path;
//!
//! use rcrt_backup::{BackupError, BackupKey, Database, Manifest, Proof};
//!
//! /// `secret`: the key that encrypts the secrets of the database, and its `id`.
//! async fn copy(
//!     from: &Database,
//!     manifest: &Manifest,
//!     to: &Database,
//!     (id, secret): (&str, &[u8; 32]),
//! ) -> Result<(), BackupError> {
//!     let key = BackupKey::derive(id, secret)?;
//!     let file = Path::new("backup.rcrt");
//!     rcrt_backup::write(from, manifest, file, &key).await?;
//!     // Refused if the file was damaged, or written without the key.
//!     let backup = rcrt_backup::open(file, Proof::Keys(&[key]))?;
//!     rcrt_backup::load(&backup, to).await
//! }
//! ```

mod dump;
mod file;
mod key;
mod load;
mod manifest;
mod program;

use std::path::PathBuf;

pub use dump::write;
pub use file::{Backup, Proof, open};
pub use key::BackupKey;
pub use load::load;
pub use manifest::Manifest;

/// A database, and the programs that back it up and restore it.
#[derive(Debug, Clone)]
pub struct Database {
    /// A Postgres URL of a user that owns the tables.
    pub url: String,
    /// The folder of `pg_dump` and `pg_restore`, of the server's version or a later one.
    pub programs: PathBuf,
}

/// Why a backup was not written or not restored. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error(
        "{} already exists; name another file, such as one with the date: backup-$(date +%F).rcrt",
        path.display()
    )]
    Exists { path: PathBuf },
    #[error("{} is not a backup", path.display())]
    NoBackup { path: PathBuf },
    #[error("{} has the format {format}, which this version does not support; use the newer version that wrote it", path.display())]
    Format { path: PathBuf, format: u32 },
    #[error("{} is damaged: {what}; nothing was written", path.display())]
    Damaged { path: PathBuf, what: &'static str },
    #[error(
        "{} was written by a version that did not authenticate backups, so changes cannot be detected; nothing was written",
        path.display()
    )]
    Unauthenticated { path: PathBuf },
    #[error("{} is authenticated with the key {key}, which is not available; nothing was written", path.display())]
    KeyMissing { path: PathBuf, key: String },
    #[error(
        "{} was changed, or written without the key {key}: its HMAC does not match that key; nothing was written",
        path.display()
    )]
    Forged { path: PathBuf, key: String },
    #[error("the key that authenticates backups cannot be derived from the key {key}")]
    Derivation { key: String },
    #[error("{program} cannot be run: {source}")]
    Run { program: String, source: std::io::Error },
    #[error("{program} failed: {output}")]
    Failed { program: &'static str, output: String },
    #[error("the database URL is not valid")]
    Url,
}

fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> BackupError + '_ {
    move |source| BackupError::File { path: path.to_owned(), source }
}
