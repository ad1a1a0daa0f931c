//! Records as rows.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Breadcrumb, BreadcrumbVersion, Sensitivity, TtlType, Visibility};
use serde_json::{Map, Value};
use sqlx::types::Json;
use uuid::Uuid;

use crate::database::from_row::from_row;

pub(crate) type Context = Json<Map<String, Value>>;

/// The columns of [`RecordRow`].
macro_rules! record_columns {
    () => {
        "b.id, b.owner_id, b.title, b.description, b.semantic_version, b.context, b.tags, b.schema_name, b.llm_hints, \
         b.visibility, b.sensitivity, b.version, b.checksum, b.size_bytes, b.ttl, b.ttl_type, b.ttl_config, \
         b.created_at, b.updated_at, b.created_by, b.updated_by"
    };
}
pub(crate) use record_columns;

from_row! {
    pub(crate) struct RecordRow {
        id: Uuid,
        owner_id: Uuid,
        title: String,
        description: Option<String>,
        semantic_version: Option<String>,
        context: Context,
        tags: Vec<String>,
        schema_name: Option<String>,
        llm_hints: Option<Json<Value>>,
        visibility: String,
        sensitivity: String,
        version: i64,
        checksum: String,
        size_bytes: i64,
        ttl: Option<DateTime<Utc>>,
        ttl_type: Option<String>,
        ttl_config: Option<Json<Value>>,
        created_at: DateTime<Utc>,
        updated_at: DateTime<Utc>,
        created_by: Option<Uuid>,
        updated_by: Option<Uuid>,
    }
}

impl From<RecordRow> for Breadcrumb {
    fn from(row: RecordRow) -> Self {
        Self {
            id: row.id,
            owner_id: row.owner_id,
            title: row.title,
            description: row.description,
            semantic_version: row.semantic_version,
            context: row.context.0,
            tags: row.tags,
            schema_name: row.schema_name,
            llm_hints: row.llm_hints.map(|json| json.0),
            visibility: read_visibility(&row.visibility),
            sensitivity: read_sensitivity(&row.sensitivity),
            version: row.version,
            checksum: row.checksum,
            ttl: row.ttl,
            ttl_type: row.ttl_type.as_deref().and_then(|text| text.parse().ok()),
            ttl_config: row.ttl_config.map(|json| json.0),
            created_at: row.created_at,
            updated_at: row.updated_at,
            created_by: row.created_by,
            updated_by: row.updated_by,
            size_bytes: row.size_bytes,
            read_count: None,
            reads_left: None,
            warnings: Vec::new(),
        }
    }
}

from_row! {
    /// A version of a record.
    pub(crate) struct VersionRow {
        version: i64,
        title: String,
        context: Context,
        tags: Vec<String>,
        schema_name: Option<String>,
        checksum: String,
        updated_at: DateTime<Utc>,
        updated_by: Option<Uuid>,
    }
}

impl From<VersionRow> for BreadcrumbVersion {
    fn from(row: VersionRow) -> Self {
        Self {
            version: row.version,
            title: row.title,
            context: row.context.0,
            tags: row.tags,
            schema_name: row.schema_name,
            checksum: row.checksum,
            updated_at: row.updated_at,
            updated_by: row.updated_by,
        }
    }
}

// The columns' CHECKs allow no other values. Unknown values map to the most private one.
pub(crate) fn read_visibility(text: &str) -> Visibility {
    text.parse().unwrap_or(Visibility::Private)
}

pub(crate) fn read_sensitivity(text: &str) -> Sensitivity {
    text.parse().unwrap_or(Sensitivity::Secret)
}

/// As JSON, which always succeeds for maps with text keys and JSON values.
pub(crate) fn json_text(value: &impl serde::Serialize) -> String {
    // As large as the records of a small call.
    let mut text = Vec::with_capacity(1024);
    let written = serde_json::to_writer(&mut text, value);
    written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_default()
}

from_row! {
    /// A record with its read count, if its reads are counted.
    pub(crate) struct CountedRow {
        read_count: Option<i64>,
        ..record: RecordRow,
    }
}

impl From<CountedRow> for Breadcrumb {
    fn from(row: CountedRow) -> Self {
        let mut record = Self::from(row.record);
        if record.ttl_type.is_some_and(TtlType::counts_reads) {
            let allowed = record.ttl_config.as_ref().and_then(|config| config.get("max_reads")).and_then(Value::as_i64);
            record.read_count = row.read_count;
            record.reads_left = allowed.zip(row.read_count).map(|(allowed, count)| (allowed - count).max(0));
        }
        record
    }
}
