//! Guides: how a family of tools is used, for agents. They are `tool.guide.v1` breadcrumbs, and whoever may write records
//! may write more of them.

use std::collections::BTreeMap;

use breadcrumb::{BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, StoreError, schema_names::TOOL_GUIDE};
use serde_json::Value;
use uuid::Uuid;

/// Guides beyond so many are not looked at.
const MOST: usize = 1_000;
const PAGE: u32 = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guide {
    pub name: String,
    pub title: String,
    pub summary: String,
    pub tools: Vec<String>,
    pub content: String,
}

impl Guide {
    /// `None` where the record is no guide: it has no name, or nothing to read.
    fn read(item: &BreadcrumbListItem) -> Option<Self> {
        let context = item.context.as_ref()?;
        let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
        let (name, body) = (text("name")?, text("content")?);
        let tools = context.get("tools").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            title: text("title").unwrap_or_else(|| name.clone()),
            summary: text("summary").unwrap_or_default(),
            tools: tools.filter_map(Value::as_str).map(str::to_owned).collect(),
            name,
            content: body,
        })
    }
}

/// By name. Of two guides of one name the older one counts, so that nobody takes a guide's place.
pub(crate) async fn all(store: &dyn Breadcrumbs) -> Result<Vec<Guide>, StoreError> {
    let mut found: BTreeMap<String, (Uuid, Guide)> = BTreeMap::new();
    let mut offset = 0;
    loop {
        let query = BreadcrumbQuery { limit: PAGE, offset, ..BreadcrumbQuery::of_schema(TOOL_GUIDE) };
        let page = store.list(&query).await?;
        for item in &page {
            let Some(guide) = Guide::read(item) else { continue };
            // Ids begin with the time of their making.
            if found.get(&guide.name).is_none_or(|(id, _)| item.id < *id) {
                found.insert(guide.name.clone(), (item.id, guide));
            }
        }
        offset += PAGE;
        if page.len() < PAGE as usize || offset as usize >= MOST {
            return Ok(found.into_values().map(|(_, guide)| guide).collect());
        }
    }
}
