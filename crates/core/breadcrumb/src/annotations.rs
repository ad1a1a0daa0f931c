//! Hints about a tool's effects, for callers that decide whether to use it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The hints of the Model Context Protocol (its `ToolAnnotations`, revision 2025-06-18), with its
/// defaults: without hints, a tool is assumed to make destructive changes in the open world. The
/// runtime does not enforce them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Annotations {
    /// A title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    pub read_only: bool,
    /// It can destroy what it changes. Has no meaning for a read-only tool.
    pub destructive: bool,
    /// Repeating the same call changes nothing further.
    pub idempotent: bool,
    /// It interacts with systems outside of this installation.
    pub open_world: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self { title: None, read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

impl Annotations {
    /// Whether the author says that a second run of a call changes nothing further.
    pub fn may_be_repeated(&self) -> bool {
        self.read_only || self.idempotent
    }
}
