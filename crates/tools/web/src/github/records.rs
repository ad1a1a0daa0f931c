//! The fields of GitHub's records that are shown. Fields that GitHub may leave out or set to null
//! are optional.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct User {
    pub login: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Milestone {
    pub title: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Issue {
    pub title: String,
    #[serde(default)]
    pub state: String,
    pub state_reason: Option<String>,
    /// `null` for a deleted account.
    pub user: Option<User>,
    pub body: Option<String>,
    #[serde(default)]
    pub labels: Vec<Named>,
    pub assignees: Option<Vec<User>>,
    pub milestone: Option<Milestone>,
    #[serde(default)]
    pub created_at: String,
    pub closed_at: Option<String>,
    #[serde(default)]
    pub comments: u64,
    pub pull_request: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Comment {
    pub user: Option<User>,
    pub author_association: String,
    pub body: Option<String>,
    pub created_at: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Branch {
    pub label: Option<String>,
    #[serde(rename = "ref")]
    pub name: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Pull {
    #[serde(default)]
    pub draft: bool,
    #[serde(default)]
    pub merged: bool,
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

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Review {
    pub user: Option<User>,
    pub state: String,
    pub body: Option<String>,
    pub submitted_at: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReviewComment {
    pub id: u64,
    pub in_reply_to_id: Option<u64>,
    pub user: Option<User>,
    pub path: String,
    pub line: Option<u64>,
    pub original_line: Option<u64>,
    pub diff_hunk: Option<String>,
    pub body: Option<String>,
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
    pub patch: Option<String>,
}
