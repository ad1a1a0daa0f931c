//! Resources: records, parts of large results, and what tools provide.
//!
//! - `breadcrumb://{id}` is a record as models see it.
//! - `breadcrumb://schema/{schema_name}` is the newest records of one schema.
//! - `memory:///{key}` is an entry of the working memory, such as a part of a large result. A
//!   call of a tool reads it, so that an agent that can only call tools can follow its links.

use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, LARGE_RESULT_READERS, Records, Selector, StoreError, schema_names,
};
use rmcp::model::{
    CacheScope, JsonObject, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Principal;
use crate::errors;
use crate::input_required::{self, Answers, Asked};
use crate::page::{TTL_MS, page};
use crate::published::{self, PublishedResource};
use crate::tasks::TASK_INPUT;
use crate::tools;

pub(crate) const RECORD: &str = "breadcrumb://";
pub(crate) const SCHEMA: &str = "breadcrumb://schema/";
const MEMORY: &str = "memory:///";
/// The newest records that are looked at for a list.
const NEWEST: u32 = 1_000;
/// The records of a schema in one resource.
const OF_SCHEMA: u32 = 100;
const JSON: &str = "application/json";
/// What is escaped in a part of a path.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The URI of a record.
pub(crate) fn record_uri(id: Uuid) -> String {
    format!("{RECORD}{id}")
}

/// The URI of an entry of the working memory.
pub(crate) fn memory_uri(key: &str) -> String {
    let parts: Vec<String> = key.split('/').map(|part| utf8_percent_encode(part, ESCAPED).to_string()).collect();
    format!("{MEMORY}{}", parts.join("/"))
}

/// The URI of a schema's records.
pub(crate) fn schema_uri(schema_name: &str) -> String {
    format!("{SCHEMA}{}", utf8_percent_encode(schema_name, ESCAPED))
}

/// Whether records of this schema are part of the runtime's own work, so that no list shows them.
pub(crate) fn is_internal(schema_name: Option<&str>) -> bool {
    matches!(
        schema_name,
        Some(
            schema_names::TOOL_REQUEST
                | schema_names::TOOL_RESPONSE
                | schema_names::TOOL_PROGRESS
                | schema_names::TOOL_LOG
                | schema_names::TOOL_CATALOG
                | schema_names::TOOL_RUNNER
                | schema_names::TOOL_SHADOW
                | schema_names::SCHEDULE_FIRED
                | TASK_INPUT
        )
    )
}

/// A page of the resources, by URI: those that tools provide, and the newest records.
pub(crate) async fn list(
    principal: &dyn Principal,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourcesResult, ErrorData> {
    let store = &**principal.store();
    let published: Vec<PublishedResource> = published::all(store).await?;
    let mut resources: Vec<Resource> =
        published.into_iter().filter(|resource| !resource.is_template()).map(shown).collect();
    resources.extend(newest(store).await?.iter().map(of_record));
    resources.sort_by(|a, b| a.uri.cmp(&b.uri));
    let (resources, next_cursor) = page(resources, |resource| resource.uri.as_str(), request)?;
    let list = ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(resources) };
    Ok(list.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
}

/// The newest records that are not the runtime's own.
pub(crate) async fn newest(store: &(impl Records + ?Sized)) -> Result<Vec<BreadcrumbListItem>, ErrorData> {
    let query = BreadcrumbQuery { limit: NEWEST, ..BreadcrumbQuery::default() };
    let mut items = store.list(&query).await.map_err(errors::of_store)?;
    items.retain(|item| !is_internal(item.schema_name.as_deref()));
    Ok(items)
}

fn of_record(item: &BreadcrumbListItem) -> Resource {
    let kind = item.schema_name.as_deref().unwrap_or("a record without a schema");
    let described = format!("{kind}, version {}", item.version);
    Resource::new(record_uri(item.id), item.title.as_str()).with_description(described).with_mime_type(JSON)
}

fn shown(resource: PublishedResource) -> Resource {
    let mut shown = Resource::new(resource.uri, resource.name).with_description(resource.description);
    (shown.title, shown.mime_type) = (resource.title, resource.mime_type);
    shown
}

/// The templates: of records, and those that tools provide.
pub(crate) async fn templates(
    principal: &dyn Principal,
    request: Option<PaginatedRequestParams>,
) -> Result<ListResourceTemplatesResult, ErrorData> {
    let template = |uri: &str, name: &str, described: &str| {
        ResourceTemplate::new(uri, name).with_description(described).with_mime_type(JSON)
    };
    let by_schema = format!("The newest {OF_SCHEMA} records of one schema, with their contexts");
    let mut templates = vec![
        template("breadcrumb://{id}", "record", "A record, by its id"),
        template("breadcrumb://schema/{schema_name}", "records-of-schema", &by_schema),
    ];
    let published: Vec<PublishedResource> = published::all(&**principal.store()).await?;
    templates.extend(published.into_iter().filter(PublishedResource::is_template).map(|resource| {
        let mut shown = ResourceTemplate::new(resource.uri, resource.name).with_description(resource.description);
        (shown.title, shown.mime_type) = (resource.title, resource.mime_type);
        shown
    }));
    templates.sort_by(|a, b| a.uri_template.cmp(&b.uri_template));
    let (templates, next_cursor) = page(templates, |template| template.uri_template.as_str(), request)?;
    let list = ListResourceTemplatesResult { next_cursor, ..ListResourceTemplatesResult::with_all_items(templates) };
    Ok(list.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
}

/// `resources/read`.
pub(crate) async fn read(
    principal: &Arc<dyn Principal>,
    params: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = params.uri.as_str();
    let content = if let Some(key) = uri.strip_prefix(MEMORY) {
        entry(principal, uri, key, context).await?
    } else if let Some(name) = uri.strip_prefix(SCHEMA) {
        of_schema(principal, uri, name).await?
    } else if let Some(id) = uri.strip_prefix(RECORD) {
        record(principal, uri, id).await?
    } else {
        let answers = Answers { responses: params.input_responses, state: params.request_state };
        return provided(principal, uri, answers, context).await;
    };
    Ok(with_contents(vec![content]))
}

fn with_contents(contents: Vec<ResourceContents>) -> ReadResourceResponse {
    ReadResourceResult::new(contents).with_ttl_ms(0).with_cache_scope(CacheScope::Private).into()
}

fn unknown(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("there is no resource {uri}"), Some(json!({"uri": uri})))
}

fn text(uri: &str, text: String, media_type: &str) -> ResourceContents {
    ResourceContents::text(text, uri).with_mime_type(media_type)
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

async fn record(principal: &Arc<dyn Principal>, uri: &str, id: &str) -> Result<ResourceContents, ErrorData> {
    let id = Uuid::try_parse(id).map_err(|_| unknown(uri))?;
    match principal.store().view(id).await {
        Ok(view) => Ok(text(uri, json!(view).to_string(), JSON)),
        Err(StoreError::NotFound { .. }) => Err(unknown(uri)),
        Err(error) => Err(errors::of_store(error)),
    }
}

async fn of_schema(principal: &Arc<dyn Principal>, uri: &str, name: &str) -> Result<ResourceContents, ErrorData> {
    let name = decoded(name).filter(|name| !name.is_empty()).ok_or_else(|| unknown(uri))?;
    let selector = Selector { schema_name: Some(name), ..Selector::default() };
    let query = BreadcrumbQuery { selector, limit: OF_SCHEMA, offset: 0, include_context: true };
    let items = principal.store().list(&query).await.map_err(errors::of_store)?;
    Ok(text(uri, json!(items).to_string(), JSON))
}

/// An entry of the working memory.
async fn entry(
    principal: &Arc<dyn Principal>,
    uri: &str,
    key: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ResourceContents, ErrorData> {
    let key = decoded(key).ok_or_else(|| unknown(uri))?;
    let tool = tools::find(&**principal, LARGE_RESULT_READERS[0]).await?;
    let input = JsonObject::from_iter([("key".into(), key.into())]);
    let ran = tools::call::run(principal, &tool, input, context, false).await?;
    match ran.output(&tool.name) {
        Ok(Value::String(value)) => Ok(text(uri, value, "text/plain")),
        Ok(value) => Ok(text(uri, value.to_string(), JSON)),
        Err(_) => Err(unknown(uri)),
    }
}

/// A resource that a tool provides, or what the tool asks the client for.
async fn provided(
    principal: &Arc<dyn Principal>,
    uri: &str,
    answers: Answers,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let published: Vec<PublishedResource> = published::all(&**principal.store()).await?;
    let matching = published.iter().find_map(|resource| Some((resource, resource.variables(uri)?)));
    let (resource, variables) = matching.ok_or_else(|| unknown(uri))?;
    let tool = tools::find(&**principal, &resource.tool).await?;
    let mut input: JsonObject = variables.into_iter().map(|(name, value)| (name, value.into())).collect();
    input.insert("uri".into(), uri.into());
    let output = match input_required::run(principal, &tool, input, answers, context, false).await? {
        Asked::Client(request) => return Ok(request.into()),
        Asked::Ran(ran) => ran.output(&tool.name)?,
    };
    let media_type = resource.mime_type.as_deref();
    let contents = match output {
        Value::String(value) => vec![text(uri, value, media_type.unwrap_or("text/plain"))],
        output => match output.get("contents") {
            Some(contents) => serde_json::from_value(contents.clone()).map_err(|error| {
                let message = format!("the contents of the tool {} are not valid: {error}", tool.name);
                ErrorData::internal_error(message, None)
            })?,
            None => vec![text(uri, output.to_string(), media_type.unwrap_or(JSON))],
        },
    };
    Ok(with_contents(contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_working_memory_are_uris_and_back() {
        for key in ["session/mcp-1/tool-a b-chunk1", "agent/1/50%/ü?#"] {
            let uri = memory_uri(key);
            assert!(!uri.contains(' ') && !uri.contains('?') && !uri.contains('#'), "{uri}");
            assert_eq!(decoded(uri.strip_prefix(MEMORY).unwrap()).unwrap(), key);
        }
    }
}
