//! Writes records: each write is the row, its tags, its history and its event in one statement.
//! Many new records are written [together](crate::writing).

pub(crate) mod context_reads;
pub(crate) mod event_ranges;
pub(crate) mod expiry;
pub(crate) mod history;
pub(crate) mod idempotency;
pub(crate) mod listing;
pub(crate) mod prune;
pub(crate) mod purge;
pub(crate) mod selector_sql;

use std::sync::Arc;

use chrono::Utc;
use rcrt_breadcrumb::{
    AnsweredTerms, Breadcrumb, BreadcrumbChanges, ChangeCheck, Claim, ClaimTerms, Created, NewBreadcrumb, RequestKind,
    StoreError, ToolFailure, TtlType, Violations, Visibility, schema_names,
};
use uuid::Uuid;

use crate::calls;
use crate::database::failure::{Failure, Result};
use crate::database::row_access::RequiredPermission;
use crate::database::transaction::TenantTransaction;
use crate::rights::actor::Actor;
use crate::rights::audit::{self, AuditLine};
use crate::rows;
use crate::rows::quotas::{QuotaReservation, Quotas};
use crate::rows::row::{CountedRow, RecordRow, record_columns};
use crate::rows::tool_quotas::ToolWrite;
use crate::secrets;
use crate::writing::{CallStart, IdempotencyKey, NewCall, PreparedRecord, WriteOp, WriteOutcome, Writer};

const RESPONSE_TAGS: [&str; 2] = ["tool:response", "tool:create:response"];

/// How a new record is written. The last two are for requests.
pub(crate) enum NewRecord {
    Plain,
    Claimed(ClaimTerms),
    Answered(Box<AnsweredTerms>),
}

/// The caller has validated the record, and its response. Returns the claim that was written.
pub(crate) async fn create(
    writer: &Arc<Writer>,
    owner_id: Uuid,
    actor: Actor,
    record: NewBreadcrumb,
    idempotency_key: Option<&str>,
    how: NewRecord,
) -> Result<(Created, Option<Claim>)> {
    actor.refuse_reserved_records(record.schema_name.as_deref(), &record.context)?;
    let id = match &how {
        NewRecord::Plain => Uuid::now_v7(),
        NewRecord::Claimed(terms) => terms.id,
        NewRecord::Answered(terms) => terms.id,
    };
    let creator = actor.creator_of(&record);
    let key = idempotency_key.map(|key| IdempotencyKey { key: key.to_owned(), fingerprint: record.fingerprint() });
    let again = key.as_ref().map(|key| (key.key.clone(), key.fingerprint.clone()));
    let mut prepared = PreparedRecord::new(id, record, Some(creator));
    prepared.call = NewCall::of(id, &prepared.record, actor.profile);
    prepared.key = key;
    let claim = start_with(&mut prepared, owner_id, how)?;
    // A repeated create needs no quota: its record already exists.
    let parent = prepared.call.as_ref().and_then(|call| call.parent);
    let (quota, refused) = match Box::pin(reserve_for(writer, owner_id, actor, &prepared, parent)).await {
        Ok(quota) => (Some(quota), None),
        Err(Failure::Store(refused @ (StoreError::QuotaExceeded { .. } | StoreError::QueueFull { .. })))
            if again.is_some() =>
        {
            (None, Some(refused))
        }
        Err(failure) => return Err(failure),
    };
    let outcome = match &quota {
        Some(_) => writer.write(owner_id, WriteOp::Create(prepared)).await?,
        None => WriteOutcome::Refused,
    };
    if outcome == WriteOutcome::Refused
        && let Some((key, fingerprint)) = again
    {
        if let (Some(_), Some(parent)) = (&quota, parent) {
            Box::pin(calls::count_descendants(&writer.database, owner_id, parent, -1)).await?;
        }
        let mut tx = Box::pin(TenantTransaction::begin(&writer.database, owner_id)).await?;
        let first = idempotency::first_result(&mut tx, creator, &key, &fingerprint).await;
        let id = first.map_err(|error| refused.map_or(error, Into::into))?;
        return Ok((Created { id, version: 1, replayed: true, warnings: Vec::new() }, None));
    }
    if let Some(quota) = quota {
        quota.keep();
    }
    let claim = match outcome {
        WriteOutcome::Written(Some(at)) => claim.map(|claim| claim.written_at(at)),
        _ => None,
    };
    Ok((Created { id, version: 1, replayed: false, warnings: Vec::new() }, claim))
}

