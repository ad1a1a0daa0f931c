//! Finds the store's record for a seed file.

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbListItem, BreadcrumbQuery, ContextMatch, ContextPath, MAX_PAGE, MatchOp, NewBreadcrumb,
    Records, Selector, StoreError, schema_names,
};
use serde_json::Value;

/// Prefix of the tags that name the origin of a seeded record.
pub const SEED_TAG: &str = "seed:";

/// Finds a tool by its name, and another record by its schema and title, or else by the tag of its
/// file. A retired tool with the name comes last, so that it is not made again unnoticed. Of
/// several, prefers a seeded record, then the one changed last.
pub async fn existing(
    store: &dyn Records,
    file: &NewBreadcrumb,
    seed_tag: &str,
) -> Result<Option<Breadcrumb>, StoreError> {
    let schema = file.schema_name.as_deref();
    let tool = schema
        .filter(|schema| schema_names::is_tool(Some(schema)))
        .zip(file.context.get("name").and_then(Value::as_str));
    let mut candidates = match (tool, schema) {
        (Some((schema, name)), _) => tools_named(store, schema, name).await?,
        (None, Some(schema)) => titled(store, schema, &file.title).await?,
        (None, None) => Vec::new(),
    };
    if candidates.is_empty() {
        candidates = store.list(&BreadcrumbQuery::tagged(seed_tag)).await?;
    }
    if let (true, Some((_, name))) = (candidates.is_empty(), tool) {
        candidates = tools_named(store, schema_names::TOOL_RETIRED, name).await?;
    }
    let seeded = |item: &&BreadcrumbListItem| item.tags.iter().any(|tag| tag.starts_with(SEED_TAG));
    let Some(chosen) = candidates.iter().find(seeded).or(candidates.first()) else { return Ok(None) };
    match store.get(chosen.id).await {
        Ok(record) => Ok(Some(record)),
        // Deleted after the search.
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The tools with this schema and name, the one changed last first.
pub async fn tools_named(store: &dyn Records, schema: &str, name: &str) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let path = ContextPath::try_from("$.name".to_owned()).map_err(StoreError::Internal)?;
    let mut query = BreadcrumbQuery::of_schema(schema);
    query.selector.context_match = vec![ContextMatch { path, op: MatchOp::Eq, value: name.into() }];
    query.include_context = false;
    store.list(&query).await
}

async fn titled(store: &dyn Records, schema: &str, title: &str) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let selector = Selector { schema_name: Some(schema.to_owned()), ..Selector::default() };
    let mut found = every(store, selector).await?;
    found.retain(|item| item.title == title);
    Ok(found)
}

/// All records that match the selector, without contexts, read page by page.
pub async fn every(store: &dyn Records, selector: Selector) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let mut query = BreadcrumbQuery { selector, limit: MAX_PAGE, ..BreadcrumbQuery::default() };
    let mut items = Vec::new();
    loop {
        let page = store.list(&query).await?;
        let is_last = page.len() < MAX_PAGE as usize;
        items.extend(page);
        if is_last {
            return Ok(items);
        }
        query.offset += MAX_PAGE;
    }
}
