//! Imports lines into the tables, some lines per transaction.

use std::io::BufRead;

use rcrt_breadcrumb::{
    Breadcrumb, CURATORS_TOOL_TAG, MAX_RECORD_BYTES, NewBreadcrumb, Sensitivity, Violations, Visibility, check_numbers,
    read_typed,
    schema_names::{TOOL_CODE, TOOL_RUNNER},
};
use sqlx::types::Json;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::line::{Head, Line, OldVersion};
use super::{TransferError, tenant};
use crate::rows::search_text;

/// The most lines per transaction.
const BATCH: usize = 100;
/// A batch is also full after this many bytes of lines.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;
/// The longest line: the largest record, escaped in the worst case, and its fields.
const LONGEST_LINE: u64 = 6 * MAX_RECORD_BYTES as u64 + 1024 * 1024;

/// What to do with a line whose record already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Keep the existing record.
    Skip,
    /// Write the line as its next version.
    Replace,
    /// Stop the import and roll the current transaction back.
    Fail,
}

/// How many lines of each kind were imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    pub created: u64,
    pub replaced: u64,
    /// Records that already exist and were not changed, records that are not imported, and events.
    pub skipped: u64,
    /// Old versions.
    pub versions: u64,
}

/// Imports lines into the tenant of this name. Holds one batch in memory at a time. `admin_url`: of
/// the tables' owner. Records that are `secret` are left out unless `with_secret`.
pub async fn import_lines(
    admin_url: &str,
    tenant_name: &str,
    from: &mut (dyn BufRead + Send),
    on_conflict: OnConflict,
    with_secret: bool,
) -> Result<Imported, TransferError> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let owner_id = tenant(&mut connection, tenant_name).await?;
    let mut lines = Lines { from, number: 0, bytes: 0 };
    let reserves_curators_tag = match lines.next()? {
        Some(Line::Export(head)) if head.format == Head::FORMAT => head.reserves_curators_tag,
        Some(Line::Export(head)) => {
            let what = format!("the format {} is not supported; a newer version wrote the file", head.format);
            return Err(TransferError::Line { line: 1, what });
        }
        _ => return Err(TransferError::Line { line: 1, what: "must be {\"export\": …}".into() }),
    };
    let (mut done, mut is_whole) = (Imported::default(), false);
    while !is_whole {
        // Lines are read before the transaction begins: their sender may be slow, and an open
        // transaction that has written holds back all events.
        let (mut read, mut is_cut_off, before) = (Vec::new(), false, lines.bytes);
        while read.len() < BATCH && lines.bytes - before < BATCH_BYTES {
            match lines.next()? {
                None => is_cut_off = true,
                Some(Line::End { .. }) => is_whole = true,
                Some(line) => {
                    read.push((lines.number, line));
                    continue;
                }
            }
            break;
        }
        let mut tx = connection.begin().await?;
        // For triggers and defaults that need the tenant of the transaction.
        sqlx::query("SELECT set_config('rcrt.tenant', $1, true)").bind(owner_id.to_string()).execute(&mut *tx).await?;
        // The record locks come before the first write, as for every change of a record, so that
        // its events are in the order of its versions. They are sorted, so that there is no
        // deadlock.
        let mut keys: Vec<i64> = Vec::new();
        for (_, line) in &read {
            if let Line::Record(record) = line {
                keys.push(record.id.as_u64_pair().1.cast_signed());
            }
        }
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(key).execute(&mut *tx).await?;
        }
        let mut batch = Batch { connection: &mut tx, owner_id, on_conflict, with_secret, events: 0, done };
        for (number, line) in read {
            let drop_forged = |schema_name: Option<&str>, tags: &mut Vec<String>| {
                if !reserves_curators_tag || schema_name != Some(TOOL_CODE) {
                    tags.retain(|tag| tag != CURATORS_TOOL_TAG);
                }
            };
            let written = match line {
                Line::Export(_) => Err("is a second {\"export\": …}; a file has only one, in its first line".into()),
                Line::Record(mut record) => {
                    drop_forged(record.schema_name.as_deref(), &mut record.tags);
                    batch.record(&record).await?
                }
                Line::Version(mut version) => {
                    drop_forged(version.schema_name.as_deref(), &mut version.tags);
                    batch.version(&version).await?
                }
                Line::Event(_) => {
                    batch.done.skipped += 1;
                    Ok(())
                }
                Line::End { .. } => Ok(()),
            };
            written.map_err(|what: String| TransferError::Line { line: number, what })?;
        }
        done = batch.done;
        tx.commit().await?;
        if is_cut_off {
            return Err(TransferError::CutOff);
        }
    }
    if lines.next()?.is_some() {
        return Err(TransferError::Line {
            line: lines.number,
            what: "nothing may follow {\"end\": …}; remove this line and those after it".into(),
        });
    }
    let _ = connection.close().await;
    Ok(done)
}

