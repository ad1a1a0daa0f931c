//! The keys that authenticate backups.

use aws_lc_rs::{hkdf, hmac};

use crate::BackupError;

/// Proves that a backup was written by a holder of the secrets key. It is derived from that key and
/// used for nothing else, so a backup reveals nothing about the secrets key.
#[derive(Debug, Clone)]
pub struct BackupKey {
    id: String,
    key: hmac::Key,
}

const INFO: &[u8] = b"rcrt backup authentication, format 2";

impl BackupKey {
    /// `id`: the id of the secrets key, by which a restore finds it.
    pub fn derive(id: impl Into<String>, secret: &[u8; 32]) -> Result<Self, BackupError> {
        let id = id.into();
        let expanded = hkdf::Salt::new(hkdf::HKDF_SHA256, b"").extract(secret);
        // HKDF does not fail for one block of output. If it did, the secrets key must not be used
        // in its place.
        match expanded.expand(&[INFO], hmac::HMAC_SHA256).map(hmac::Key::from) {
            Ok(key) => Ok(Self { id, key }),
            Err(_) => Err(BackupError::Derivation { key: id }),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tag of a file with this SHA-256.
    pub(crate) fn tag(&self, digest: &[u8]) -> hmac::Tag {
        hmac::sign(&self.key, digest)
    }

    /// Verifies a tag in constant time.
    pub(crate) fn verifies(&self, digest: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.key, digest, tag).is_ok()
    }
}
