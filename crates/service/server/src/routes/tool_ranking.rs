//! `GET /tools?for=`: the tools that fit a text, and hints which services do.

use axum::Json;
use chrono::Utc;
use rcrt_breadcrumb::{Catalog, Profile, Registration, Role, ToolFormat};
use rcrt_tool_search::{FoundService, Question, ServiceRecords};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::routes::replies::Reply;

/// How many tools are returned, if the request does not say.
pub const USUAL_RANKED: u32 = 10;
pub const MAX_RANKED: u32 = 50;
/// How many services are hinted at.
const HINTS: usize = 2;

/// A tool with its score.
#[derive(Serialize, ToSchema)]
pub struct RankedTool {
    #[serde(flatten)]
    tool: Registration,
    /// From 0 to 1: how well the tool fits. Scores of different texts can be compared.
    score: f64,
}

/// The tools that fit a text, the best first.
#[derive(Serialize, ToSchema)]
pub struct RankedCatalog {
    tools: Vec<RankedTool>,
    /// Always empty: a tool with missing requirements is not found.
    waiting: Vec<Value>,
    /// The two services that fit the text best. Empty for a text of one or two words, which asks
    /// for nothing.
    hints: Vec<FoundService>,
}

/// `catalog`: the tenant's, of which the caller can call only the tools in `offered`.
pub(super) async fn ranked(
    state: &ServerState,
    caller: &Caller,
    question: Question,
    (catalog, offered): (Catalog, Catalog),
    limit: u32,
    format: ToolFormat,
) -> Reply<Value> {
    // A caller that sees only its own calls cannot search records. It finds only tools that it can
    // call.
    let reads_only_calls = Role::read_only_own_calls(&caller.identity.roles);
    let store = if reads_only_calls { state.tenant_store(caller) } else { caller.store.clone() };
    let callable: Vec<Uuid> = offered.tools.iter().map(|tool| tool.tool_id).collect();
    let question = question.with_meaning_weight(state.meaning_weight);
    let question = question.with_meaning(&*store, &callable, catalog.tools.len()).await;
    let wants_hints = format == ToolFormat::Rcrt && question.is_worth_hints();
    let records = if wants_hints && !reads_only_calls {
        ServiceRecords::read(&*caller.store).await?
    } else {
        ServiceRecords::default()
    };
    let rank = move |search: &rcrt_tool_search::ToolSearch| {
        let may_call = |tool: &Registration| offered.find(&tool.name).is_some();
        let found = search.tools(&question, may_call, limit as usize);
        let hints = if wants_hints { search.services(&question, may_call, &records, HINTS) } else { Vec::new() };
        let tools = found
            .into_iter()
            .filter_map(|found| Some(RankedTool { tool: offered.find(&found.name)?.clone(), score: found.score }));
        RankedCatalog { tools: tools.collect(), waiting: Vec::new(), hints }
    };
    let ranked = state.tool_searches.ranked(caller.identity.owner_id, catalog, rank).await?;
    if format == ToolFormat::Rcrt {
        return Ok(Json(json!(ranked)));
    }
    // The other formats have no place for a score.
    let tools = ranked.tools.into_iter().map(|ranked| ranked.tool).collect();
    Ok(Json(Catalog { tools, waiting: Vec::new() }.in_format(format)))
}

/// The part of the catalog that a caller with these profiles can call now.
pub(super) fn offered(catalog: Catalog, profiles: [Profile; 2]) -> Catalog {
    let [own, narrower] = profiles;
    catalog.for_profile(own).for_profile(narrower).without_removed(Utc::now())
}
