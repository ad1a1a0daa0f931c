//! Guides for agents: how to use a family of tools. They are `tool.guide.v1` breadcrumbs, and every
//! agent that can write records can add some.

use serde_json::Value;

use crate::{
    BreadcrumbListItem, Records, Selector, StoreError, named_records, oldest_by_name, schema_names::TOOL_GUIDE,
};

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
        let selector = Selector {
            schema_name: Some(TOOL_GUIDE.into()),
            all_tags: all_tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..Selector::default()
        };
        named_records(store, selector, PAGE).await
    }

    /// All guides by name, without skills.
    pub async fn all(store: &(impl Records + ?Sized)) -> Result<Vec<Self>, StoreError> {
        let items = Self::records(store, &[]).await?;
        let guides = items.iter().filter(|item| !Self::is_skill(item));
        let guides = guides.filter_map(|item| Some((item.id, Self::read(item)?)));
        Ok(oldest_by_name(guides, |guide| guide.name.as_str()))
    }
}
