//! The token of the push notifications about one task at another agent: the tools that ask agents
//! make it, and the server that receives the notifications checks it.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::hex;

/// The field of a task's record (`a2a.task.v1`) with the hash of its token.
pub const PUSH_HASH: &str = "push_hash";
/// The field with the time of the last notification. A change of it makes the followers of the task
/// ask the agent for its state.
pub const WOKEN_AT: &str = "woken_at";

/// A token of 244 random bits. The agent gets it; only its hash is stored.
pub struct PushToken(String);

impl PushToken {
    /// A new one, for one task.
    pub fn random() -> Self {
        Self(format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the task's record keeps: SHA-256 in hex.
    pub fn hash(&self) -> String {
        hash(&self.0)
    }

    /// Whether a token has this hash. The time that it takes does not depend on where they differ.
    pub fn is(token: &str, kept: &str) -> bool {
        let found = hash(token);
        let different = found.bytes().zip(kept.bytes()).fold(0, |different, (a, b)| different | (a ^ b));
        found.len() == kept.len() && different == 0
    }
}

fn hash(token: &str) -> String {
    hex(&Sha256::digest(token))
}

/// The path of the notifications about a task, below the server's URL. `owner_id`: the tenant.
pub fn push_path(owner_id: Uuid, task: Uuid) -> String {
    format!("/a2a/push/{owner_id}/{task}")
}