/// Sets the state in which the request's call is written. Returns its claim, but for the time.
fn start_with(request: &mut PreparedRecord, owner_id: Uuid, how: NewRecord) -> Result<Option<Claim>, Violations> {
    let Some(call) = &mut request.call else {
        return match how {
            NewRecord::Plain => Ok(None),
            _ => Err(Violations::one("schema_name", format!("must be {}", schema_names::TOOL_REQUEST))),
        };
    };
    match how {
        NewRecord::Plain => Ok(None),
        NewRecord::Claimed(terms) => {
            call.start = CallStart::Claimed(terms);
            let (profiles, deadline_ms) = (call.profiles.clone(), call.deadline_ms);
            Ok(Some(Claim::at_write(request.as_written(owner_id, Utc::now()), profiles, deadline_ms)))
        }
        NewRecord::Answered(terms) => {
            let AnsweredTerms { response, responder, max_attempts, .. } = *terms;
            // A private response belongs to the agent that asked.
            let asker = request.agent.filter(|_| response.visibility == Visibility::Private);
            let response = PreparedRecord::new(Uuid::now_v7(), response, asker.or(Some(responder)));
            call.start = CallStart::Answered(Box::new(response), max_attempts);
            Ok(None)
        }
    }
}

/// Reserves quota for a new record and a place in the queue for its call, and counts a request of a
/// call in that call's tree.
async fn reserve_for(
    writer: &Arc<Writer>,
    owner_id: Uuid,
    actor: Actor,
    record: &PreparedRecord,
    parent: Option<Uuid>,
) -> Result<QuotaReservation> {
    if let (Some(call), Some(agent)) = (&record.call, record.agent)
        && call.is_limited()
    {
        writer.queue_limit.take(&writer.database, owner_id, agent).await?;
    }
    let reserved = reserve_quota_for(writer, owner_id, actor, record).await?;
    if let Some(parent) = parent
        && !Box::pin(calls::count_descendants(&writer.database, owner_id, parent, 1)).await?
    {
        return Err(StoreError::too_many_descendants().into());
    }
    Ok(reserved)
}

/// Reserves quota for a new record in its tenant. The runtime's own records always have quota.
async fn reserve_quota_for(
    writer: &Arc<Writer>,
    owner_id: Uuid,
    actor: Actor,
    record: &PreparedRecord,
) -> Result<QuotaReservation> {
    let (records, bytes) = (1, record.size_bytes);
    if actor.is_plain_runner() && is_about_tools(record.record.schema_name.as_deref()) {
        return Ok(writer.quotas.reserve_unchecked(owner_id, records, bytes));
    }
    writer.quotas.load(&writer.database, owner_id).await?;
    let reserved = writer.quotas.reserve(owner_id, records, bytes)?;
    if !schema_names::is_tool(record.record.schema_name.as_deref()) {
        return Ok(reserved);
    }
    let write = ToolWrite { limited_creator: actor.limited_creator(), is_new: true, more_bytes: bytes };
    writer.quotas.reserve_tool(&writer.database, owner_id, &write, reserved).await
}

fn is_about_tools(schema_name: Option<&str>) -> bool {
    schema_name.is_some_and(|name| ["tool.", "schedule.", "mcp."].iter().any(|kind| name.starts_with(kind)))
}

