//! The input to create a record or to change one, with its checks.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    Breadcrumb, MAX_RECORD_BYTES, RequestKind, Sensitivity, TimeToLive, ToolRequest, TtlType, Violation, Violations,
    Visibility, hex, object_bytes, ttl,
};

/// The most tags of one record.
pub const MAX_TAGS: usize = 100;

/// A tag, as the OpenAPI document describes it. In Rust it is a string.
#[derive(ToSchema)]
#[schema(min_length = 1, max_length = 200, pattern = "\\S")]
#[allow(dead_code)]
struct Tag(String);

/// The input to create a record. Unknown fields are refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBreadcrumb {
    #[schema(min_length = 1, max_length = 500, pattern = "\\S")]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 10_000)]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 100)]
    pub semantic_version: Option<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    #[serde(default)]
    #[schema(value_type = Vec<Tag>, max_items = 100)]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200, pattern = "\\S")]
    pub schema_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub llm_hints: Option<Value>,
    #[serde(default)]
    pub visibility: Visibility,
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// When the record expires. For `ttl_type` datetime (or no `ttl_type`) and hybrid.
    #[serde(default, deserialize_with = "ttl::time", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_type: Option<TtlType>,
    /// `duration`: seconds above 0, or a string such as `"2h"` (for `ttl_type` duration and
    /// hybrid). `max_reads`: how often the record can be read by id (for usage and hybrid).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub ttl_config: Option<Value>,
}

impl NewBreadcrumb {
    /// Returns every reason why a store would refuse this record.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if let Err(more) = self.check_but_ttl() {
            found.append(more);
        }
        if let Err(more) = self.time_to_live() {
            found.append(more);
        }
        found.into_result()
    }

    fn check_but_ttl(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        found.text("title", &self.title, 500);
        if let Some(description) = &self.description {
            found.optional_text("description", description, 10_000);
        }
        if let Some(version) = &self.semantic_version {
            found.optional_text("semantic_version", version, 100);
        }
        if let Some(name) = &self.schema_name {
            found.text("schema_name", name, 200);
        }
        check_tags(&mut found, &self.tags);
        check_context(&mut found, &self.context);
        if let Some(hints) = &self.llm_hints {
            found.json("llm_hints", hints);
        }
        if let Some(config) = &self.ttl_config {
            found.json("ttl_config", config);
        }
        if let Some(kind) = RequestKind::of(self.schema_name.as_deref())
            && let Err(more) = crate::ToolRequest::check_kind(kind, &self.context)
        {
            found.append(more);
        }
        found.into_result()
    }

    /// How long the record is kept. An error if its TTL fields are invalid.
    pub fn time_to_live(&self) -> Result<TimeToLive, Violations> {
        TimeToLive::read(self.ttl, self.ttl_type, self.ttl_config.as_ref())
    }

    /// When this record expires by time, if it does: `ttl`, or `now` plus the duration.
    pub fn ends_at(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.time_to_live() {
            Ok(time_to_live) => time_to_live.ends_at(now),
            // A record that was written before these rules, and a change without TTL fields: its
            // old expiry remains.
            Err(_) => self.ttl,
        }
    }

    /// The record as it is first written, at this time. `measured`: its checksum and size.
    pub fn into_first_version(
        self,
        id: Uuid,
        owner_id: Uuid,
        creator: Option<Uuid>,
        measured: (String, i64),
        at: DateTime<Utc>,
    ) -> Breadcrumb {
        let (ttl, (checksum, size_bytes)) = (self.ends_at(at), measured);
        Breadcrumb {
            id,
            owner_id,
            title: self.title,
            description: self.description,
            semantic_version: self.semantic_version,
            context: self.context,
            tags: self.tags,
            schema_name: self.schema_name,
            llm_hints: self.llm_hints,
            visibility: self.visibility,
            sensitivity: self.sensitivity,
            version: 1,
            checksum,
            ttl,
            ttl_type: self.ttl_type,
            ttl_config: self.ttl_config,
            created_at: at,
            updated_at: at,
            created_by: creator,
            updated_by: creator,
            size_bytes,
            read_count: None,
            reads_left: None,
            warnings: Vec::new(),
        }
    }

    /// SHA-256 of the canonical request body, in hex. It detects whether a repeated
    /// `Idempotency-Key` has the same body. A request's `traceparent` is left out, because a repeat
    /// is another step of the caller's trace, and so is the `deadline_ms` of an `awaited` request:
    /// a later attempt of the call that wrote it has less time left.
    pub fn fingerprint(&self) -> String {
        let is_awaited = ToolRequest::is_awaited(&self.context);
        let is_changed = self.schema_name.as_deref() == Some(crate::schema_names::TOOL_REQUEST)
            && (is_awaited || self.context.contains_key("traceparent"));
        let text = if is_changed {
            let mut same = self.clone();
            same.context.shift_remove("traceparent");
            if is_awaited {
                same.context.shift_remove("deadline_ms");
            }
            serde_json::to_vec(&same)
        } else {
            serde_json::to_vec(self)
        };
        hex(&Sha256::digest(text.unwrap_or_default()))
    }
}

