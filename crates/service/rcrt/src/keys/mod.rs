//! The keys of a data folder, readable by their owner alone and never shown: the keys that sign
//! tokens, and the key-encryption keys of secrets.
//!
//! `<kind>.key` is the current key. `<kind>-<id>.key` are older keys, which still verify and
//! decrypt. `<kind>-next.key` is the next one; it verifies and decrypts already. A server polls the
//! folder.

mod files;
mod key_file;
mod ring;
mod watch;

use std::path::{Path, PathBuf};

use rcrt_server::TokenKey;
use rcrt_store::{SecretsKey, SecretsKeys};

pub use files::replace_private;
pub use key_file::KeyFile;
pub use ring::{KeyKind, Keyring};

use watch::KeyWatcher;

/// The keys in `<data>/keys`.
pub struct Keys {
    folder: PathBuf,
}

impl Keys {
    /// Loads the keys, and creates missing ones. For a database that can have secrets, use
    /// [`Self::open`].
    pub fn load(data: &Path) -> anyhow::Result<Self> {
        let keys = Self::open(data)?;
        keys.create_secrets_key()?;
        Ok(keys)
    }

    /// Loads the keys, and creates a missing key of tokens. A key of secrets is not created: the
    /// database can have secrets under one that was lost.
    pub fn open(data: &Path) -> anyhow::Result<Self> {
        let keys = Self { folder: files::private_folder(data)? };
        files::create(&keys.ring(KeyKind::Tokens).present())?;
        keys.ring(KeyKind::Tokens).load()?;
        keys.ring(KeyKind::Secrets).ids()?;
        Ok(keys)
    }

    /// Creates the key of secrets, unless there is one.
    pub fn create_secrets_key(&self) -> anyhow::Result<()> {
        files::create(&self.ring(KeyKind::Secrets).present())
    }

    /// The keys of a folder that may have none. Nothing is created.
    pub fn of(data: &Path) -> Self {
        Self { folder: data.join("keys") }
    }

    pub fn ring(&self, kind: KeyKind) -> Keyring {
        Keyring::new(&self.folder, kind)
    }

    /// Returns a token key that signs with the folder's current key, and follows its changes.
    pub fn token_key(&self) -> anyhow::Result<TokenKey> {
        let watch = KeyWatcher::new(self.ring(KeyKind::Tokens));
        let bytes = |keys: Vec<[u8; 32]>| keys.into_iter().map(Vec::from).collect::<Vec<_>>();
        let keys = bytes(watch.load()?);
        Ok(TokenKey::renewed_by(&keys, move || watch.changed().map(bytes))?)
    }

    /// Returns keys that encrypt secrets under the folder's current key, and follow its changes.
    pub fn secrets_keys(&self) -> anyhow::Result<SecretsKeys> {
        let watch = KeyWatcher::new(self.ring(KeyKind::Secrets));
        let keys = |keys: Vec<[u8; 32]>| keys.into_iter().map(SecretsKey::from_bytes).collect::<Vec<_>>();
        let mut present = keys(watch.load()?).into_iter();
        let Some(newest) = present.next() else { anyhow::bail!("the folder {} has no key", self.folder.display()) };
        Ok(SecretsKeys::renewed_by(newest, present.collect(), move || watch.changed().map(keys)))
    }
}
