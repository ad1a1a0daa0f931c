//! Records: create, read, update, delete, list, search.

use std::time::Instant;

use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, BreadcrumbView,
    ContextMatch, Created, MAX_FOUND, MAX_PAGE, NewBreadcrumb, Records, Search, SearchMode, Selector, StoreError,
    ToolDefinition, ToolRequest, Violations, check_numbers, schema_names,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::headers::{carry_traceparent, idempotency_key};
use crate::http::path::PathId;
use crate::http::precondition::{IfMatch, etag, if_match};
use crate::http::problem::Problem;
use crate::http::query::{AppliedLimit, Query};
use crate::routes::config_secrets::{ConfigSecrets, NewTool};
use crate::routes::rcrt_compat::{CompatBody, RcrtCompat};
use crate::routes::replies::{Done, Reply};
use crate::routes::runners;

/// How often an update without a version is retried after a conflict before it is refused.
const MOST_OVERTAKEN: usize = 5;

/// Says that the response repeats the one to an earlier create with the same `Idempotency-Key`.
pub const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Write a record
///
/// A `tool.request.v1` is queued for a runner in the same transaction. With an `Idempotency-Key`,
/// the same key with the same body gets the first response again (and the header
/// `Idempotency-Replayed: true`) for 24 hours. The header `traceparent` (W3C Trace Context) is
/// copied into the context of a request that has none of its own.
#[utoipa::path(
    post, path = "/breadcrumbs", tag = "breadcrumbs", operation_id = "create_breadcrumb",
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, description = "1 to 255 characters, of your choice"),
        ("traceparent" = Option<String>, Header, description = "The caller's trace context"),
    ),
    request_body = NewBreadcrumb,
    responses((status = 201, description = "Written", body = Created, headers(
        ("Location" = String, description = "The record's path"),
        ("ETag" = String, description = "The record's version"),
        ("Idempotency-Replayed" = String, description = "`true` when this response is a repetition"),
        ("Runners-Behind" = Option<u32>, description = "How many live runners do not use this tool yet; absent when all do"),
    )))
)]
pub async fn create(
    State(state): State<ServerState>,
    caller: Caller,
    compat: Option<Extension<RcrtCompat>>,
    headers: HeaderMap,
    CompatBody(mut record): CompatBody<NewBreadcrumb>,
) -> Result<Response, Problem> {
    let (key, begun) = (idempotency_key(&headers)?, Instant::now());
    carry_traceparent(&headers, &mut record);
    match compat {
        None => ToolRequest::check_spelling(&record)?,
        Some(_) => ToolRequest::adopt_session_id(&mut record),
    }
    let chosen = compat.and_then(|_| ConfigSecrets::of(&caller, record.schema_name.as_deref(), &record.context));
    let new_tool = compat.and_then(|_| NewTool::of(&caller, &record));
    let ignored = ToolDefinition::ignored_in(record.schema_name.as_deref(), &record.context);
    let is_tool = schema_names::is_tool(record.schema_name.as_deref());
    let mut created = caller.store.create(record, key).await?;
    created.warnings.extend(ignored);
    if let Some(chosen) = chosen {
        chosen.grant(&*caller.store).await;
    }
    if let Some(new_tool) = new_tool.filter(|_| !created.replayed) {
        new_tool.grant(&caller, &*state.tenancy, created.id).await;
    }
    let location = HeaderValue::try_from(format!("/breadcrumbs/{}", created.id)).map_err(|_| Problem::internal())?;
    let (replayed, id) = (created.replayed, created.id);
    let mut answer =
        (StatusCode::CREATED, [(header::LOCATION, location), (header::ETAG, etag(created.version))], Json(created))
            .into_response();
    if replayed {
        answer.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    // A request may be held back for longer than a write of a tool waits for runners.
    Ok(if is_tool { runners::mark(answer, &caller, id, begun).await } else { answer })
}

/// Read a record
///
/// The short view, without owner, audit and TTL fields. If the record expires by the number of its
/// reads (`ttl_type` usage or hybrid), this counts as one, as the full view does. Lists, searches,
/// events, the history and `HEAD` do not count.
#[utoipa::path(
    get, path = "/breadcrumbs/{id}", tag = "breadcrumbs", operation_id = "get_breadcrumb",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = BreadcrumbView, headers(("ETag" = String, description = "The record's version"))))
)]
pub async fn get(caller: Caller, method: Method, PathId(id): PathId, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    if method == Method::HEAD {
        return Ok(head(caller.store.version(id, false).await?));
    }
    let view = caller.store.view(id).await?;
    Ok(([(header::ETAG, etag(view.version))], Json(view)).into_response())
}

