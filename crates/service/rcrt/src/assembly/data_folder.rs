//! The data folder of this process and its keys. It is locked before anything is started.

use std::path::{Path, PathBuf};

use anyhow::Context;
use rcrt_postgres::DataLock;

use crate::keys::Keys;

/// A data folder that is locked by this process.
pub struct DataFolder {
    pub lock: DataLock,
    pub keys: Keys,
}

impl DataFolder {
    /// Locks the folder, or returns an error that names the holder.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        let lock = DataLock::acquire(path)?;
        if Self::unfinished_restore(lock.data_dir()).exists() {
            anyhow::bail!(
                "a restore into {} was interrupted, so its database is incomplete; run `rcrt restore` with --replace",
                lock.data_dir().display()
            );
        }
        let keys = Keys::open(lock.data_dir())?;
        Ok(Self { lock, keys })
    }

    /// The marker file of a restore in progress. No server starts on a folder that has it.
    pub fn unfinished_restore(data: &Path) -> PathBuf {
        data.join("restore-unfinished")
    }

    pub fn path(&self) -> PathBuf {
        self.lock.data_dir().to_owned()
    }

    /// Writes the address of this process for other processes.
    pub fn announce(&mut self, base_url: &str) -> anyhow::Result<()> {
        let base_url = base_url.trim_end_matches('/');
        self.lock.set_listening(base_url)?;
        let file = self.lock.data_dir().join("address");
        crate::keys::replace_private(&file, format!("{base_url}\n").as_bytes())
            .with_context(|| format!("{} cannot be written", file.display()))
    }
}