/// Reads the record, and counts the read in the same statement if the record's reads are limited.
/// The caller must commit the transaction if the read was counted.
pub(crate) async fn read(mut tx: TenantTransaction, actor: Actor, id: Uuid) -> Result<Breadcrumb> {
    let row: Option<CountedRow> = sqlx::query_as(concat!(
        "SELECT ",
        record_columns!(),
        ", CASE WHEN b.ttl_type IN ('usage', 'hybrid') THEN
            CASE WHEN $2 THEN count_read(b.id)
                ELSE coalesce((SELECT r.reads FROM breadcrumb_reads r
                    WHERE r.owner_id = b.owner_id AND r.breadcrumb_id = b.id), 0) END
          END AS read_count
         FROM breadcrumbs b WHERE b.id = $1 AND (b.ttl IS NULL OR b.ttl > clock_timestamp())"
    ))
    .bind(id)
    .bind(actor.reads_count())
    .fetch_optional(tx.connection())
    .await?;
    let record = row.map(Breadcrumb::from).ok_or(StoreError::NotFound { what: "breadcrumb", id })?;
    if actor.reads_count() && record.ttl_type.is_some_and(TtlType::counts_reads) {
        // Another reader used the last read while this one waited.
        if record.read_count.is_none() {
            return Err(StoreError::NotFound { what: "breadcrumb", id }.into());
        }
        tx.commit().await?;
    }
    Ok(record)
}

/// The record's version. Counts no read.
pub(crate) async fn version(tx: &mut TenantTransaction, id: Uuid) -> Result<i64> {
    let version: Option<i64> = sqlx::query_scalar(
        "SELECT version FROM breadcrumbs WHERE id = $1 AND (ttl IS NULL OR ttl > clock_timestamp())",
    )
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    Ok(version.ok_or(StoreError::NotFound { what: "breadcrumb", id })?)
}

/// Reads the record for a change in this transaction. Waits for a reader that may be its last.
async fn get_to_change(tx: &mut TenantTransaction, id: Uuid) -> Result<Breadcrumb> {
    tx.lock(id).await?;
    let row: Option<RecordRow> = sqlx::query_as(concat!(
        "SELECT ",
        record_columns!(),
        " FROM breadcrumbs b WHERE b.id = $1 AND (b.ttl IS NULL OR b.ttl > clock_timestamp()) FOR NO KEY UPDATE"
    ))
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(Breadcrumb::from).ok_or(StoreError::NotFound { what: "breadcrumb", id })?)
}

/// Also returns whether the record was a tool before the change.
pub(crate) async fn update(
    mut tx: TenantTransaction,
    quotas: &Quotas,
    actor: Actor,
    id: Uuid,
    version: i64,
    changes: &BreadcrumbChanges,
    check: Option<&ChangeCheck<'_>>,
) -> Result<(Breadcrumb, bool)> {
    let record = get_to_change(&mut tx, id).await?;
    let was_tool = schema_names::is_tool(record.schema_name.as_deref());
    refuse_response(record.schema_name.as_deref())?;
    actor.refuse_reserved_records(record.schema_name.as_deref(), &record.context)?;
    expect_version(&record, Some(version))?;
    secrets::refuse_change_by_others(&mut tx, actor, id).await?;
    let mut next = changes.applied_to(&record)?;
    if let Some(check) = check {
        next = check(&record, next)?;
    }
    actor.mark(&mut next.tags, &record.tags)?;
    actor.mark_tool(&mut next, quotas.publish(tx.owner_id))?;
    actor.mark_memory(&mut next)?;
    refuse_response(next.schema_name.as_deref())?;
    refuse_response_tag(&next.tags, &record.tags)?;
    actor.refuse_change(&record, &[record.schema_name.as_deref(), next.schema_name.as_deref()])?;
    actor.refuse_reserved_records(next.schema_name.as_deref(), &next.context)?;
    refuse_request_changes(&record, &next)?;
    actor.refuse_to_open(&record, &next)?;
    if tx.is_guest() {
        refuse_to_guests(&record, &next)?;
    }
    if changes.names_ttl() && !tx.shows(&record, RequiredPermission::Delete).await? {
        let why = "only an agent that can delete the record can change its ttl; this grant allows only updates";
        return Err(StoreError::Forbidden(why.into()).into());
    }
    let is_free = actor.is_plain_runner() && is_about_tools(record.schema_name.as_deref());
    if !is_free && let Some(write) = tool_write(actor, &record, &next) {
        quotas.check_tool(&mut tx, &write).await?;
    }
    let quota = quotas.reserve_version(tx.owner_id, if is_free { None } else { Some(&next) })?;
    let mut written =
        rows::write_version(&mut tx, &record, &next, actor.changer_of(&record, &next), changes.names_ttl()).await?;
    audit_tool(&mut tx, actor, &record, &written).await?;
    if !tx.shows(&written, RequiredPermission::Read).await? {
        let can_view = tx.shows(&written, RequiredPermission::View).await?;
        hide_unreadable(&mut written, changes, can_view);
    }
    tx.commit().await?;
    quota.keep();
    Ok((written, was_tool))
}

