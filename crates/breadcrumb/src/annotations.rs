//! Hints about a tool's effects, for callers that decide whether to use it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The hints of the Model Context Protocol (its `ToolAnnotations`, revision 2025-06-18), with its defaults: a tool that
/// says nothing of itself is taken to change things for good, out in the world. Nothing is enforced by them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Annotations {
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    pub read_only: bool,
    /// What it changes may be lost. Says nothing where it is read-only.
    pub destructive: bool,
    /// The same call again changes nothing more.
    pub idempotent: bool,
    /// It deals with things outside of this installation.
    pub open_world: bool,
}

impl Default for Annotations {
    fn default() -> Self {
        Self { title: None, read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}
