//! The description of a backup in its file.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// One line of JSON before the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The file format: [`Manifest::FORMAT`].
    pub format: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// The database's newest migration.
    pub migration: i64,
    /// The version of the database server, such as `18.6`.
    pub postgres: String,
    pub made_at: DateTime<Utc>,
    /// Every event below this number is in the backup. A subscriber that has seen this number or a
    /// later one may have seen events that are not.
    pub event_horizon: i64,
    /// The ids of the keys that encrypt secrets. The keys themselves are not in the file.
    pub secrets_keys: Vec<String>,
    /// The id of the key that authenticates the file, set by [`crate::write`]. `None` in format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authenticated_by: Option<String>,
}

impl Manifest {
    pub const FORMAT: u32 = 2;
}
