//! Lets `up` wait until the tools of a new installation are in the catalog.

use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{BreadcrumbQuery, Catalog, Events, Records, StoreError, schema_names};

use crate::seed::SeedSet;

/// Maximum time for the runner to validate the included tools. After that, the catalog follows
/// later.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns whether no runner has written a catalog yet.
pub async fn is_missing(store: &dyn Records) -> Result<bool, StoreError> {
    let query =
        BreadcrumbQuery { limit: 1, include_context: false, ..BreadcrumbQuery::of_schema(schema_names::TOOL_CATALOG) };
    Ok(store.list(&query).await?.is_empty())
}

/// Returns when the catalog lists every tool of the set, or after a timeout.
pub async fn until_written(store: &(impl Events + Records + ?Sized), names: &[String]) -> Result<(), StoreError> {
    let written = async {
        let mut events = store.events(None).await?;
        loop {
            let catalog = Catalog::read(store).await?.unwrap_or_default();
            if names.iter().all(|name| catalog.entry(name).is_some()) {
                return Ok(());
            }
            loop {
                // The event stream is lost. Do not wait any longer; the catalog follows later.
                let Some(Ok(event)) = events.next().await else { return Ok(()) };
                if event.schema_name.as_deref() == Some(schema_names::TOOL_CATALOG) {
                    break;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, written).await.unwrap_or(Ok(()))
}

/// The names of the tools in a set.
pub fn tools(set: &SeedSet) -> Vec<String> {
    let tools = set.seeds.iter().filter(|seed| schema_names::is_tool(seed.record.schema_name.as_deref()));
    tools.map(|seed| seed.name().to_owned()).collect()
}