/// Read a record with all fields
#[utoipa::path(
    get, path = "/breadcrumbs/{id}/full", tag = "breadcrumbs", operation_id = "get_full_breadcrumb",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Breadcrumb, headers(("ETag" = String, description = "The record's version"))))
)]
pub async fn full(caller: Caller, method: Method, PathId(id): PathId, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    if method == Method::HEAD {
        return Ok(head(caller.store.version(id, true).await?));
    }
    Ok(versioned(caller.store.get(id).await?))
}

/// The response to HEAD, which counts as no read. The length of the body is left out, because it
/// is not known.
fn head(version: i64) -> Response {
    let body = Body::from_stream(futures::stream::empty::<Result<bytes::Bytes, std::convert::Infallible>>());
    let media_type = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    ([(header::ETAG, etag(version)), media_type], body).into_response()
}

/// Read all versions of a record
///
/// Newest first, including the current one.
#[utoipa::path(
    get, path = "/breadcrumbs/{id}/history", tag = "breadcrumbs", operation_id = "get_history",
    params(("id" = Uuid, Path)),
    responses((status = 200, body = Vec<BreadcrumbVersion>))
)]
pub async fn history(caller: Caller, PathId(id): PathId, query: Query) -> Reply<Vec<BreadcrumbVersion>> {
    query.finish()?;
    Ok(Json(caller.store.history(id).await?))
}

/// Change a record
///
/// An absent field keeps its value; the context is replaced as a whole. `If-Match` must name the
/// version that you read. An outdated version is refused (412) and nothing is changed.
#[utoipa::path(
    patch, path = "/breadcrumbs/{id}", tag = "breadcrumbs", operation_id = "update_breadcrumb",
    params(
        ("id" = Uuid, Path),
        ("If-Match" = String, Header, pattern = "^(W/)?\"?[0-9]{1,18}\"?$", description = "The version that you read, such as \"3\"")
    ),
    request_body = BreadcrumbChanges,
    responses((status = 200, description = "The changed record", body = Changed,
        headers(("ETag" = String, description = "The record's new version"),
            ("Runners-Behind" = Option<u32>, description = "How many live runners do not use this tool yet; absent when all do"))))
)]
pub async fn update(
    caller: Caller,
    PathId(id): PathId,
    compat: Option<Extension<RcrtCompat>>,
    headers: HeaderMap,
    CompatBody(changes): CompatBody<BreadcrumbChanges>,
) -> Result<Response, Problem> {
    let begun = Instant::now();
    let version = match if_match(&headers)? {
        IfMatch::Version(version) => Some(version),
        // RCRT overwrites any version.
        IfMatch::Absent if compat.is_some() => None,
        IfMatch::Absent => return Err(Problem::precondition_required()),
        IfMatch::Any => {
            return Err(Problem::invalid("If-Match", "must name the version that you read, not *"));
        }
    };
    let mut record = match version {
        Some(version) => caller.store.update(id, version, changes).await?,
        None => overwrite(&*caller.store, id, changes).await?,
    };
    record.warnings.extend(ToolDefinition::ignored_in(record.schema_name.as_deref(), &record.context));
    let chosen = compat.and_then(|_| ConfigSecrets::of(&caller, record.schema_name.as_deref(), &record.context));
    if let Some(chosen) = chosen {
        chosen.grant(&*caller.store).await;
    }
    let answer = ([(header::ETAG, etag(record.version))], Json(Changed { ok: true, record })).into_response();
    Ok(runners::mark(answer, &caller, id, begun).await)
}

/// The response to an update.
#[derive(Serialize, ToSchema)]
pub struct Changed {
    /// `true`: RCRT's clients check it.
    ok: bool,
    #[serde(flatten)]
    record: Breadcrumb,
}

/// Updates the current version, and retries if it was changed meanwhile. No record is at version 0,
/// so the first try returns the current version in its error, without a read that would count.
async fn overwrite(store: &dyn Records, id: Uuid, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
    let mut version = 0;
    for _ in 0..MOST_OVERTAKEN {
        match store.update(id, version, changes.clone()).await {
            Err(StoreError::VersionConflict { actual, .. }) => version = actual,
            done => return done,
        }
    }
    store.update(id, version, changes).await
}

