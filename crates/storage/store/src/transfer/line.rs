//! The format of a line: an object with one member, whose name is the kind.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Breadcrumb, Event, Sensitivity, Visibility};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The first line is `export`, the last is `end`. Between them are records, then old versions. An
/// archive has either records or events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Export(Head),
    /// A record with all its fields, as `GET /breadcrumbs/{id}/full` returns it.
    Record(Box<Breadcrumb>),
    Version(Box<OldVersion>),
    /// In archives. It is not imported.
    Event(Box<ArchivedEvent>),
    End {
        records: u64,
        versions: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`Head::FORMAT`].
    pub format: u32,
    /// The version of the program that wrote it.
    pub program: String,
    pub tenant: String,
    pub made_at: DateTime<Utc>,
    /// Whether the exporting store reserved [`rcrt_breadcrumb::CURATORS_TOOL_TAG`]. False in older
    /// files, when any agent could set that tag.
    #[serde(default)]
    pub reserves_curators_tag: bool,
}

impl Head {
    pub const FORMAT: u32 = 1;
}

/// An event as a subscriber received it, with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArchivedEvent {
    pub number: i64,
    #[serde(flatten)]
    pub event: Event,
}

/// A version before the current one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OldVersion {
    pub breadcrumb_id: Uuid,
    pub version: i64,
    pub title: String,
    pub context: Map<String, Value>,
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_name: Option<String>,
    pub checksum: String,
    pub updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<Uuid>,
    /// These three are absent in versions from before they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Uuid>,
}