/// `None` if the record is not a tool after the change.
fn tool_write(actor: Actor, old: &Breadcrumb, next: &NewBreadcrumb) -> Option<ToolWrite> {
    if !schema_names::is_tool(next.schema_name.as_deref()) {
        return None;
    }
    let is_new = !schema_names::is_tool(old.schema_name.as_deref());
    let before = if is_new { 0 } else { old.size_bytes };
    let more_bytes = Breadcrumb::measure(&next.context).1 - before;
    Some(ToolWrite { limited_creator: actor.limited_creator().filter(|_| is_new), is_new, more_bytes })
}

/// Writes the change of a tool's record into the audit log.
async fn audit_tool(tx: &mut TenantTransaction, actor: Actor, old: &Breadcrumb, new: &Breadcrumb) -> Result<()> {
    let action =
        match (schema_names::is_tool(old.schema_name.as_deref()), schema_names::is_tool(new.schema_name.as_deref())) {
            (true, true) => "tool.changed",
            (false, true) => "tool.created",
            (true, false) => "tool.deleted",
            (false, false) => return Ok(()),
        };
    let named = if action == "tool.deleted" { old } else { new };
    let name = named.context.get("name").and_then(|name| name.as_str()).unwrap_or(&named.title);
    let version = format!("version {}", new.version);
    audit::write(tx, AuditLine::by(actor.on_behalf_of, action).on(new.id, name).because(&version)).await
}

/// Records that the runtime acts on, such as a tool's code, run with the tenant's rights. So
/// another tenant's agent cannot change them, or turn a record into one.
fn refuse_to_guests(old: &Breadcrumb, new: &NewBreadcrumb) -> Result<(), StoreError> {
    if old.schema_name != new.schema_name || old.schema_name.as_deref().is_some_and(schema_names::is_of_runtime) {
        let why = "an agent of another tenant cannot change a schema_name, or records that this tenant's runtime acts on \
                   (tools, requests, memory, schedules, schemas, guides, MCP servers, A2A agents)";
        return Err(StoreError::Forbidden(why.into()));
    }
    Ok(())
}

/// An agent that can change a record but not read it gets only what it wrote itself.
fn hide_unreadable(written: &mut Breadcrumb, changes: &BreadcrumbChanges, can_view: bool) {
    (written.created_by, written.ttl, written.ttl_type, written.ttl_config) = (None, None, None, None);
    if !can_view {
        written.title = changes.title.clone().unwrap_or_default();
        written.context = changes.context.clone().unwrap_or_default();
        written.tags = changes.tags.clone().unwrap_or_default();
        written.description.clone_from(&changes.description);
        written.semantic_version.clone_from(&changes.semantic_version);
        written.schema_name.clone_from(&changes.schema_name);
        written.llm_hints.clone_from(&changes.llm_hints);
        // These reveal the context.
        (written.checksum, written.size_bytes) = Breadcrumb::measure(&written.context);
    }
}