/// Delete a record
///
/// With `If-Match`, only if it is at that version. A request that is queued or running is also
/// cancelled.
#[utoipa::path(
    delete, path = "/breadcrumbs/{id}", tag = "breadcrumbs", operation_id = "delete_breadcrumb",
    params(
        ("id" = Uuid, Path),
        ("If-Match" = Option<String>, Header, pattern = "^((W/)?\"?[0-9]{1,18}\"?|\\*)$", description = "The version that you read, such as \"3\"")
    ),
    responses((status = 200, body = Done, headers(
        ("Runners-Behind" = Option<u32>, description = "How many live runners do not use this tool yet; absent when all do"),
    )))
)]
pub async fn delete(caller: Caller, PathId(id): PathId, headers: HeaderMap) -> Result<Response, Problem> {
    let begun = Instant::now();
    let version = match if_match(&headers)? {
        IfMatch::Version(version) => Some(version),
        IfMatch::Absent | IfMatch::Any => None,
    };
    caller.store.delete(id, version).await?;
    Ok(runners::mark(Done::JSON.into_response(), &caller, id, begun).await)
}

/// List records
///
/// Latest change first. Without a `limit`, as many as one page holds, because RCRT's clients expect
/// all. `offset` gets the next page.
#[utoipa::path(
    get, path = "/breadcrumbs", tag = "breadcrumbs", operation_id = "list_breadcrumbs",
    params(
        ("tag" = Option<Vec<String>>, Query,
            description = "The record has this tag; repeat it to require several tags. `all_tags` means the same"),
        ("any_tag" = Option<Vec<String>>, Query,
            description = "The record has at least one of these tags. `any_tags` means the same"),
        ("schema_name" = Option<String>, Query),
        ("context_match" = Option<String>, Query,
            description = "Conditions on the context, a JSON array: [{\"path\": \"$.a.b\", \"op\": \"eq\", \"value\": 1}]"),
        ("exclude_runtime" = Option<bool>, Query,
            description = "Leave out the records of the runtime: tools, guides, calls, working memory, schedules and definitions of schemas"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "The maximum number of records; 1000 when absent"),
        ("nn" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "The same as `limit`; give only one of them"),
        ("offset" = Option<i64>, Query, minimum = 0, maximum = 4_294_967_295_u64),
        ("include_context" = Option<bool>, Query),
    ),
    responses((status = 200, body = Vec<BreadcrumbListItem>, headers(
        ("Limit-Applied" = Option<u32>, description = "With `--compat rcrt`: the limit that was applied, if it is lower than requested"),
    )))
)]
pub async fn list(caller: Caller, mut query: Query) -> Result<Response, Problem> {
    let selector = selector(&mut query);
    let most = query.take_limit(&["limit", "nn"], MAX_PAGE);
    let wanted = BreadcrumbQuery {
        limit: most.map_or(MAX_PAGE, |most| most.applied),
        offset: query.take_as("offset", "a number from 0", 0),
        include_context: query.take_as("include_context", "true or false", false),
        selector,
    };
    query.finish()?;
    wanted.check().map_err(as_parameters)?;
    Ok(with_limit(Json(caller.store.list(&wanted).await?).into_response(), most))
}

/// The limit that was applied, if a client of RCRT asked for more.
pub const LIMIT_APPLIED: HeaderName = HeaderName::from_static("limit-applied");

fn with_limit(mut answer: Response, most: Option<AppliedLimit>) -> Response {
    if let Some(most) = most.filter(|most| most.is_bounded) {
        answer.headers_mut().insert(LIMIT_APPLIED, HeaderValue::from(most.applied));
    }
    answer
}

/// How the search was done.
pub const SEARCH_MODE: HeaderName = HeaderName::from_static("search-mode");
/// Why only the text search was done.
pub const SEARCH_FALLBACK: HeaderName = HeaderName::from_static("search-fallback");

