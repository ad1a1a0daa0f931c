//! Finds the records of a tool by its name.

use futures::{StreamExt, TryStreamExt, stream};
use rcrt_breadcrumb::{Breadcrumb, Catalog, Records, StoreError, ToolDefinition, nearest_names, schema_names};
use rcrt_client::Client;
use uuid::Uuid;

use super::tool_report::Reports;
use crate::exit::Failure;
use crate::seed;

/// The records of one name, and what the runners say about them.
pub(super) struct ToolsOfName {
    /// The record that has the name. If no runner has reported yet, the one that will get it: the
    /// oldest that can run.
    pub record: Option<Breadcrumb>,
    pub others: Vec<Breadcrumb>,
    /// The record that has the name in the catalog.
    pub holder: Option<Uuid>,
    pub catalog: Catalog,
    /// Whether this agent can read the records of the catalog, and so those of tools.
    pub can_read: bool,
    pub reports: Reports,
}

impl ToolsOfName {
    pub async fn read(client: &Client, name: &str) -> anyhow::Result<Self> {
        let reading = (tools(client, Some(name)), Catalog::read(client), Reports::read(client));
        let (mut others, catalog, reports) = tokio::try_join!(reading.0, reading.1, reading.2)?;
        let can_read = catalog.is_some();
        let catalog = if let Some(catalog) = catalog { catalog } else { client.tools().await? };
        let holder = catalog.find(name).map(|tool| tool.tool_id);
        let holder = holder.or_else(|| catalog.find_waiting(name).map(|tool| tool.tool_id));
        let rank = |record: &Breadcrumb| {
            let runs =
                reports.on(record).map_or_else(|| read(record).is_ok(), |report| report.running_version.is_some());
            (holder != Some(record.id), !runs, record.created_at, record.id)
        };
        others.sort_by_key(rank);
        let record = if others.is_empty() { None } else { Some(others.remove(0)) };
        Ok(Self { record, others, holder, catalog, can_read, reports })
    }
}

/// The tools as the runners have them, also those whose last day is over, which `GET /tools` leaves
/// out. A caller cannot read the catalog's records and gets that list.
pub(super) async fn whole_catalog(client: &Client) -> Result<Catalog, StoreError> {
    match Catalog::read(client).await? {
        Some(catalog) => Ok(catalog),
        None => client.tools().await,
    }
}

/// The error about a name that no tool has.
pub(super) fn no_tool(name: &str, catalog: &Catalog) -> Failure {
    let fix = match nearest_names(name, catalog.names().filter(|known| *known != name)).as_slice() {
        [] => "see them with `rcrt tool list`".to_owned(),
        names => format!("did you mean {}?", names.join(" or ")),
    };
    Failure::NotFound(format!("there is no tool named {name}; {fix}"))
}

/// Reads the definition, or returns its errors.
pub(super) fn read(record: &Breadcrumb) -> Result<ToolDefinition, String> {
    let schema = record.schema_name.as_deref().unwrap_or_default();
    ToolDefinition::read(schema, &record.context, record.description.as_deref(), record.semantic_version.as_deref())
        .map_err(|violations| violations.to_string())
}

/// Reads the tools of the tenant, or those with one name.
pub(super) async fn tools(store: &dyn Records, name: Option<&str>) -> Result<Vec<Breadcrumb>, StoreError> {
    let mut ids = Vec::new();
    for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
        let items = match name {
            Some(name) => seed::tools_named(store, schema, name).await?,
            None => {
                let schema = Some(schema.to_owned());
                seed::every(store, rcrt_breadcrumb::Selector { schema_name: schema, ..Default::default() }).await?
            }
        };
        ids.extend(items.into_iter().map(|item| item.id));
    }
    stream::iter(ids)
        .map(|id| async move {
            match store.get(id).await {
                Err(StoreError::NotFound { .. }) => Ok(None),
                other => other.map(Some),
            }
        })
        .buffered(8)
        .try_filter_map(|record| async { Ok(record) })
        .try_collect()
        .await
}
