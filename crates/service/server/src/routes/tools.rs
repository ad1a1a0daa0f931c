//! The offered tools: the catalog that runners maintain, filtered by the caller's profile and allow
//! list.

use std::sync::Arc;

use axum::{Json, extract::State};
use chrono::Utc;
use rcrt_breadcrumb::{
    AllowedTools, Breadcrumbs, Catalog, CatalogEntry, Identity, Profile, Role, StoreError, ToolFormat, nearest_names,
};
use rcrt_tool_search::Question;
use serde_json::{Value, json};

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::path::PathTool;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::routes::replies::Reply;
use crate::routes::tool_ranking::{MAX_RANKED, USUAL_RANKED, offered, ranked};
use crate::routes::tool_schemas::{ToolInFormat, ToolList};

/// List the offered tools
///
/// All tools of the caller's profile and allow list, by name, without those whose last day
/// (`deprecated.remove_after`) is over. The format `rcrt` also has the tools with missing
/// requirements, each with what to do. The formats `openai` (Chat Completions API),
/// `openai-responses` (Responses API), `anthropic` and `mcp` are lists for a model (or the result
/// of `tools/list`). A name that the format does not allow is replaced by another one, which can be
/// invoked too. A tool whose input is never an object is left out. The lists are empty until the
/// first runner of a tenant has loaded its tools.
///
/// With `for`, only the tools that fit this text, the best first. In the format `rcrt` each has a
/// `score` from 0 to 1, and `hints` names the two services that fit the text best (none for a text
/// of one or two words).
#[utoipa::path(get, path = "/tools", tag = "tools", operation_id = "list_tools",
    params(
        ("format" = inline(Option<ToolFormat>), Query, description = "rcrt when absent"),
        ("profile" = inline(Option<Profile>), Query, description = "Also filter by this profile"),
        ("tool" = Option<Vec<String>>, Query,
            description = "Only the tools with these names or tags, and those that read large results; repeat it for more"),
        ("tag" = Option<Vec<String>>, Query, description = "The same, by a tag of the tools"),
        ("for" = Option<String>, Query, min_length = 1, max_length = 1000, pattern = "\\S",
            description = "What the tools are for, in a few words"),
        ("limit" = Option<i32>, Query, minimum = 1, maximum = 50,
            description = "With `for`: the most tools, 10 when absent, at most 50"),
    ),
    responses((status = 200, body = ToolList)))]
pub async fn list(State(state): State<ServerState>, caller: Caller, mut query: Query) -> Reply<Value> {
    let format = query.take_as("format", ToolFormat::NAMES, ToolFormat::Rcrt);
    let own = caller.identity.profile;
    let profile = query.take_as("profile", "main, subagent, scheduled or a2asynthesis", own);
    let wanted = AllowedTools { names: query.take_all("tool"), sources: Vec::new(), tags: query.take_all("tag") };
    let text = query.take_text("for");
    let limit = query.take_limit(&["limit"], MAX_RANKED);
    if text.is_none() && limit.is_some() {
        query.wrong("limit", "is only used together with for");
    }
    query.finish()?;
    let wanted = (wanted != AllowedTools::default()).then_some(wanted);
    let Some(text) = text else {
        let catalog = limited(state.allowed_catalog(&caller).await?, wanted.as_ref());
        return Ok(Json(offered(catalog, [own, profile]).in_format(format)));
    };
    let question = Question::new("for", &text)?;
    let catalog = state.whole_catalog(&caller).await?;
    let allowed = limited(catalog.clone(), caller.store.allowed_tools().await?.as_ref());
    let offered = offered(limited(allowed, wanted.as_ref()), [own, profile]);
    let limit = limit.map_or(USUAL_RANKED, |limit| limit.applied);
    ranked(&state, &caller, question, (catalog, offered), limit, format).await
}

/// Read the catalog entry of a tool
///
/// In the format `rcrt`, a tool that cannot be called yet has `missing_requirements` and no
/// `parameters`. The name is the tool's own or its name in a format. A deprecated tool whose last
/// day is over is not found; the detail names its replacement.
#[utoipa::path(get, path = "/tools/{name}", tag = "tools", operation_id = "get_tool",
    params(
        ("name" = String, Path, min_length = 1, max_length = 200, pattern = "\\S"),
        ("format" = inline(Option<ToolFormat>), Query, description = "rcrt when absent"),
    ),
    responses((status = 200, body = ToolInFormat)))]
