//! The key-encryption keys: the newest encrypts, all of them decrypt.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use sha2::{Digest, Sha256};

/// A key-encryption key: 32 bytes, stored outside the database.
#[derive(Clone)]
pub struct SecretsKey(pub(crate) [u8; 32]);

impl SecretsKey {
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's id in an encrypted value. It reveals nothing about the key itself.
    pub fn id(&self) -> String {
        let digest = Sha256::new().chain_update(b"rcrt key id\0").chain_update(self.0).finalize();
        rcrt_breadcrumb::hex(&digest[..8])
    }
}

impl fmt::Debug for SecretsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretsKey(…)")
    }
}

/// Returns the keys, the newest first, when they have changed since the last time; `None`
/// otherwise.
type Source = Box<dyn Fn() -> Option<Vec<SecretsKey>> + Send + Sync>;

/// The keys of a store. They can be replaced while it runs: clones share them.
#[derive(Clone)]
pub struct SecretsKeys(Arc<Shared>);

struct Shared {
    ring: RwLock<Arc<KeyRing>>,
    source: Option<Source>,
}

/// Keys with their ids, the newest first.
pub(crate) struct KeyRing {
    pub(crate) newest: (String, SecretsKey),
    older: Vec<(String, SecretsKey)>,
}

impl SecretsKeys {
    pub fn new(newest: SecretsKey, older: Vec<SecretsKey>) -> Self {
        Self(Arc::new(Shared { ring: RwLock::new(Arc::new(KeyRing::new(newest, older))), source: None }))
    }

    /// Starts with these keys and replaces them when `source` returns others. `source` is called
    /// before a value is encrypted, and when an unknown key id is found.
    pub fn renewed_by(
        newest: SecretsKey,
        older: Vec<SecretsKey>,
        source: impl Fn() -> Option<Vec<SecretsKey>> + Send + Sync + 'static,
    ) -> Self {
        let ring = RwLock::new(Arc::new(KeyRing::new(newest, older)));
        Self(Arc::new(Shared { ring, source: Some(Box::new(source)) }))
    }

    pub(crate) fn present(&self) -> Arc<KeyRing> {
        self.0.ring.read().clone()
    }

    /// The current keys, after a query of the source.
    pub(crate) fn renewed(&self) -> Arc<KeyRing> {
        let mut keys = self.0.source.as_ref().and_then(|source| source()).unwrap_or_default().into_iter();
        if let Some(newest) = keys.next() {
            let ring = Arc::new(KeyRing::new(newest, keys.collect()));
            *self.0.ring.write() = ring;
        }
        self.present()
    }
}

impl KeyRing {
    fn new(newest: SecretsKey, older: Vec<SecretsKey>) -> Self {
        let with_id = |key: SecretsKey| (key.id(), key);
        Self { newest: with_id(newest), older: older.into_iter().map(with_id).collect() }
    }

    pub(crate) fn find(&self, id: &str) -> Option<&SecretsKey> {
        std::iter::once(&self.newest).chain(&self.older).find(|(known, _)| known == id).map(|(_, key)| key)
    }
}

impl From<SecretsKey> for SecretsKeys {
    fn from(key: SecretsKey) -> Self {
        Self::new(key, Vec::new())
    }
}

impl fmt::Debug for SecretsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretsKeys(…)")
    }
}
