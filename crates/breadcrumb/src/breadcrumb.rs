//! The record (breadcrumb), and the types in which it is written, read and listed.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{MAX_RECORD_BYTES, Selector, TimeToLive, TtlType, Violation, Violations, hex};

/// Rows of a list when the caller names no limit.
pub const DEFAULT_PAGE: u32 = 100;
/// The most tags of one record.
pub const MAX_TAGS: usize = 100;
/// The most rows one list call returns.
pub const MAX_PAGE: u32 = 1000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// As `team`; besides, agents of every tenant may read the short view by id (unless the record is secret).
    Public,
    /// All agents of the tenant, by their roles.
    #[default]
    Team,
    /// Who created it, curators, runners, and who holds a grant.
    Private,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    #[default]
    Low,
    Pii,
    /// The context stands in no event, no list, no search and no log; it is read by id.
    Secret,
}

/// A record as the store has it, with everything (the *full* view).
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
    /// Of a record that ends by its reads (`ttl_type` usage or hybrid): how often it was read, this time included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_count: Option<i64>,
    /// Of such a record: how many reads are left. With the last one it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_left: Option<i64>,
    /// In the answer to a write: what the definition of its schema name warns of.
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
    /// The tenant, when it is another one, which shares the record.
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
    /// The record's `sensitivity` is `secret`: its context, which was asked for, is empty here. Who may read the record
    /// reads it by id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// Of a search: how well it matches. Larger is better; only comparable within one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// One version of a record, as its history tells it.
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

/// A tag, as the description of the API has it; in Rust it is its text.
#[derive(ToSchema)]
#[schema(min_length = 1, max_length = 200, pattern = "\\S")]
#[allow(dead_code)]
struct Tag(String);

/// What a caller gives to create a record. Unknown fields are refused.
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
    /// When the record ends, for `ttl_type` datetime (or none) and hybrid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_type: Option<TtlType>,
    /// `duration`: seconds above 0, or a text such as `"2h"` (for `ttl_type` duration and hybrid). `max_reads`: how often
    /// the record can be read by its id (for usage and hybrid).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub ttl_config: Option<Value>,
}

impl NewBreadcrumb {
    /// Every reason why a store would refuse this record, or `Ok`.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if let Err(more) = self.check_but_ttl() {
            found.0.extend(more.0);
        }
        if let Err(more) = self.time_to_live() {
            found.0.extend(more.0);
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
        if self.schema_name.as_deref() == Some(crate::schema_names::TOOL_REQUEST)
            && let Err(more) = crate::ToolRequest::check(&self.context)
        {
            found.0.extend(more.0);
        }
        found.into_result()
    }

    /// How long the record stays, or what is wrong with what it says of that.
    pub fn time_to_live(&self) -> Result<TimeToLive, Violations> {
        TimeToLive::read(self.ttl, self.ttl_type, self.ttl_config.as_ref())
    }

    /// The moment this record ends by time, if it does: `ttl`, or `now` plus the duration.
    pub fn ends_at(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.time_to_live() {
            Ok(time_to_live) => time_to_live.ends_at(now),
            // Of a record from before these rules, whose change names no time to live: what it had stands.
            Err(_) => self.ttl,
        }
    }

    /// SHA-256 of the canonical request body, in hex: tells whether a repeated `Idempotency-Key` means the same. Where a
    /// request stands in its caller's trace does not count: a repetition is another step there.
    pub fn fingerprint(&self) -> String {
        let is_traced = self.schema_name.as_deref() == Some(crate::schema_names::TOOL_REQUEST)
            && self.context.contains_key("traceparent");
        let text = if is_traced {
            let mut untraced = self.clone();
            untraced.context.shift_remove("traceparent");
            serde_json::to_vec(&untraced)
        } else {
            serde_json::to_vec(self)
        };
        hex(&Sha256::digest(text.unwrap_or_default()))
    }
}

/// What a caller gives to change a record: a field that is absent stays as it is; the context is replaced whole.
/// Unknown fields are refused.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_type: Option<TtlType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub ttl_config: Option<Value>,
}

