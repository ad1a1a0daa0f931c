//! The tools on offer: the catalog that runners keep, as the caller's profile sees it.

use axum::Json;
use breadcrumb::{Catalog, CatalogEntry, Profile, ToolFormat, nearest_names};
use serde_json::{Value, json};

use crate::{
    access::Caller,
    path_tool::PathTool,
    problem::Problem,
    query::Query,
    tool_schemas::{ToolInFormat, ToolList},
};

/// List the tools on offer
///
/// All that the caller's profile sees, by name; as `rcrt` also those that wait for something, each with what to do. As
/// `openai`, `anthropic` or `mcp` it is the list that goes to a model (or the result of `tools/list`): a name that a
/// format refuses is given as another one, which can be invoked as well; a tool whose input never is an object is left
/// out. Before the first runner of a tenant has looked at its tools, the lists are empty.
#[utoipa::path(get, path = "/tools", tag = "tools", operation_id = "list_tools",
    params(
        ("format" = inline(Option<ToolFormat>), Query, description = "rcrt when absent"),
        ("profile" = inline(Option<Profile>), Query, description = "Only what this profile sees, too"),
    ),
    responses((status = 200, body = ToolList)))]
pub async fn list(caller: Caller, mut query: Query) -> Result<Json<Value>, Problem> {
    let format = query.take_as("format", FORMATS, ToolFormat::Rcrt);
    let own = caller.identity.profile;
    let profile = query.take_as("profile", "main, subagent, scheduled or a2asynthesis", own);
    query.finish(&["format", "profile"])?;
    let catalog = Catalog::read(&*caller.store).await?.unwrap_or_default();
    Ok(Json(catalog.for_profile(own).for_profile(profile).in_format(format)))
}

/// Read what the catalog says of a tool
///
/// As `rcrt`, a tool that waits for something has `waits_for` and no `parameters`. The name is the tool's own, or the
/// one that it has in a format.
#[utoipa::path(get, path = "/tools/{name}", tag = "tools", operation_id = "get_tool",
    params(
        ("name" = String, Path, min_length = 1, max_length = 200, pattern = "\\S"),
        ("format" = inline(Option<ToolFormat>), Query, description = "rcrt when absent"),
    ),
    responses((status = 200, body = ToolInFormat)))]
pub async fn get(caller: Caller, PathTool(name): PathTool, mut query: Query) -> Result<Json<Value>, Problem> {
    let format = query.take_as("format", FORMATS, ToolFormat::Rcrt);
    query.finish(&["format"])?;
    let catalog = Catalog::read(&*caller.store).await?.unwrap_or_default();
    let profile = caller.identity.profile;
    let entry = catalog.entry(&name);
    let catalog = catalog.for_profile(profile);
    match (entry, catalog.entry(&name)) {
        (_, Some(CatalogEntry::Waiting(waiting))) if format == ToolFormat::Rcrt => Ok(Json(json!(waiting))),
        (_, Some(CatalogEntry::Waiting(waiting))) => {
            let why = waiting.waits_for.join(" ");
            Err(Problem::tool_not_found(format!("{name} cannot be called yet. {why}"), Vec::new()))
        }
        (_, Some(CatalogEntry::Offered(tool))) => tool.in_format(format).map(Json).ok_or_else(|| {
            let why = format!("{name} has no form in the format {format}: its input never is an object");
            Problem::invalid("format", why)
        }),
        (Some(_), None) => Err(Problem::tool_not_found(format!("the profile {profile} has no {name}"), Vec::new())),
        (None, None) => {
            let nearest = nearest_names(&name, catalog.names());
            let hint = if nearest.is_empty() { String::new() } else { format!("; near it: {}", nearest.join(", ")) };
            Err(Problem::tool_not_found(format!("there is no tool {name:?}{hint}"), nearest))
        }
    }
}

const FORMATS: &str = "rcrt, openai, anthropic or mcp";
