//! The tools: their list, and calls.

pub(crate) mod call;
mod listing;
pub(crate) mod result;

pub(crate) use listing::{described, list};

use chrono::Utc;
use rcrt_breadcrumb::{CatalogEntry, Registration, nearest_names};
use rmcp::ErrorData;
use serde_json::json;

use crate::Principal;
use crate::errors;

/// The tool with this name, which can be its name in a format for models.
pub(crate) async fn find(principal: &dyn Principal, name: &str) -> Result<Registration, ErrorData> {
    let catalog = principal.catalog_with(name).await.map_err(errors::of_store)?;
    let (why, nearest) = match catalog.entry(name) {
        Some(CatalogEntry::Offered(tool)) => match tool.removal(Utc::now()) {
            None => return Ok(tool),
            Some(why) => (why, Vec::new()),
        },
        Some(CatalogEntry::Waiting(waiting)) => {
            (format!("{name} cannot be called yet. {}", waiting.missing_requirements.join(" ")), Vec::new())
        }
        None => {
            let catalog = principal.catalog().await.map_err(errors::of_store)?;
            let nearest = nearest_names(name, catalog.names());
            let hint = if nearest.is_empty() { String::new() } else { format!("; similar: {}", nearest.join(", ")) };
            (format!("there is no tool {name:?} that this agent can call{hint}"), nearest)
        }
    };
    Err(ErrorData::invalid_params(why, Some(json!({"tool": name, "nearest": nearest}))))
}
