//! The record (breadcrumb), and the types in which it is read.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::names::names;
use crate::{TtlType, Violation, hex};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Like `team`. In addition, agents of every tenant can read the short view by id, unless the
    /// record is secret.
    Public,
    /// All agents of the tenant, by their roles.
    #[default]
    Team,
    /// The agent that created it, curators, runners, and holders of a grant.
    Private,
}

names!(Visibility, "visibility", { Public => "public", Team => "team", Private => "private" });

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    #[default]
    Low,
    Pii,
    /// The context appears in no event, list, search or log. It is read by id only.
    Secret,
}

names!(Sensitivity, "sensitivity", { Low => "low", Pii => "pii", Secret => "secret" });

/// A complete record (the *full* view).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Breadcrumb {
    pub id: Uuid,
    /// The tenant.
    pub owner_id: Uuid,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_version: Option<String>,
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub llm_hints: Option<Value>,
    pub visibility: Visibility,
    pub sensitivity: Sensitivity,
    /// Starts at 1 and grows by one with each change.
    pub version: i64,
    /// SHA-256 of the context's JSON text, in hex.
    pub checksum: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_type: Option<TtlType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub ttl_config: Option<Value>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The agent that wrote the first version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Uuid>,
    /// The agent that wrote this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<Uuid>,
    /// Bytes of the context's JSON text.
    pub size_bytes: i64,
    /// How often the record was read, including this read. Only for `ttl_type` usage and hybrid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_count: Option<i64>,
    /// How many reads are left. The record expires with the last one. Only for `ttl_type` usage and
    /// hybrid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_left: Option<i64>,
    /// In the result of a write: warnings from the definition of the record's schema name, and the
    /// fields of a tool that are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Violation>,
}

/// The short view: a record without owner, audit and TTL fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BreadcrumbView {
    pub id: Uuid,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic_version: Option<String>,
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub llm_hints: Option<Value>,
    pub version: i64,
    pub checksum: String,
    pub updated_at: DateTime<Utc>,
}

impl From<Breadcrumb> for BreadcrumbView {
    fn from(record: Breadcrumb) -> Self {
        Self {
            id: record.id,
            title: record.title,
            description: record.description,
            semantic_version: record.semantic_version,
            context: record.context,
            tags: record.tags,
            schema_name: record.schema_name,
            llm_hints: record.llm_hints,
            version: record.version,
            checksum: record.checksum,
            updated_at: record.updated_at,
        }
    }
}

/// One row of a list or a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BreadcrumbListItem {
    pub id: Uuid,
    /// The tenant that shares the record, when it is not the caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_id: Option<Uuid>,
    pub title: String,
    pub tags: Vec<String>,
    pub schema_name: Option<String>,
    pub version: i64,
    pub updated_at: DateTime<Utc>,
    /// Present when the caller asked for it (`include_context`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub context: Option<Map<String, Value>>,
    /// The record's `sensitivity` is `secret`, so the requested context is empty here. Agents with
    /// the right to read the record get it by id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// In a search: how well the record matches. Larger is better. Compare scores within one result
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// One version of a record in its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BreadcrumbVersion {
    pub version: i64,
    pub title: String,
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_name: Option<String>,
    pub checksum: String,
    pub updated_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<Uuid>,
}

/// Names the algorithm of a definition hash.
const HASH_PREFIX: &str = "sha256:";

/// Whether the text has the form of [`Breadcrumb::definition_hash`].
pub(crate) fn is_definition_hash(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.strip_prefix(HASH_PREFIX).is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

fn context_text(context: &Map<String, Value>) -> String {
    serde_json::to_string(context).unwrap_or_default()
}

impl Breadcrumb {
    /// The checksum and size of a context: SHA-256 in hex, and bytes of JSON text.
    pub fn measure(context: &Map<String, Value>) -> (String, i64) {
        Self::measure_text(&context_text(context))
    }

    /// Like [`Self::measure`], for a context that is already JSON text.
    pub fn measure_text(context: &str) -> (String, i64) {
        (hex(&Sha256::digest(context.as_bytes())), context.len() as i64)
    }

    /// Identifies exactly this context: for a tool, its definition.
    pub fn definition_hash(checksum: &str) -> String {
        format!("{HASH_PREFIX}{checksum}")
    }

    /// The first tag of the form `workspace:…`, including the prefix.
    pub fn workspace(&self) -> Option<&str> {
        self.tags.iter().map(String::as_str).find(|tag| tag.starts_with("workspace:"))
    }
}
