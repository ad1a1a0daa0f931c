//! What a backup says of itself.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// One line of JSON before the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the file: [`Manifest::FORMAT`].
    pub format: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// The database's newest migration.
    pub migration: i64,
    /// Its server's version, such as `18.6`.
    pub postgres: String,
    pub made_at: DateTime<Utc>,
    /// Every event below this number is in the backup; who has seen one from it on may have seen what is not.
    pub event_horizon: i64,
    /// The ids of the keys that secrets are sealed under. The keys themselves are not in the file.
    pub secrets_keys: Vec<String>,
    /// The id of the key that the file is authenticated with; set by who writes the file. `None` in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authenticated_by: Option<String>,
}

impl Manifest {
    pub const FORMAT: u32 = 2;
}