/// Returns whether the record was a tool.
pub(crate) async fn delete(mut tx: TenantTransaction, actor: Actor, id: Uuid, version: Option<i64>) -> Result<bool> {
    let record = get_to_change(&mut tx, id).await?;
    actor.refuse_change(&record, &[record.schema_name.as_deref()])?;
    actor.refuse_reserved_records(record.schema_name.as_deref(), &record.context)?;
    if !actor.is_curator && refuse_response(record.schema_name.as_deref()).is_err() {
        let why = format!("only a curator can delete a {}", schema_names::TOOL_RESPONSE);
        return Err(StoreError::Forbidden(why).into());
    }
    expect_version(&record, version)?;
    // A tool of the deleter could then take the name of one that a curator trusts.
    secrets::refuse_change_by_others(&mut tx, actor, id).await?;
    if RequestKind::of(record.schema_name.as_deref()).is_some() {
        let reason = ToolFailure::new(rcrt_breadcrumb::ErrorCode::Cancelled, "the request was deleted before it ran");
        calls::abandon(&mut tx, id, reason).await?;
    }
    remove(&mut tx, Some(actor.agent), id).await?;
    tx.count_usage(-1, 0);
    tx.commit().await?;
    Ok(schema_names::is_tool(record.schema_name.as_deref()))
}

/// Deletes a locked record. Its last version stays in the history until its events are deleted,
/// because the event of the deletion shows it. `agent`: who deletes it, `None` if it expired.
pub(crate) async fn remove(tx: &mut TenantTransaction, agent: Option<Uuid>, id: Uuid) -> Result<()> {
    remove_all(tx, agent, &[id], Remains::Versions).await
}

/// What stays of a deleted record until its events are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remains {
    /// All versions, which the events show.
    Versions,
    /// The versions without their titles and contexts: who may receive the events, and by which
    /// tags.
    Labels,
}

