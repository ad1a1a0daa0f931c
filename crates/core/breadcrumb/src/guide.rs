//! Guides for agents: how to use a family of tools. They are `tool.guide.v1` breadcrumbs, and every
//! agent that can write records can add some.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use crate::{BreadcrumbListItem, BreadcrumbQuery, Records, Selector, StoreError, schema_names::TOOL_GUIDE};

/// The maximum number of guides that are read.
const MOST: usize = 1_000;
const PAGE: u32 = 50;

/// A guide that is stored. A skill is a guide that an agent saved, with the tag
/// [`Guide::SKILL_TAG`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guide {
    pub name: String,
    pub title: String,
    pub summary: String,
    pub tools: Vec<String>,
    pub content: String,
    /// Further reading: keys of the working memory, files, addresses.
    pub resources: Vec<String>,
}

impl Guide {
    /// The tag of every skill.
    pub const SKILL_TAG: &str = "skill";

    /// `None` if the record is not a valid guide: it has no name or no content.
    pub fn read(item: &BreadcrumbListItem) -> Option<Self> {
        let context = item.context.as_ref()?;
        let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
        let (name, body) = (text("name")?, text("content")?);
        let texts = |name: &str| {
            let items = context.get(name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Some(Self {
            title: text("title").unwrap_or_else(|| name.clone()),
            summary: text("summary").unwrap_or_default(),
            tools: texts("tools"),
            resources: texts("resources"),
            name,
            content: body,
        })
    }

    pub fn is_skill(item: &BreadcrumbListItem) -> bool {
        item.tags.iter().any(|tag| tag == Self::SKILL_TAG)
    }

    /// All guide records with these tags, up to a bound.
    pub async fn records(
        store: &(impl Records + ?Sized),
        all_tags: &[&str],
    ) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let mut found = Vec::new();
        loop {
            let selector = Selector {
                schema_name: Some(TOOL_GUIDE.into()),
                all_tags: all_tags.iter().map(|tag| (*tag).to_owned()).collect(),
                ..Selector::default()
            };
            let offset = u32::try_from(found.len()).unwrap_or(u32::MAX);
            let query = BreadcrumbQuery { selector, limit: PAGE, offset, include_context: true };
            let page = store.list(&query).await?;
            let is_last = page.len() < PAGE as usize;
            found.extend(page);
            if is_last || found.len() >= MOST {
                return Ok(found);
            }
        }
    }

    /// All guides by name, without skills. If two have the same name the older one counts, so that
    /// no guide can be replaced by another author.
    pub async fn all(store: &(impl Records + ?Sized)) -> Result<Vec<Self>, StoreError> {
        let mut found: BTreeMap<String, (Uuid, Self)> = BTreeMap::new();
        for item in Self::records(store, &[]).await?.iter().filter(|item| !Self::is_skill(item)) {
            let Some(guide) = Self::read(item) else { continue };
            // Ids are ordered by creation time.
            if found.get(&guide.name).is_none_or(|(id, _)| item.id < *id) {
                found.insert(guide.name.clone(), (item.id, guide));
            }
        }
        Ok(found.into_values().map(|(_, guide)| guide).collect())
    }
}
