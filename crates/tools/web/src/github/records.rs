//! The fields of GitHub's records that are shown. Fields that GitHub may leave out or set to null
//! are optional.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct User {
    #[serde(default)]
    pub login: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Named {
    #[serde(default)]
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Milestone {
    #[serde(default)]
    pub title: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Issue {
    pub title: String,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub state_reason: Option<String>,
    /// `null` for a deleted account.
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub labels: Vec<Named>,
    #[serde(default)]
    pub assignees: Option<Vec<User>>,
    #[serde(default)]
    pub milestone: Option<Milestone>,
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub closed_at: Option<String>,
    #[serde(default)]
    pub comments: u64,
    #[serde(default)]
    pub pull_request: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Comment {
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub author_association: String,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub created_at: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Branch {
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default, rename = "ref")]
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Pull {
    #[serde(default)]
    pub draft: bool,
    #[serde(default)]
    pub merged: bool,
    #[serde(default)]
    pub merged_at: Option<String>,
    pub base: Branch,
    pub head: Branch,
    #[serde(default)]
    pub commits: u64,
    #[serde(default)]
    pub additions: u64,
    #[serde(default)]
    pub deletions: u64,
    #[serde(default)]
    pub changed_files: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Review {
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub state: String,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub submitted_at: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ReviewComment {
    #[serde(default)]
    pub id: u64,
    #[serde(default)]
    pub in_reply_to_id: Option<u64>,
    #[serde(default)]
    pub user: Option<User>,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub line: Option<u64>,
    #[serde(default)]
    pub original_line: Option<u64>,
    #[serde(default)]
    pub diff_hunk: Option<String>,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub created_at: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct File {
    pub filename: String,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub additions: u64,
    #[serde(default)]
    pub deletions: u64,
    /// Absent for binary or too large files.
    #[serde(default)]
    pub patch: Option<String>,
}