struct Lines<'f> {
    from: &'f mut (dyn BufRead + Send),
    number: u64,
    /// Bytes that were read so far.
    bytes: u64,
}

impl Lines<'_> {
    /// The next line that is not empty. `None` at the end.
    fn next(&mut self) -> Result<Option<Line>, TransferError> {
        loop {
            let mut text = Vec::new();
            let mut bounded = std::io::Read::take(&mut *self.from, LONGEST_LINE);
            if bounded.read_until(b'\n', &mut text)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.bytes += text.len() as u64;
            let line = self.number;
            if text.len() as u64 == LONGEST_LINE && !text.ends_with(b"\n") {
                return Err(TransferError::Line { line, what: format!("is longer than {LONGEST_LINE} bytes") });
            }
            if text.trim_ascii().is_empty() {
                continue;
            }
            let read = serde_json::from_slice(&text);
            if read.is_ok()
                && let Err(violation) = check_numbers(&text)
            {
                return Err(TransferError::Line { line, what: Violations(vec![violation]).to_string() });
            }
            return read.map(Some).map_err(|error| TransferError::Line { line, what: unreadable(&text, &error) });
        }
    }
}

/// Why a line cannot be read: its invalid field, or where it stops being JSON.
fn unreadable(text: &[u8], error: &serde_json::Error) -> String {
    match serde_json::from_slice(text).map(read_typed::<Line>) {
        Ok(Err(violation)) => violation.to_string(),
        Ok(Ok(_)) => error.to_string(),
        Err(malformed) => {
            let full = malformed.to_string();
            let why = full.split(" at line ").next().unwrap_or_default();
            format!("is not valid JSON: {why} at column {}", malformed.column())
        }
    }
}

/// Some lines, in one transaction. A method's inner error describes an invalid line.
struct Batch<'t> {
    connection: &'t mut PgConnection,
    owner_id: Uuid,
    on_conflict: OnConflict,
    with_secret: bool,
    events: i32,
    done: Imported,
}

