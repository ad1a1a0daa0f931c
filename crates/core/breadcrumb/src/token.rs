//! Tokens as the store lists them. The store has their ids and times, not the tokens themselves.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Profile, Role};

/// The most tokens in one read.
pub const MAX_TOKENS: u32 = 1000;

/// What a server records of a token: when it is issued, and from time to time when it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    pub owner_id: Uuid,
    /// The claim `jti`.
    pub id: Uuid,
    pub agent_id: Uuid,
    pub roles: Vec<Role>,
    pub profile: Profile,
    pub issued_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// `None` when it is issued.
    pub used_at: Option<DateTime<Utc>>,
}

/// A token that has not expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenInfo {
    /// The claim `jti`, by which the token can be revoked.
    pub id: Uuid,
    /// Grows with each token that is recorded; the order of the list.
    pub number: i64,
    pub agent_id: Uuid,
    /// Absent if the agent is not registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    pub roles: Vec<Role>,
    pub profile: Profile,
    pub issued_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// The last use, to the minute; absent if it was never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<DateTime<Utc>>,
    /// It was revoked, or its agent was deleted.
    pub revoked: bool,
}

/// Selects tokens. All conditions must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TokenQuery {
    pub id: Option<Uuid>,
    pub agent_id: Option<Uuid>,
    /// Only tokens with a smaller number, for paging: the last number of the previous page.
    pub before: Option<i64>,
    /// 1 to [`MAX_TOKENS`].
    pub limit: u32,
}
