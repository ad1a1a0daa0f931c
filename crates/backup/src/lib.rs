//! Writes a database into one file, and restores it: the archive of `pg_dump`, with a manifest and
//! an HMAC around it.
//!
//! A backup shows one moment, even while others write. What is encrypted in the database is
//! encrypted in the file. This crate deliberately knows nothing about tables, tenants and key
//! files. The caller fills in the manifest, checks it, and decides which database is overwritten.
//!
//! Begin with `file.rs` (the format), `dump.rs` and `load.rs`.

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

/// A database, and the programs that read and write it.
#[derive(Debug, Clone)]
pub struct Database {
    /// A Postgres URL of a user that owns the tables.
    pub url: String,
    /// The folder of `pg_dump` and `pg_restore`, of the server's version or a later one.
    pub programs: PathBuf,
}

/// Why a backup was not written, or not restored. The texts are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("{} is there already", path.display())]
    Exists { path: PathBuf },
    #[error("{} is no backup", path.display())]
    NoBackup { path: PathBuf },
    #[error("{} is of a format that this version does not know ({format}); a newer one wrote it", path.display())]
    Format { path: PathBuf, format: u32 },
    #[error("{} is damaged: {what}; nothing was written", path.display())]
    Damaged { path: PathBuf, what: &'static str },
    #[error(
        "{} was written by a version that did not authenticate backups: nobody can tell whether it was changed; nothing \
         was written",
        path.display()
    )]
    Unauthenticated { path: PathBuf },
    #[error("{} is authenticated with the key {key}, which is not at hand; nothing was written", path.display())]
    KeyMissing { path: PathBuf, key: String },
    #[error(
        "{} was changed, or written by somebody without the key {key}: it does not carry that key's proof; nothing was \
         written",
        path.display()
    )]
    Forged { path: PathBuf, key: String },
    #[error("{program} cannot be run: {source}")]
    Run { program: String, source: std::io::Error },
    #[error("{program} failed: {output}")]
    Failed { program: &'static str, output: String },
    #[error("the database's address is no URL")]
    Url,
}

fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> BackupError + '_ {
    move |source| BackupError::File { path: path.to_owned(), source }
}
