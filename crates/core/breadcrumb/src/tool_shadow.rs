//! The shadow of a tool: a draft of code with the name of a `tool.v1`. Runners run it beside the
//! `tool.v1` for a share of the calls, compare the results, and answer with that of the `tool.v1`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::is_draft;

/// Before the share of calls, in percent, in the tag of a draft that is a shadow.
const SHADOW_TAG: &str = "tool:shadow:";

/// The most differences that a report keeps.
const MAX_DIFFERENCES: usize = 5;

/// So many calls with the same result, and none with another, make a shadow ready to be published.
pub const ENOUGH_SAME: u64 = 50;

/// The tag of a shadow for this share of the calls, in percent.
pub fn shadow_tag(share: u8) -> String {
    format!("{SHADOW_TAG}{share}")
}

/// Whether this tag makes a draft a shadow.
pub fn is_shadow_tag(tag: &str) -> bool {
    tag.starts_with(SHADOW_TAG)
}

/// The share of calls, 1 to 100 percent, if these are the tags of a shadow.
pub fn shadow_share(tags: &[String]) -> Option<u8> {
    let share = tags.iter().find_map(|tag| tag.strip_prefix(SHADOW_TAG)?.parse().ok());
    share.filter(|share| (1..=100).contains(share) && is_draft(tags))
}

/// What came of the calls of one definition of a shadow: the context of a `tool.shadow.v1`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShadowReport {
    pub name: String,
    /// The record and the definition of the draft.
    pub tool_id: Uuid,
    pub definition_hash: String,
    /// Who wrote this definition, and can read the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<Uuid>,
    /// The record and the definition of the `tool.v1`.
    pub legacy_id: Uuid,
    pub legacy_hash: String,
    /// Calls with the same output, or with failures of the same code.
    pub same: u64,
    pub different: u64,
    /// Calls that only the shadow failed.
    pub failed: u64,
    /// Calls without a run of the shadow: no slot was free, the result was too large, or the runner
    /// stopped.
    pub skipped: u64,
    /// The first ones: `{request, path, message, legacy, code}`. Private and secret requests have
    /// none here.
    pub differences: Vec<Value>,
}

impl ShadowReport {
    /// A report expires this long after its last change: 30 days.
    pub const TTL_SECONDS: u64 = 30 * 24 * 60 * 60;

    pub fn from_context(context: &Map<String, Value>) -> Option<Self> {
        serde_json::from_value(Value::Object(context.clone())).ok()
    }

    /// Whether both count calls of the same two definitions.
    pub fn is_about_the_same(&self, other: &Self) -> bool {
        (self.tool_id, self.legacy_id) == (other.tool_id, other.legacy_id)
            && (&self.definition_hash, &self.legacy_hash) == (&other.definition_hash, &other.legacy_hash)
    }

    /// Adds the counts of another report. Those of other definitions are replaced.
    pub fn add(&mut self, other: Self) {
        if !self.is_about_the_same(&other) {
            *self = Self { same: 0, different: 0, failed: 0, skipped: 0, differences: Vec::new(), ..other.clone() };
        }
        self.same += other.same;
        self.different += other.different;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.differences.extend(other.differences);
        self.differences.truncate(MAX_DIFFERENCES);
    }

    /// Whether enough calls were compared, and all had the same result.
    pub fn is_ready(&self) -> bool {
        self.same >= ENOUGH_SAME && self.different == 0 && self.failed == 0
    }
}
