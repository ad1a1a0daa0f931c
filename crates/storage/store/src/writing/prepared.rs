//! A record before its write, with everything that can be computed without the database.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Breadcrumb, NewBreadcrumb, Reservation};
use uuid::Uuid;

use crate::calls::NewCall;
use crate::search;

/// A validated record. The caller's task prepares it, so that the batch writers only send it.
pub(crate) struct PreparedRecord {
    pub(crate) id: Uuid,
    pub(crate) record: NewBreadcrumb,
    /// `None` for the store's own records.
    pub(crate) agent: Option<Uuid>,
    pub(crate) key: Option<IdempotencyKey>,
    /// The call of a request.
    pub(crate) call: Option<NewCall>,
    pub(super) context: String,
    pub(super) checksum: String,
    pub(crate) size_bytes: i64,
    pub(super) llm_hints: Option<String>,
    pub(super) ttl: Option<DateTime<Utc>>,
    pub(super) ttl_config: Option<String>,
    pub(super) label_words: String,
    pub(super) context_words: String,
}

/// Identifies a repeated create.
pub(crate) struct IdempotencyKey {
    pub(crate) key: String,
    pub(crate) fingerprint: String,
}

impl PreparedRecord {
    pub(crate) fn new(id: Uuid, record: NewBreadcrumb, agent: Option<Uuid>) -> Self {
        let context = json_text(&record.context);
        let (checksum, size_bytes) = Breadcrumb::measure_text(&context);
        Self {
            id,
            agent,
            key: None,
            call: None,
            context,
            checksum,
            size_bytes,
            llm_hints: record.llm_hints.as_ref().map(json_text),
            ttl: record.ends_at(Utc::now()),
            ttl_config: record.ttl_config.as_ref().map(json_text),
            label_words: search::label_words(&record),
            context_words: search::context_words(&record),
            record,
        }
    }

    pub(super) fn reservation(&self) -> Option<&Reservation> {
        self.call.as_ref()?.reservation.as_ref()
    }

    /// The response that is written with it.
    pub(super) fn answer(&self) -> Option<&PreparedRecord> {
        self.call.as_ref()?.answer.as_deref()
    }

    /// The record as written at this time.
    pub(super) fn as_written(&self, owner_id: Uuid, at: DateTime<Utc>) -> Breadcrumb {
        let record = self.record.clone();
        Breadcrumb {
            id: self.id,
            owner_id,
            title: record.title,
            description: record.description,
            semantic_version: record.semantic_version,
            context: record.context,
            tags: record.tags,
            schema_name: record.schema_name,
            llm_hints: record.llm_hints,
            visibility: record.visibility,
            sensitivity: record.sensitivity,
            version: 1,
            checksum: self.checksum.clone(),
            ttl: self.ttl,
            ttl_type: record.ttl_type,
            ttl_config: record.ttl_config,
            created_at: at,
            updated_at: at,
            created_by: self.agent,
            updated_by: self.agent,
            size_bytes: self.size_bytes,
            read_count: None,
            reads_left: None,
            warnings: Vec::new(),
        }
    }

    /// Roughly how many bytes it takes in a batch.
    pub(super) fn bytes(&self) -> usize {
        let own = self.context.len() + self.context_words.len() + 1024;
        own + self.answer().map_or(0, Self::bytes)
    }
}

fn json_text(value: &impl serde::Serialize) -> String {
    // Maps with string keys and JSON values always serialize.
    serde_json::to_string(value).unwrap_or_default()
}