pub async fn get(
    State(state): State<ServerState>,
    caller: Caller,
    PathTool(name): PathTool,
    mut query: Query,
) -> Reply<Value> {
    let format = query.take_as("format", ToolFormat::NAMES, ToolFormat::Rcrt);
    query.finish()?;
    let (found, allowed) = (state.catalog_with(&caller, &name).await?, caller.store.allowed_tools().await?);
    // As for a call: a list of names alone does not say whether other tools exist.
    let is_not_listed = allowed.as_ref().is_some_and(|list| list.denies_name(&name) || found.entry(&name).is_some());
    let catalog = limited(found, allowed.as_ref());
    let profile = caller.identity.profile;
    let entry = catalog.entry(&name);
    let catalog = catalog.for_profile(profile);
    match (entry, catalog.entry(&name)) {
        (_, Some(CatalogEntry::Waiting(waiting))) if format == ToolFormat::Rcrt => Ok(Json(json!(waiting))),
        (_, Some(CatalogEntry::Waiting(waiting))) => {
            let why = waiting.missing_requirements.join(" ");
            Err(Problem::tool_not_found(format!("{name} cannot be called yet. {why}"), Vec::new()))
        }
        (_, Some(CatalogEntry::Offered(tool))) => {
            if let Some(why) = tool.removal(Utc::now()) {
                let replacement = tool.deprecated.and_then(|deprecation| deprecation.replacement);
                return Err(Problem::tool_not_found(why, replacement.into_iter().collect()));
            }
            tool.in_format(format).map(Json).ok_or_else(|| {
                let why =
                    format!("{name} cannot be shown in the format {format}, because its input is never an object");
                Problem::invalid("format", why)
            })
        }
        (Some(_), None) => {
            let why =
                format!("the profile {profile} does not allow the tool {name}; GET /tools lists those that it allows");
            Err(Problem::tool_not_found(why, Vec::new()))
        }
        (None, None) if is_not_listed => {
            let why = format!(
                "the tool {name} is not on the allow list of this agent; a curator can add it with `rcrt agent set`"
            );
            Err(Problem::tool_not_found(why, Vec::new()))
        }
        (None, None) => {
            let nearest = nearest_names(&name, catalog.names());
            let hint = if nearest.is_empty() { String::new() } else { format!("; similar: {}", nearest.join(", ")) };
            Err(Problem::tool_not_found(format!("there is no tool {name:?}{hint}"), nearest))
        }
    }
}

/// The tools on the list. Without a list, all.
fn limited(catalog: Catalog, list: Option<&AllowedTools>) -> Catalog {
    match list {
        Some(list) => catalog.for_allowed(list),
        None => catalog,
    }
}

impl ServerState {
    /// The tenant's store with the rights of a runner, which sees all records.
    pub fn tenant_store(&self, caller: &Caller) -> Arc<dyn Breadcrumbs> {
        self.tenancy.acting_as(Identity { roles: vec![Role::Runner], ..caller.identity.clone() })
    }

    /// The catalog without the tools that are not on the caller's allow list. Also for a caller
    /// that cannot read the catalog's records.
    pub async fn allowed_catalog(&self, caller: &Caller) -> Result<Catalog, StoreError> {
        let catalog = self.whole_catalog(caller).await?;
        Ok(limited(catalog, caller.store.allowed_tools().await?.as_ref()))
    }

    async fn whole_catalog(&self, caller: &Caller) -> Result<Catalog, StoreError> {
        Ok(Catalog::read(&*self.catalog_store(caller)).await?.unwrap_or_default())
    }

    /// The part of the catalog with this tool, or all of it if no tool has this as its own name.
    async fn catalog_with(&self, caller: &Caller, tool: &str) -> Result<Catalog, StoreError> {
        Ok(Catalog::read_with(&*self.catalog_store(caller), tool).await?.unwrap_or_default())
    }

    /// The same of the tools on the caller's allow list.
    pub async fn allowed_catalog_with(&self, caller: &Caller, tool: &str) -> Result<Catalog, StoreError> {
        let catalog = self.catalog_with(caller, tool).await?;
        Ok(limited(catalog, caller.store.allowed_tools().await?.as_ref()))
    }

    fn catalog_store(&self, caller: &Caller) -> Arc<dyn Breadcrumbs> {
        if Role::read_only_own_calls(&caller.identity.roles) { self.tenant_store(caller) } else { caller.store.clone() }
    }
}
