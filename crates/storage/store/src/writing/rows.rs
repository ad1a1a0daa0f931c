//! The rows that `write_batch` takes, as the composite types of `migrations/0006_write_batch.sql`.

use std::ops::Deref;

use rcrt_breadcrumb::{ErrorCode, Profile, TtlType};
use sqlx::encode::{Encode, IsNull};
use sqlx::error::BoxDynError;
use sqlx::postgres::types::PgRecordEncoder;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo};
use sqlx::{Postgres, Type};

use super::outcome::ResponseOutcome;
use super::prepared::{IdempotencyKey, PreparedRecord};
use super::write::CallStep;

/// Encodes a type as a composite type. The fields are in its order; their names are for the reader.
/// sqlx has a derive for this, which costs building sqlx twice (`database/from_row.rs`).
macro_rules! composite {
    ($type:ty as $name:literal, |$row:ident| { $($field:ident: $value:expr,)* }) => {
        impl Type<Postgres> for $type {
            fn type_info() -> PgTypeInfo {
                PgTypeInfo::with_name($name)
            }
        }

        impl PgHasArrayType for $type {
            fn array_type_info() -> PgTypeInfo {
                PgTypeInfo::array_of($name)
            }
        }

        impl Encode<'_, Postgres> for $type {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
                let $row = self;
                let mut encoder = PgRecordEncoder::new(buffer);
                $(encoder.encode($value)?;)*
                encoder.finish();
                Ok(IsNull::No)
            }
        }
    };
}

/// One record of a batch.
pub(super) struct NewRecord<'r> {
    /// The index of its event in the transaction.
    event_index: i32,
    prepared: &'r PreparedRecord,
    /// For a response, the request that is written with it.
    answered: Option<&'r PreparedRecord>,
}

impl Deref for NewRecord<'_> {
    type Target = PreparedRecord;

    fn deref(&self) -> &PreparedRecord {
        self.prepared
    }
}

impl<'r> NewRecord<'r> {
    pub(super) fn alone(event_index: i32, prepared: &'r PreparedRecord) -> Self {
        Self { event_index, prepared, answered: None }
    }

    /// The records, each followed by its response.
    pub(super) fn all(records: impl Iterator<Item = &'r PreparedRecord>) -> Vec<Self> {
        let each = records.flat_map(|record| {
            let answer = record.answer().map(|answer| (answer, Some(record)));
            std::iter::once((record, None)).chain(answer)
        });
        (0..).zip(each).map(|(event_index, (prepared, answered))| Self { event_index, prepared, answered }).collect()
    }

    /// The idempotency key. A response uses its request's.
    fn key(&self) -> Option<&'r IdempotencyKey> {
        self.answered.unwrap_or(self.prepared).key.as_ref()
    }
}

composite!(NewRecord<'_> as "new_record", |row| {
    event_index: row.event_index,
    id: row.id,
    title: row.record.title.as_str(),
    description: row.record.description.as_deref(),
    semantic_version: row.record.semantic_version.as_deref(),
    context: row.context.as_str(),
    tags: row.record.tags.as_slice(),
    schema_name: row.record.schema_name.as_deref(),
    llm_hints: row.llm_hints.as_deref(),
    visibility: row.record.visibility.as_str(),
    sensitivity: row.record.sensitivity.as_str(),
    checksum: row.checksum.as_str(),
    size_bytes: row.size_bytes,
    ttl: row.ttl,
    ttl_type: row.record.ttl_type.map(TtlType::as_str),
    ttl_config: row.ttl_config.as_deref(),
    agent: row.agent,
    label_words: row.label_words.as_str(),
    context_words: row.context_words.as_str(),
    key: row.key().map(|key| key.key.as_str()),
    fingerprint: row.key().map(|key| key.fingerprint.as_str()),
    tool: row.call.as_ref().map(|call| call.tool.as_str()),
    request_id: row.call.as_ref().map(|call| call.request_id.as_str()),
    workspace: row.call.as_ref().and_then(|call| call.workspace.as_deref()),
    profiles: row.call.as_ref().map(|call| call.profiles.iter().map(Profile::as_str).collect::<Vec<_>>()),
    deadline_ms: row.call.as_ref().and_then(|call| Some(call.deadline_ms? as f64)),
    runner: row.claim().map(|claim| claim.runner_id),
    lease_ms: row.claim().map(|claim| claim.lease_ms as f64),
    max_attempts: row.max_attempts(),
    answer: row.answer().map(|answer| answer.id),
    answered: row.answered.map(|request| request.id),
    session: row.call.as_ref().and_then(|call| call.session.as_deref()),
    parent: row.call.as_ref().and_then(|call| call.parent),
    awaited: row.call.as_ref().is_some_and(|call| call.awaited && call.parent.is_some()),
    run_us: row.answer().and_then(|answer| ResponseOutcome::of(&answer.record).run_us),
});

composite!(CallStep as "call_step", |step| {
    request: step.lease.request,
    fence: step.lease.fence,
    attempts: step.attempts,
    response: step.response,
    error_code: step.error_code.map(ErrorCode::as_str),
    run_us: step.run_us,
});
