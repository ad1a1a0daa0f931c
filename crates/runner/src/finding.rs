//! The tool of a request, or why there is none for it.

use std::sync::Arc;

use breadcrumb::{ErrorCode, Profiles, ToolFailure, schema_names::TOOL_ERROR};
use serde_json::json;

use crate::backoff::persist;
use crate::loading::Loading;
use crate::readiness::Readiness;
use crate::registry::{Found, Registry};
use crate::tool::{Problem, Tool};

pub(crate) struct Finding {
    pub registry: Arc<Registry>,
    pub loading: Arc<Loading>,
    pub readiness: Arc<Readiness>,
}

impl Finding {
    /// The failure comes with the tool where one of the name is there, for the metrics.
    pub async fn find(&self, name: &str, profiles: &Profiles) -> Result<Arc<Tool>, (Option<Arc<Tool>>, ToolFailure)> {
        if let Some(profile) = profiles.closing(name) {
            let failure = ToolFailure::new(ErrorCode::PermissionDenied, format!("the profile {profile} has no {name}"))
                .with_details(json!({"profile": profile, "tool": name}));
            return Err((self.registry.offered(name), failure));
        }
        let may_name = |name: &str| profiles.closing(name).is_none();
        let mut found = self.registry.find(name, may_name);
        if matches!(found, Found::Unknown { .. } | Found::Broken(_)) {
            // Written a moment ago, perhaps: the request may have overtaken the tool's event.
            if let Err(error) = persist("look for a tool", || self.loading.look_for(name)).await {
                tracing::warn!(%error, "the store cannot be asked for a tool");
            }
            found = self.registry.find(name, may_name);
        }
        match found {
            Found::Tool(tool) if tool.executor.waits_for(&tool.definition).is_empty() => Ok(tool),
            Found::Tool(tool) | Found::Waiting(tool) => {
                // What it waited for may have come since, or what it had may be gone.
                let lacks = self.readiness.recheck(&tool).await;
                if lacks.is_empty() {
                    return Ok(tool);
                }
                let failure = lacks.failure(&tool);
                Err((Some(tool), failure))
            }
            Found::Broken(problem) => Err((None, broken(name, &problem))),
            Found::Unknown { nearest } => Err((None, unknown(name, &nearest))),
        }
    }
}

fn broken(name: &str, problem: &Problem) -> ToolFailure {
    let message = format!("no version of the tool {name:?} works: {} (see its {TOOL_ERROR})", problem.sentence());
    ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(json!({"errors": problem.errors}))
}

fn unknown(name: &str, nearest: &[String]) -> ToolFailure {
    let mut message = format!("there is no tool {name:?}");
    if !nearest.is_empty() {
        message = format!("{message}; did you mean {}?", nearest.join(" or "));
    }
    ToolFailure::new(ErrorCode::ToolNotFound, message).with_details(json!({"nearest": nearest}))
}
