//! Tokens that were verified before, so that the signature of a client's token is checked once and
//! not with each of its requests. Whether a token is revoked, and what its agent may do, is checked
//! each time (`access.rs`).

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use sha2::{Digest, Sha256};

use crate::auth::token::VerifiedToken;
use crate::auth::token_keys::SigningKey;

/// The most tokens that are remembered.
const MAX_TOKENS: usize = 4096;

type TokenHash = [u8; 32];
type Keys = Arc<Vec<SigningKey>>;

/// By their hash, so that no token is in memory for longer than its request.
#[derive(Default)]
pub(crate) struct VerifiedTokens(RwLock<HashMap<TokenHash, Remembered>>);

struct Remembered {
    token: VerifiedToken,
    /// The keys with which it was verified. With others it must be verified again.
    keys: Keys,
}

impl VerifiedTokens {
    /// The token, if it was verified with these keys and is still valid `now` (seconds since 1970).
    pub(crate) fn find(&self, token: &str, keys: &Keys, now: u64) -> Option<VerifiedToken> {
        let remembered = self.0.read();
        let found = remembered.get(&hash(token))?;
        (found.token.expires_at > now && Arc::ptr_eq(&found.keys, keys)).then(|| found.token.clone())
    }

    pub(crate) fn remember(&self, token: &str, keys: Keys, verified: VerifiedToken, now: u64) {
        let mut remembered = self.0.write();
        if remembered.len() >= MAX_TOKENS {
            remembered.retain(|_, other| other.token.expires_at > now && Arc::ptr_eq(&other.keys, &keys));
        }
        if remembered.len() >= MAX_TOKENS {
            remembered.clear();
        }
        remembered.insert(hash(token), Remembered { token: verified, keys });
    }
}

fn hash(token: &str) -> TokenHash {
    Sha256::digest(token).into()
}