/// The input to change a record. An absent field keeps its value. The context is replaced as a
/// whole. Unknown fields are refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BreadcrumbChanges {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 500, pattern = "\\S")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 10_000)]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 100)]
    pub semantic_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub context: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Tag>>, max_items = 100)]
    pub tags: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200, pattern = "\\S")]
    pub schema_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub llm_hints: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
    #[serde(default, deserialize_with = "ttl::time", skip_serializing_if = "Option::is_none")]
    pub ttl: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_type: Option<TtlType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub ttl_config: Option<Value>,
}

impl BreadcrumbChanges {
    /// The record after these changes, as a [`NewBreadcrumb`] that passes the same checks.
    /// `schema_name` cannot change to or from `tool.request.v1`.
    pub fn applied_to(&self, record: &Breadcrumb) -> Result<NewBreadcrumb, Violations> {
        if let Some(name) = &self.schema_name
            && Some(name) != record.schema_name.as_ref()
            && let Some(request) = [Some(name.as_str()), record.schema_name.as_deref()]
                .into_iter()
                .flatten()
                .find(|name| RequestKind::of(Some(name)).is_some())
        {
            return Err(Violations::one(
                "schema_name",
                format!("cannot be changed from or to {request}; create a new record"),
            ));
        }
        let changed = NewBreadcrumb {
            title: self.title.clone().unwrap_or_else(|| record.title.clone()),
            description: self.description.clone().or_else(|| record.description.clone()),
            semantic_version: self.semantic_version.clone().or_else(|| record.semantic_version.clone()),
            context: self.context.clone().unwrap_or_else(|| record.context.clone()),
            tags: self.tags.clone().unwrap_or_else(|| record.tags.clone()),
            schema_name: self.schema_name.clone().or_else(|| record.schema_name.clone()),
            llm_hints: self.llm_hints.clone().or_else(|| record.llm_hints.clone()),
            visibility: self.visibility.unwrap_or(record.visibility),
            sensitivity: self.sensitivity.unwrap_or(record.sensitivity),
            // A new TTL type or duration restarts the clock. Otherwise the old expiry remains.
            ttl: if self.names_ttl() { self.ttl } else { record.ttl },
            ttl_type: self.ttl_type.or(record.ttl_type),
            ttl_config: match &self.ttl_config {
                Some(config) => Some(config.clone()),
                // The configuration of another TTL type does not apply to the new one.
                None if self.ttl_type.is_some() && self.ttl_type != record.ttl_type => None,
                None => record.ttl_config.clone(),
            },
        };
        if self.names_ttl() { changed.check() } else { changed.check_but_ttl() }?;
        Ok(changed)
    }

    /// Whether the changes set a TTL field. If so, the count of reads restarts too.
    pub fn names_ttl(&self) -> bool {
        self.ttl.is_some() || self.ttl_type.is_some() || self.ttl_config.is_some()
    }
}

/// The result of a create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Created {
    pub id: Uuid,
    pub version: i64,
    /// True when this is the result of an earlier create with the same `Idempotency-Key` and body.
    #[serde(default)]
    pub replayed: bool,
    /// Warnings from the definition of the record's schema name, and the fields of a tool that are
    /// ignored. The record was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Violation>,
}

fn check_tags(found: &mut Violations, tags: &[String]) {
    if tags.len() > MAX_TAGS {
        found.add("tags", format!("has {} entries; at most {MAX_TAGS} are allowed", tags.len()));
    }
    for (index, tag) in tags.iter().enumerate() {
        found.text(format_args!("tags[{index}]"), tag, 200);
    }
}

fn check_context(found: &mut Violations, context: &Map<String, Value>) {
    for (key, value) in context {
        if key.contains('\0') {
            found.add("context", "has a key with a NUL character (U+0000), which cannot be stored");
        }
        found.json(format_args!("context.{key:.100}"), value);
    }
    let size = object_bytes(context);
    if size > MAX_RECORD_BYTES {
        found.add("context", format!("is {size} bytes of JSON; at most {MAX_RECORD_BYTES} are allowed"));
    }
}
