//! The records of tools in the store: who has a name, and which tools an agent made.

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbQuery, ContextMatch, ContextPath, MatchOp, Records, Selector, StoreError, is_draft,
    schema_names,
};
use serde_json::Value;
use uuid::Uuid;

/// The most records of one name that are looked at.
const MAX_SAME_NAME: u32 = 100;
/// The most tools of one agent that are listed.
pub(crate) const MAX_LISTED: u32 = 200;

/// The tools of a name. Drafts of other agents are left out, because they reserve no name.
pub(crate) struct ToolsOfName {
    /// The agent's own `tool.code.v1`.
    pub own: Option<Breadcrumb>,
    /// The oldest other record that has the name; code first.
    pub other: Option<Breadcrumb>,
}

/// The records of a name; code first, without drafts of other agents.
async fn records(store: &dyn Records, agent: Option<Uuid>, name: &str) -> Result<Vec<Breadcrumb>, StoreError> {
    let mut records = Vec::new();
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        let mut ids: Vec<Uuid> = store.list(&named(schema, name)?).await?.iter().map(|item| item.id).collect();
        ids.sort();
        for id in ids {
            match store.get(id).await {
                Ok(record) if is_by(&record, agent) || is_published(store, &record, name).await? => {
                    records.push(record);
                }
                Ok(_) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(records)
}

fn is_by(record: &Breadcrumb, agent: Option<Uuid>) -> bool {
    agent.is_some() && record.created_by == agent
}

/// Whether a version with this name is published: the newest, or one before a draft, which still
/// serves.
async fn is_published(store: &dyn Records, record: &Breadcrumb, name: &str) -> Result<bool, StoreError> {
    if !is_draft(&record.tags) || record.version == 1 {
        return Ok(!is_draft(&record.tags));
    }
    let versions = match store.history(record.id).await {
        Err(StoreError::NotFound { .. }) => Vec::new(),
        versions => versions?,
    };
    Ok(versions.iter().any(|one| {
        let is_tool = schema_names::is_tool(one.schema_name.as_deref());
        is_tool && !is_draft(&one.tags) && one.context.get("name").and_then(Value::as_str) == Some(name)
    }))
}

/// The record that was the first to have the name. Runners decide in the same way which is offered.
pub(crate) async fn first_with_name(
    store: &dyn Records,
    agent: Option<Uuid>,
    name: &str,
) -> Result<Option<Breadcrumb>, StoreError> {
    let records = records(store, agent, name).await?;
    Ok(records.into_iter().min_by_key(|record| (record.created_at, record.id)))
}

impl ToolsOfName {
    pub async fn find(store: &dyn Records, agent: Option<Uuid>, name: &str) -> Result<Self, StoreError> {
        let is_own_code = |record: &Breadcrumb| {
            is_by(record, agent) && record.schema_name.as_deref() == Some(schema_names::TOOL_CODE)
        };
        let (own, others): (Vec<_>, Vec<_>) = records(store, agent, name).await?.into_iter().partition(is_own_code);
        Ok(Self { own: own.into_iter().next(), other: others.into_iter().next() })
    }

    /// Whether the agent's own tool never had the name published, while another one has it.
    pub async fn is_contested(&self, store: &dyn Records, name: &str) -> Result<bool, StoreError> {
        match (&self.own, &self.other) {
            (Some(own), Some(_)) => Ok(!is_published(store, own, name).await?),
            _ => Ok(false),
        }
    }
}

fn named(schema: &str, name: &str) -> Result<BreadcrumbQuery, StoreError> {
    let condition = equals("$.name", Value::from(name))?;
    let selector =
        Selector { schema_name: Some(schema.to_owned()), context_match: vec![condition], ..Selector::default() };
    Ok(BreadcrumbQuery { selector, limit: MAX_SAME_NAME, ..BreadcrumbQuery::default() })
}

pub(crate) fn equals(path: &str, value: Value) -> Result<ContextMatch, StoreError> {
    let path = ContextPath::try_from(path.to_owned()).map_err(StoreError::Internal)?;
    Ok(ContextMatch { path, op: MatchOp::Eq, value })
}

/// The tag of the tools that this agent made with the tools of this crate.
pub(crate) fn maker_tag(agent: Uuid) -> String {
    format!("made-by:{agent}")
}

/// The tools that the agent made, newest change first.
pub(crate) async fn made_by(store: &dyn Records, agent: Option<Uuid>) -> Result<Vec<Breadcrumb>, StoreError> {
    let Some(agent) = agent else { return Ok(Vec::new()) };
    let selector = Selector {
        schema_name: Some(schema_names::TOOL_CODE.to_owned()),
        all_tags: vec![maker_tag(agent)],
        ..Selector::default()
    };
    let query = BreadcrumbQuery { selector, limit: MAX_LISTED, ..BreadcrumbQuery::default() };
    let mut made = Vec::new();
    for item in store.list(&query).await? {
        match store.get(item.id).await {
            // Anybody can write the tag.
            Ok(record) if record.created_by == Some(agent) => made.push(record),
            Ok(_) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(made)
}