impl Batch<'_> {
    async fn record(&mut self, record: &Breadcrumb) -> Result<Result<(), String>, TransferError> {
        let is_runner_record = record.schema_name.as_deref() == Some(TOOL_RUNNER);
        if is_runner_record || (record.sensitivity == Sensitivity::Secret && !self.with_secret) {
            self.done.skipped += 1;
            return Ok(Ok(()));
        }
        let written = written(record);
        if let Err(found) = written.check() {
            return Ok(Err(found.to_string()));
        }
        if record.version < 1 {
            return Ok(Err("version: must be 1 or more".into()));
        }
        // An id names one record over all tenants. No key ensures that: keys start with the tenant.
        let there: Option<(Uuid, i64, String)> = sqlx::query_as(
            "SELECT b.owner_id, b.version, b.checksum FROM tenants t, LATERAL (
                SELECT * FROM breadcrumbs r WHERE r.owner_id = t.id AND r.id = $1 FOR UPDATE) b",
        )
        .bind(record.id)
        .fetch_optional(&mut *self.connection)
        .await?;
        match there {
            None => {
                // A deleted record of this id may have left versions. Version numbers are not
                // reused.
                let left: Option<i64> = sqlx::query_scalar(
                    "SELECT max(version) FROM breadcrumb_versions WHERE owner_id = $1 AND breadcrumb_id = $2",
                )
                .bind(self.owner_id)
                .bind(record.id)
                .fetch_one(&mut *self.connection)
                .await?;
                let version = record.version.max(left.unwrap_or_default() + 1);
                // Grants are not imported, so a grant to the deleted record must not apply to this
                // one.
                sqlx::query("DELETE FROM acl_grants WHERE owner_id = $1 AND breadcrumb_id = $2")
                    .bind(self.owner_id)
                    .bind(record.id)
                    .execute(&mut *self.connection)
                    .await?;
                self.insert(record, &written, version, "created").await?;
                self.done.created += 1;
            }
            Some((owner_id, ..)) if owner_id != self.owner_id => {
                return Ok(Err(format!("the id {} belongs to another tenant's record", record.id)));
            }
            Some(_) if self.on_conflict == OnConflict::Fail => {
                return Ok(Err(format!("the record {} already exists", record.id)));
            }
            Some((_, version, checksum)) => {
                let (now, _) = Breadcrumb::measure(&record.context);
                let is_same = version == record.version && checksum == now;
                if self.on_conflict == OnConflict::Skip || is_same {
                    self.done.skipped += 1;
                    return Ok(Ok(()));
                }
                self.replace(record, &written, version).await?;
                self.done.replaced += 1;
            }
        }
        Ok(Ok(()))
    }

    async fn replace(
        &mut self,
        record: &Breadcrumb,
        written: &NewBreadcrumb,
        version: i64,
    ) -> Result<(), TransferError> {
        sqlx::query(
            "INSERT INTO breadcrumb_versions (breadcrumb_id, version, owner_id, title, context, tags, schema_name, checksum,
                updated_at, updated_by, visibility, sensitivity, created_by)
             SELECT id, version, owner_id, title, context, tags, schema_name, checksum, updated_at, updated_by, visibility,
                sensitivity, created_by
             FROM breadcrumbs WHERE owner_id = $2 AND id = $1 ON CONFLICT DO NOTHING",
        )
        .bind(record.id)
        .bind(self.owner_id)
        .execute(&mut *self.connection)
        .await?;
        sqlx::query("DELETE FROM breadcrumb_tags WHERE owner_id = $1 AND breadcrumb_id = $2")
            .bind(self.owner_id)
            .bind(record.id)
            .execute(&mut *self.connection)
            .await?;
        self.insert(record, written, record.version.max(version + 1), "updated").await
    }

    /// Writes the row, its tags and its event. An existing row is overwritten, so its grants and
    /// versions stay.
    async fn insert(
        &mut self,
        record: &Breadcrumb,
        written: &NewBreadcrumb,
        version: i64,
        what: &str,
    ) -> Result<(), TransferError> {
        let (checksum, size_bytes) = Breadcrumb::measure(&record.context);
        sqlx::query(
            "WITH record AS (
                INSERT INTO breadcrumbs (id, owner_id, title, description, semantic_version, context, tags, schema_name,
                    llm_hints, visibility, sensitivity, version, checksum, size_bytes, ttl, ttl_type, ttl_config, created_at,
                    updated_at, created_by, updated_by, words)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
                    setweight(to_tsvector('english', $3), 'A') || setweight(to_tsvector('english', $22), 'B')
                        || setweight(to_tsvector('english', $23), 'C'))
                ON CONFLICT (owner_id, id) DO UPDATE SET (title, description, semantic_version, context, tags, schema_name, llm_hints,
                    visibility, sensitivity, version, checksum, size_bytes, ttl, ttl_type, ttl_config, updated_at,
                    updated_by, words) = (EXCLUDED.title, EXCLUDED.description, EXCLUDED.semantic_version, EXCLUDED.context,
                    EXCLUDED.tags, EXCLUDED.schema_name, EXCLUDED.llm_hints, EXCLUDED.visibility, EXCLUDED.sensitivity,
                    EXCLUDED.version, EXCLUDED.checksum, EXCLUDED.size_bytes, EXCLUDED.ttl, EXCLUDED.ttl_type,
                    EXCLUDED.ttl_config, EXCLUDED.updated_at, EXCLUDED.updated_by, EXCLUDED.words)),
             tag AS (
                INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id) SELECT DISTINCT $2, t, $1 FROM unnest($7) t),
             audited AS (
                INSERT INTO audit (owner_id, action, subject, subject_name, reason)
                SELECT $2, 'tool.imported', $1, coalesce($6::json ->> 'name', $3), 'version ' || $12::bigint
                WHERE $8 IN ('tool.code.v1', 'tool.v1'))
             INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
             VALUES ($2, event_number($24), 'breadcrumb.' || $25, $1, $12, clock_timestamp(), $14)",
        )
        .bind(record.id)
        .bind(self.owner_id)
        .bind(&record.title)
        .bind(&record.description)
        .bind(&record.semantic_version)
        .bind(Json(&record.context))
        .bind(&record.tags)
        .bind(&record.schema_name)
        .bind(record.llm_hints.as_ref().map(Json))
        .bind(record.visibility.as_str())
        .bind(record.sensitivity.as_str())
        .bind(version)
        .bind(checksum)
        .bind(size_bytes)
        .bind(record.ttl)
        .bind(record.ttl_type.map(rcrt_breadcrumb::TtlType::as_str))
        .bind(record.ttl_config.as_ref().map(Json))
        .bind(record.created_at)
        .bind(record.updated_at)
        .bind(record.created_by)
        .bind(record.updated_by)
        .bind(search_text::label_words(written))
        .bind(search_text::context_words(written))
        .bind(self.events)
        .bind(what)
        .execute(&mut *self.connection)
        .await?;
        self.events += 1;
        Ok(())
    }

    async fn version(&mut self, version: &OldVersion) -> Result<Result<(), String>, TransferError> {
        if version.sensitivity == Some(Sensitivity::Secret) && !self.with_secret {
            return Ok(Ok(()));
        }
        let done = sqlx::query(
            "INSERT INTO breadcrumb_versions (breadcrumb_id, version, owner_id, title, context, tags, schema_name, checksum,
                updated_at, updated_by, visibility, sensitivity, created_by)
             SELECT id, $3, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM breadcrumbs
             WHERE id = $1 AND owner_id = $2 AND version > $3 ON CONFLICT DO NOTHING",
        )
        .bind(version.breadcrumb_id)
        .bind(self.owner_id)
        .bind(version.version)
        .bind(&version.title)
        .bind(Json(&version.context))
        .bind(&version.tags)
        .bind(&version.schema_name)
        .bind(&version.checksum)
        .bind(version.updated_at)
        .bind(version.updated_by)
        .bind(version.visibility.map(Visibility::as_str))
        .bind(version.sensitivity.map(Sensitivity::as_str))
        .bind(version.created_by)
        .execute(&mut *self.connection)
        .await?;
        self.done.versions += done.rows_affected();
        Ok(Ok(()))
    }
}

/// The record in the form that a caller would send, so that the same validation applies.
fn written(record: &Breadcrumb) -> NewBreadcrumb {
    NewBreadcrumb {
        title: record.title.clone(),
        description: record.description.clone(),
        semantic_version: record.semantic_version.clone(),
        context: record.context.clone(),
        tags: record.tags.clone(),
        schema_name: record.schema_name.clone(),
        llm_hints: record.llm_hints.clone(),
        visibility: record.visibility,
        sensitivity: record.sensitivity,
        // The time to live was computed when the record was written, and may have passed.
        ..NewBreadcrumb::default()
    }
}
