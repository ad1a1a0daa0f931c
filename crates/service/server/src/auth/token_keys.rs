//! The keys that sign tokens: the newest signs, the older ones still verify.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, crypto};
use parking_lot::{Mutex, RwLock};

use crate::ServerError;
use crate::auth::token::MIN_KEY_BYTES;
use crate::auth::verified_tokens::VerifiedTokens;

/// The longest time until a server notices new keys.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the keys, newest first, if they changed since the last call; otherwise `None`.
type Source = Box<dyn Fn() -> Option<Vec<Vec<u8>>> + Send + Sync>;

/// The keys that sign and verify tokens. With one of them, tokens can be made for every tenant.
/// Clones share the keys.
#[derive(Clone)]
pub struct TokenKey(Arc<Shared>);

struct Shared {
    ring: RwLock<Arc<Vec<SigningKey>>>,
    source: Option<Source>,
    asked: Mutex<Instant>,
    verified: VerifiedTokens,
}

/// One key, with the id (`kid`) that its tokens name.
pub(crate) struct SigningKey {
    pub(crate) id: String,
    pub(crate) encoding: EncodingKey,
    pub(crate) decoding: DecodingKey,
}

impl TokenKey {
    /// A key of at least [`MIN_KEY_BYTES`] random bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ServerError> {
        Self::new(&[bytes], None)
    }

    /// These keys, newest first and at least one, until `source` returns others. It is called once
    /// per second, and when a token names an unknown key.
    pub fn renewed_by(
        keys: &[Vec<u8>],
        source: impl Fn() -> Option<Vec<Vec<u8>>> + Send + Sync + 'static,
    ) -> Result<Self, ServerError> {
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        Self::new(&keys, Some(Box::new(source)))
    }

    fn new(keys: &[&[u8]], source: Option<Source>) -> Result<Self, ServerError> {
        let ring = ring(keys.iter().copied())?;
        let (ring, asked) = (RwLock::new(Arc::new(ring)), Mutex::new(Instant::now()));
        Ok(Self(Arc::new(Shared { ring, source, asked, verified: VerifiedTokens::default() })))
    }

    /// The id of the current signing key. It reveals nothing about the key.
    pub fn newest_id(&self) -> String {
        self.keys().first().map(|key| key.id.clone()).unwrap_or_default()
    }

    /// A key for another purpose, which changes with the signing key.
    pub(crate) fn derived(&self, purpose: &[u8]) -> Result<Vec<u8>, ServerError> {
        let keys = self.keys();
        let newest = keys.first().ok_or(ServerError::WeakTokenKey { bytes: 0 })?;
        let key = crypto::sign(purpose, &newest.encoding, Algorithm::HS256);
        key.map(String::into_bytes).map_err(|error| ServerError::Sign(error.to_string()))
    }

    pub(crate) fn verified(&self) -> &VerifiedTokens {
        &self.0.verified
    }

    /// The current keys, newest first.
    pub(crate) fn keys(&self) -> Arc<Vec<SigningKey>> {
        if self.is_due() { self.renewed() } else { self.present() }
    }

    /// The same. If none has this id, the source is called at once: the issuing process may have
    /// noticed new keys earlier.
    pub(crate) fn keys_for(&self, id: Option<&str>) -> Arc<Vec<SigningKey>> {
        let keys = self.keys();
        if id.is_none_or(|id| keys.iter().any(|key| key.id == id)) { keys } else { self.renewed() }
    }

    fn renewed(&self) -> Arc<Vec<SigningKey>> {
        if let Some(keys) = self.0.source.as_ref().and_then(|source| source()) {
            match ring(keys.iter().map(Vec::as_slice)) {
                Ok(ring) => *self.0.ring.write() = Arc::new(ring),
                Err(error) => tracing::error!(%error, "the new token keys are invalid; the old ones stay in use"),
            }
        }
        self.present()
    }

    fn present(&self) -> Arc<Vec<SigningKey>> {
        self.0.ring.read().clone()
    }

    fn is_due(&self) -> bool {
        let mut asked = self.0.asked.lock();
        let is_due = asked.elapsed() >= POLL_INTERVAL;
        if is_due {
            *asked = Instant::now();
        }
        is_due
    }
}

fn ring<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Result<Vec<SigningKey>, ServerError> {
    let ring = keys.map(SigningKey::new).collect::<Result<Vec<_>, _>>()?;
    if ring.is_empty() { Err(ServerError::WeakTokenKey { bytes: 0 }) } else { Ok(ring) }
}

impl SigningKey {
    fn new(bytes: &[u8]) -> Result<Self, ServerError> {
        if bytes.len() < MIN_KEY_BYTES {
            return Err(ServerError::WeakTokenKey { bytes: bytes.len() });
        }
        let encoding = EncodingKey::from_secret(bytes);
        // A signature of a text that is never a token, so it can be public.
        let mut id = crypto::sign(b"rcrt token key id", &encoding, Algorithm::HS256)
            .map_err(|error| ServerError::Sign(error.to_string()))?;
        id.truncate(12);
        Ok(Self { id, encoding, decoding: DecodingKey::from_secret(bytes) })
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}
