//! The data folder of this process: locked before anything is started, with its keys.

use std::path::{Path, PathBuf};

use anyhow::Context;
use postgres::DataLock;

use crate::keys::Keys;

/// A data folder that this process alone may write to.
pub struct DataFolder {
    pub lock: DataLock,
    pub keys: Keys,
}

impl DataFolder {
    /// Takes the folder, or says who has it.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        let lock = DataLock::acquire(path)?;
        if Self::unfinished_restore(lock.data_dir()).exists() {
            anyhow::bail!(
                "a restore into {} was cut off, so its database is not whole: run `rcrt restore` with --replace",
                lock.data_dir().display()
            );
        }
        let keys = Keys::load(lock.data_dir())?;
        Ok(Self { lock, keys })
    }

    /// Marks a restore that is under way: until it has come to its end, no server starts on the folder.
    pub fn unfinished_restore(data: &Path) -> PathBuf {
        data.join("restore-unfinished")
    }

    pub fn path(&self) -> PathBuf {
        self.lock.data_dir().to_owned()
    }

    /// Tells other processes where this one is to be found.
    pub fn announce(&mut self, base_url: &str) -> anyhow::Result<()> {
        let base_url = base_url.trim_end_matches('/');
        self.lock.set_listening(base_url)?;
        let file = self.lock.data_dir().join("address");
        crate::keys::replace_private(&file, format!("{base_url}\n").as_bytes())
            .with_context(|| format!("{} cannot be written", file.display()))
    }
}