impl BreadcrumbChanges {
    /// The record after these changes, in the shape of a new one (so that it is checked like one). A request stays a
    /// request and nothing becomes one: `schema_name` may not move to or from `tool.request.v1`.
    pub fn applied_to(&self, record: &Breadcrumb) -> Result<NewBreadcrumb, Violations> {
        let request = crate::schema_names::TOOL_REQUEST;
        if let Some(name) = &self.schema_name
            && Some(name) != record.schema_name.as_ref()
            && (name == request || record.schema_name.as_deref() == Some(request))
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
            // A new kind of TTL, or a new duration, restarts the clock; otherwise the old expiry
            // stays.
            ttl: if self.names_ttl() { self.ttl } else { record.ttl },
            ttl_type: self.ttl_type.or(record.ttl_type),
            ttl_config: match &self.ttl_config {
                Some(config) => Some(config.clone()),
                // What was said for another kind says nothing for this one.
                None if self.ttl_type.is_some() && self.ttl_type != record.ttl_type => None,
                None => record.ttl_config.clone(),
            },
        };
        if self.names_ttl() { changed.check() } else { changed.check_but_ttl() }?;
        Ok(changed)
    }

    /// Whether they say anew how long the record stays. Then its reads are counted anew too.
    pub fn names_ttl(&self) -> bool {
        self.ttl.is_some() || self.ttl_type.is_some() || self.ttl_config.is_some()
    }
}

/// The answer to a create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Created {
    pub id: Uuid,
    pub version: i64,
    /// True when this answer was given before, to the same `Idempotency-Key` and body.
    #[serde(default)]
    pub replayed: bool,
    /// What the definition of the record's schema name warns of. The record was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Violation>,
}

/// What to list: the records that match the selector, newest change first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BreadcrumbQuery {
    pub selector: Selector,
    /// 1 to [`MAX_PAGE`].
    pub limit: u32,
    pub offset: u32,
    pub include_context: bool,
}

impl Default for BreadcrumbQuery {
    fn default() -> Self {
        Self { selector: Selector::default(), limit: DEFAULT_PAGE, offset: 0, include_context: false }
    }
}

impl BreadcrumbQuery {
    /// All records with this tag, contexts included.
    pub fn tagged(tag: impl Into<String>) -> Self {
        Self {
            selector: Selector { all_tags: vec![tag.into()], ..Selector::default() },
            include_context: true,
            ..Self::default()
        }
    }

    /// All records of this schema, contexts included.
    pub fn of_schema(schema_name: impl Into<String>) -> Self {
        Self {
            selector: Selector { schema_name: Some(schema_name.into()), ..Selector::default() },
            include_context: true,
            ..Self::default()
        }
    }

    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if !(1..=MAX_PAGE).contains(&self.limit) {
            found.add("limit", format!("must be from 1 to {MAX_PAGE}"));
        }
        if let Err(more) = self.selector.check() {
            found.0.extend(more.0);
        }
        found.into_result()
    }
}

fn check_tags(found: &mut Violations, tags: &[String]) {
    if tags.len() > MAX_TAGS {
        found.add("tags", format!("has {} entries; at most {MAX_TAGS} are allowed", tags.len()));
    }
    for (index, tag) in tags.iter().enumerate() {
        found.text(&format!("tags[{index}]"), tag, 200);
    }
}

fn check_context(found: &mut Violations, context: &Map<String, Value>) {
    for (key, value) in context {
        if key.contains('\0') {
            found.add("context", "has a key with a NUL character (U+0000), which cannot be stored");
        }
        found.json(&format!("context.{key:.100}"), value);
    }
    let size = text_bytes(context);
    if size > MAX_RECORD_BYTES {
        found.add("context", format!("is {size} bytes of JSON; at most {MAX_RECORD_BYTES} are allowed"));
    }
}

/// How long the context's text is, without making it.
fn text_bytes(context: &Map<String, Value>) -> usize {
    let mut counted = Counted(0);
    match serde_json::to_writer(&mut counted, context) {
        Ok(()) => counted.0,
        Err(_) => 0,
    }
}

struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn context_text(context: &Map<String, Value>) -> String {
    serde_json::to_string(context).unwrap_or_default()
}

impl Breadcrumb {
    /// The checksum and size that a context has: SHA-256 in hex, and bytes of JSON text.
    pub fn measure(context: &Map<String, Value>) -> (String, i64) {
        Self::measure_text(&context_text(context))
    }

    /// [`Self::measure`] of a context whose JSON text is at hand.
    pub fn measure_text(context: &str) -> (String, i64) {
        (hex(&Sha256::digest(context.as_bytes())), context.len() as i64)
    }

    /// The first tag of the form `workspace:…`, whole.
    pub fn workspace(&self) -> Option<&str> {
        self.tags.iter().map(String::as_str).find(|tag| tag.starts_with("workspace:"))
    }
}
