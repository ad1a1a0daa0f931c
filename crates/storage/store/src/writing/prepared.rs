//! A record before its write, with everything that can be computed without the database, and the
//! call of a request.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Breadcrumb, ClaimTerms, NewBreadcrumb, Profile, Profiles, RequestKind, ToolRequest};
use serde_json::Value;
use uuid::Uuid;

use crate::rows::row::json_text;
use crate::rows::search_text;

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

/// The queue's row for a new request. It has enough to respond to the request after its record is
/// deleted.
pub(crate) struct NewCall {
    pub(crate) tool: String,
    pub(crate) request_id: String,
    pub(crate) workspace: Option<String>,
    /// The writer's profile, and those in the record's tags.
    pub(crate) profiles: Profiles,
    pub(crate) deadline_ms: Option<u64>,
    pub(crate) session: Option<String>,
    pub(crate) parent: Option<Uuid>,
    /// Whether the call that wrote it waits for the response.
    pub(crate) awaited: bool,
    pub(crate) start: CallStart,
}

/// The state in which a call is written.
pub(crate) enum CallStart {
    Queued,
    Claimed(ClaimTerms),
    /// Finished, with this response and the tool's number of attempts.
    Answered(Box<PreparedRecord>, u32),
}

impl NewCall {
    /// `None` if the record is not a request. `profile`: its writer's.
    pub(crate) fn of(id: Uuid, record: &NewBreadcrumb, profile: Profile) -> Option<Self> {
        let kind = RequestKind::of(record.schema_name.as_deref())?;
        let text = |key: &str| record.context.get(key).and_then(Value::as_str);
        Some(Self {
            tool: ToolRequest::tool_of(kind, &record.context).to_owned(),
            request_id: ToolRequest::own_id(kind, &record.context).map_or_else(|| id.to_string(), str::to_owned),
            workspace: record.tags.iter().find(|tag| tag.starts_with("workspace:")).cloned(),
            profiles: Profiles::of_record(profile, &record.tags),
            deadline_ms: record.context.get("deadline_ms").and_then(Value::as_u64),
            session: text("session").map(str::to_owned),
            parent: text("parent").and_then(|parent| parent.parse().ok()),
            awaited: ToolRequest::is_awaited(&record.context),
            start: CallStart::Queued,
        })
    }

    /// Whether it takes one of its agent's places in the queue.
    pub(crate) fn is_limited(&self) -> bool {
        self.parent.is_none() && matches!(self.start, CallStart::Queued)
    }
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
            label_words: search_text::label_words(&record),
            context_words: search_text::context_words(&record),
            record,
        }
    }

    /// The claim that is written with it.
    pub(super) fn claim(&self) -> Option<&ClaimTerms> {
        match &self.call.as_ref()?.start {
            CallStart::Claimed(terms) => Some(terms),
            _ => None,
        }
    }

    /// The response that is written with it.
    pub(super) fn answer(&self) -> Option<&PreparedRecord> {
        match &self.call.as_ref()?.start {
            CallStart::Answered(response, _) => Some(response),
            _ => None,
        }
    }

    /// The number of attempts of a call that is written running or finished.
    pub(super) fn max_attempts(&self) -> Option<i32> {
        let max_attempts = match &self.call.as_ref()?.start {
            CallStart::Queued => None,
            CallStart::Claimed(terms) => terms.max_attempts,
            CallStart::Answered(_, max_attempts) => Some(*max_attempts),
        };
        Some(max_attempts?.clamp(1, 10).cast_signed())
    }

    /// The record as it is written at this time.
    pub(crate) fn as_written(&self, owner_id: Uuid, at: DateTime<Utc>) -> Breadcrumb {
        let measured = (self.checksum.clone(), self.size_bytes);
        Breadcrumb {
            ttl: self.ttl,
            ..self.record.clone().into_first_version(self.id, owner_id, self.agent, measured, at)
        }
    }

    /// Roughly how many bytes it takes in a batch.
    pub(super) fn bytes(&self) -> usize {
        let own = self.context.len() + self.context_words.len() + 1024;
        own + self.answer().map_or(0, Self::bytes)
    }
}
