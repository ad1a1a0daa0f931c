//! The records of tools in the store: who has a name, and which tools an agent made.

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbQuery, ContextMatch, ContextPath, MatchOp, Records, Selector, StoreError, schema_names,
};
use serde_json::Value;
use uuid::Uuid;

/// The most records of one name that are looked at.
const MAX_SAME_NAME: u32 = 100;
/// The most tools of one agent that are listed.
pub(crate) const MAX_LISTED: u32 = 200;

/// The tools of a name.
pub(crate) struct ToolsOfName {
    /// The agent's own `tool.code.v1`.
    pub own: Option<Breadcrumb>,
    /// Whether another record has the name.
    pub is_taken: bool,
}

/// The records of a name; code first.
async fn records(store: &dyn Records, name: &str) -> Result<Vec<Breadcrumb>, StoreError> {
    let mut records = Vec::new();
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        for item in store.list(&named(schema, name)?).await? {
            match store.get(item.id).await {
                Ok(record) => records.push(record),
                Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(records)
}

/// The record that was the first to have the name. Runners decide in the same way which is offered.
pub(crate) async fn first_with_name(store: &dyn Records, name: &str) -> Result<Option<Breadcrumb>, StoreError> {
    Ok(records(store, name).await?.into_iter().min_by_key(|record| (record.created_at, record.id)))
}

impl ToolsOfName {
    pub async fn find(store: &dyn Records, agent: Option<Uuid>, name: &str) -> Result<Self, StoreError> {
        let mut found = Self { own: None, is_taken: false };
        for record in records(store, name).await? {
            let is_code = record.schema_name.as_deref() == Some(schema_names::TOOL_CODE);
            let is_own = agent.is_some() && record.created_by == agent && is_code;
            match (&found.own, is_own) {
                (None, true) => found.own = Some(record),
                (Some(own), true) if record.id < own.id => found.own = Some(record),
                (Some(_), true) => {}
                (_, false) => found.is_taken = true,
            }
        }
        Ok(found)
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

/// The agent's own tool of this name, or else the oldest record that has it; code first.
pub(crate) async fn of_name(
    store: &dyn Records,
    agent: Option<Uuid>,
    name: &str,
) -> Result<Option<Breadcrumb>, StoreError> {
    if let Some(own) = ToolsOfName::find(store, agent, name).await?.own {
        return Ok(Some(own));
    }
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        let found = store.list(&named(schema, name)?).await?;
        if let Some(oldest) = found.iter().map(|item| item.id).min() {
            return store.get(oldest).await.map(Some);
        }
    }
    Ok(None)
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