/// Search records by text and by meaning
///
/// Best match first, each with its `score`. `text` counts each word of `q` by its rarity, in title,
/// description, tags and context; a phrase in `"…"` is required, `-word` excludes. `hybrid` adds
/// the similarity of the meaning. It is the default if search by meaning is enabled, otherwise
/// `text` is. The header `Search-Mode` says how the search was done. `Search-Fallback` says why
/// only text was searched if the model did not respond in time.
#[utoipa::path(
    get, path = "/breadcrumbs/search", tag = "breadcrumbs", operation_id = "search_breadcrumbs",
    params(
        ("q" = Option<String>, Query, min_length = 1, max_length = 1000, pattern = "\\S",
            description = "Words or a question, 1 to 1000 characters; required without `qvec`"),
        ("qvec" = Option<String>, Query,
            description = "A vector of the store's model, used instead of the one for `q`: a JSON array of numbers, or numbers separated by commas"),
        ("mode" = inline(Option<SearchMode>), Query, description = "How to search; `vector` searches by meaning only"),
        ("nn" = Option<u32>, Query, minimum = 1, maximum = 100, description = "The maximum number of records; 10 when absent"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "The same as `nn`; give only one of them"),
        ("tag" = Option<Vec<String>>, Query, description = "The record has all of these tags"),
        ("any_tag" = Option<Vec<String>>, Query, description = "The record has at least one of these tags"),
        ("schema_name" = Option<String>, Query),
        ("context_match" = Option<String>, Query, description = "Conditions on the context, a JSON array"),
        ("exclude_runtime" = Option<bool>, Query,
            description = "Leave out the records of the runtime: tools, guides, calls, working memory, schedules and definitions of schemas"),
        ("id" = Option<Vec<Uuid>>, Query,
            description = "Only these records, at most 100; with `mode=vector`. Repeat it for more"),
        ("include_context" = Option<bool>, Query),
    ),
    responses((status = 200, body = Vec<BreadcrumbListItem>, headers(
        ("Search-Mode" = String, description = "text, vector or hybrid"),
        ("Search-Fallback" = String, description = "Why only the text search was done"),
        ("Limit-Applied" = Option<u32>, description = "With `--compat rcrt`: the limit that was applied, if it is lower than requested"),
    )))
)]
pub async fn search(caller: Caller, mut query: Query) -> Result<Response, Problem> {
    let most = query.take_limit(&["nn", "limit"], MAX_FOUND);
    let wanted = Search {
        selector: selector(&mut query),
        q: query.take_text("q"),
        qvec: vector(&mut query),
        mode: query.take_optional("mode", "text, vector or hybrid"),
        ids: ids(&mut query),
        nn: most.map_or(Search::default().nn, |most| most.applied),
        include_context: query.take_as("include_context", "true or false", false),
    };
    query.finish()?;
    wanted.check().map_err(as_parameters)?;
    let found = caller.store.search(&wanted).await?;
    let mut answer = ([(SEARCH_MODE, found.mode.as_str())], Json(found.items)).into_response();
    if let Some(reason) = found.fallback.and_then(|reason| HeaderValue::try_from(reason).ok()) {
        answer.headers_mut().insert(SEARCH_FALLBACK, reason);
    }
    Ok(with_limit(answer, most))
}

fn vector(query: &mut Query) -> Option<Vec<f32>> {
    let text = query.take_text("qvec")?;
    let text = text.trim();
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let numbers: Result<Vec<f32>, _> = inside.split(',').map(|number| number.trim().parse()).collect();
    if numbers.is_err() {
        query.wrong("qvec", "must be a JSON array of numbers, or numbers separated by commas");
    }
    numbers.ok()
}

fn ids(query: &mut Query) -> Vec<Uuid> {
    let texts = query.take_all("id");
    let ids: Vec<Uuid> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    if ids.len() < texts.len() {
        query.wrong("id", "must be the id of a record, a UUID");
    }
    ids
}

fn selector(query: &mut Query) -> Selector {
    let (all_tags, any_tags) = (either(query, "tag", "all_tags"), either(query, "any_tag", "any_tags"));
    let context_match = query.take_text("context_match").map_or_else(Vec::new, |text| {
        let conditions = serde_json::from_str::<Vec<ContextMatch>>(&text).unwrap_or_else(|error| {
            query.wrong("context_match", format!("must be a JSON array of {{path, op, value}}: {error}"));
            Vec::new()
        });
        if !conditions.is_empty()
            && let Err(found) = check_numbers(text.as_bytes())
        {
            query.wrong(&format!("context_match{}", found.field), found.message);
        }
        conditions
    });
    Selector {
        all_tags,
        any_tags,
        schema_name: query.take_text("schema_name"),
        context_match,
        exclude_runtime: query.take_as("exclude_runtime", "true or false", false),
    }
}

/// RCRT's clients also send a selector's own field names.
fn either(query: &mut Query, name: &'static str, selectors: &str) -> Vec<String> {
    let mut tags = query.take_all(name);
    tags.extend(query.take_other(selectors));
    tags
}

/// A selector's fields have other names in a query.
fn as_parameters(mut found: Violations) -> Violations {
    for violation in &mut found.0 {
        violation.field = violation.field.replace("all_tags", "tag").replace("any_tags", "any_tag");
    }
    found
}

fn versioned(record: Breadcrumb) -> Response {
    ([(header::ETAG, etag(record.version))], Json(record)).into_response()
}