/// [`remove`] for several records, in one statement.
pub(crate) async fn remove_all(
    tx: &mut TenantTransaction,
    agent: Option<Uuid>,
    ids: &[Uuid],
    remains: Remains,
) -> Result<()> {
    secrets::end_with_records(tx, agent, ids).await?;
    if remains == Remains::Labels {
        // The role of the store cannot update versions.
        sqlx::query(
            "WITH old AS (DELETE FROM breadcrumb_versions WHERE breadcrumb_id = ANY($1) RETURNING *)
             INSERT INTO breadcrumb_versions (owner_id, breadcrumb_id, version, title, context, tags, schema_name,
                checksum, updated_at, updated_by, visibility, sensitivity, created_by, replaced_at)
             SELECT owner_id, breadcrumb_id, version, '', '{}', tags, schema_name, '', updated_at, updated_by,
                visibility, sensitivity, created_by, replaced_at
             FROM old",
        )
        .bind(ids)
        .execute(tx.connection())
        .await?;
    }
    let event_indexes: Vec<i32> = ids.iter().map(|_| tx.next_event()).collect();
    sqlx::query(
        "WITH gone AS (
            DELETE FROM breadcrumbs b USING unnest($1::uuid[], $2::integer[]) AS g (id, event_index) WHERE b.id = g.id
            RETURNING b.*, g.event_index, CASE WHEN $4 THEN 2 ELSE b.size_bytes END AS shown_bytes),
        kept AS (
            INSERT INTO breadcrumb_versions (breadcrumb_id, version, owner_id, title, context, tags, schema_name,
                checksum, updated_at, updated_by, visibility, sensitivity, created_by)
            SELECT id, version, owner_id, CASE WHEN $4 THEN '' ELSE title END, CASE WHEN $4 THEN '{}' ELSE context END,
                tags, schema_name, CASE WHEN $4 THEN '' ELSE checksum END, updated_at, updated_by,
                visibility, sensitivity, created_by
            FROM gone),
        untagged AS (
            DELETE FROM breadcrumb_tags t USING (SELECT owner_id, id, unnest(tags) AS tag FROM gone) g
            WHERE t.owner_id = g.owner_id AND t.tag = g.tag AND t.breadcrumb_id = g.id),
        uncounted AS (
            DELETE FROM breadcrumb_reads r USING gone
            WHERE r.owner_id = gone.owner_id AND r.breadcrumb_id = gone.id AND gone.ttl_type IN ('usage', 'hybrid')),
        audited AS (
            INSERT INTO audit (owner_id, agent_id, action, subject, subject_name)
            SELECT owner_id, $3::uuid, CASE WHEN $3::uuid IS NULL THEN 'tool.expired' ELSE 'tool.deleted' END, id,
                coalesce(context ->> 'name', title)
            FROM gone WHERE schema_name IN ('tool.code.v1', 'tool.v1')),
        shared AS (
            INSERT INTO shared_events (grantee_owner_id, number, owner_id, kind, breadcrumb_id, version, at,
                size_bytes)
            SELECT grantee_owner_id, event_number(event_index), owner_id, 'breadcrumb.deleted', id, version,
                clock_timestamp(), shown_bytes
            FROM (
                SELECT DISTINCT g.grantee_owner_id, gone.owner_id, gone.id, gone.version, gone.shown_bytes, gone.event_index
                FROM gone JOIN acl_grants g
                    ON g.owner_id = gone.owner_id AND g.breadcrumb_id = gone.id AND g.grantee_owner_id <> g.owner_id
                WHERE 'subscribe' = ANY (g.actions) AND NOT is_runtime_schema(gone.schema_name)) shares)
        INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
        SELECT owner_id, event_number(event_index), 'breadcrumb.deleted', id, version, clock_timestamp(), shown_bytes FROM gone",
    )
    .bind(ids)
    .bind(event_indexes)
    .bind(agent)
    .bind(remains == Remains::Labels)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A request has exactly one response. It is written when the call finishes, and never changes.
pub(crate) fn refuse_response(schema_name: Option<&str>) -> Result<(), Violations> {
    if RequestKind::is_response(schema_name) {
        let message = "can be written only by the runtime; a runner completes a call with its lease";
        return Err(Violations::one("schema_name", message));
    }
    Ok(())
}

/// Only responses can have the tags of responses. `before`: the tags that the record already has.
pub(crate) fn refuse_response_tag(tags: &[String], before: &[String]) -> Result<(), Violations> {
    let is_new = |tag: &&String| RESPONSE_TAGS.contains(&tag.as_str()) && !before.contains(*tag);
    if let Some(tag) = tags.iter().find(is_new) {
        let message = format!("has {tag}, which only a response can have");
        return Err(Violations::one("tags", message));
    }
    Ok(())
}

fn expect_version(record: &Breadcrumb, expected: Option<i64>) -> Result<()> {
    match expected {
        Some(expected) if expected != record.version => {
            Err(StoreError::VersionConflict { expected, actual: record.version }.into())
        }
        _ => Ok(()),
    }
}

/// The content of a request cannot change: its call may already be queued, running or finished.
fn refuse_request_changes(old: &Breadcrumb, new: &NewBreadcrumb) -> Result<()> {
    if RequestKind::of(old.schema_name.as_deref()).is_none() {
        return Ok(());
    }
    let mut found = Violations::default();
    for field in [
        "tool",
        "input",
        "requestId",
        "trigger_event",
        "session",
        "model",
        "max_result_chars",
        "deadline_ms",
        "traceparent",
        "parent",
        "version",
        "definition_hash",
        "awaited",
        "request_id",
        "tool_spec",
        "mode",
        "if_version",
    ] {
        if old.context.get(field) != new.context.get(field) {
            found.add(format!("context.{field}"), "of a request cannot be changed; create a new request");
        }
    }
    Ok(found.into_result()?)
}
