//! Webhooks of agents: the URLs to which events are posted, and the secrets that sign the posts. An
//! agent manages its own, a curator all.

use axum::{Json, extract::State, http::StatusCode};
use rcrt_breadcrumb::{NewWebhook, Role, StoreError, WebhookInfo, WebhookSecret, Webhooks, check_webhook_host};
use std::sync::Arc;
use uuid::Uuid;

use crate::AuthMode;
use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::http::path::{PathId, PathIds};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::routes::replies::{Done, NoStore, NoStoreReply, Reply};

/// Post an agent's events to a URL
///
/// Each event from now on is posted, signed with the agent's secret, and repeated with growing
/// pauses until the receiver accepts it. docs/webhooks.md describes how a receiver verifies it.
#[utoipa::path(post, path = "/agents/{id}/webhooks", tag = "webhooks", operation_id = "create_webhook",
    params(("id" = Uuid, Path)), request_body = NewWebhook, responses((status = 201, body = WebhookInfo)))]
pub async fn create(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(agent): PathId,
    JsonBody(webhook): JsonBody<NewWebhook>,
) -> Result<(StatusCode, Json<WebhookInfo>), Problem> {
    let webhooks = of(&state, &caller, agent).await?;
    check_webhook_host(&state.allowed_private, &webhook.url).map_err(StoreError::Invalid)?;
    let identity = &caller.identity;
    let made = webhooks.create_webhook(identity.owner_id, agent, identity.agent_id, webhook).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// List an agent's webhooks
///
/// With the state of their receivers. The oldest first.
#[utoipa::path(get, path = "/agents/{id}/webhooks", tag = "webhooks", operation_id = "list_webhooks",
    params(("id" = Uuid, Path)), responses((status = 200, body = Vec<WebhookInfo>)))]
pub async fn list(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(agent): PathId,
    query: Query,
) -> Reply<Vec<WebhookInfo>> {
    query.finish()?;
    let webhooks = of(&state, &caller, agent).await?;
    Ok(Json(webhooks.webhooks(caller.identity.owner_id, agent).await?))
}

/// Delete a webhook
///
/// Its queued deliveries and its dead letters are deleted with it.
#[utoipa::path(delete, path = "/agents/{id}/webhooks/{wid}", tag = "webhooks", operation_id = "delete_webhook",
    params(("id" = Uuid, Path), ("wid" = Uuid, Path)), responses((status = 200, body = Done)))]
pub async fn delete(State(state): State<ServerState>, caller: Caller, PathIds(agent, webhook): PathIds) -> Reply<Done> {
    let webhooks = of(&state, &caller, agent).await?;
    webhooks.delete_webhook(caller.identity.owner_id, agent, caller.identity.agent_id, webhook).await?;
    Ok(Done::JSON)
}

/// Pause a webhook
///
/// Until it is resumed, nothing is posted and no event is queued. Queued deliveries stay.
#[utoipa::path(post, path = "/agents/{id}/webhooks/{wid}/pause", tag = "webhooks", operation_id = "pause_webhook",
    params(("id" = Uuid, Path), ("wid" = Uuid, Path)), responses((status = 200, body = WebhookInfo)))]
pub async fn pause(
    State(state): State<ServerState>,
    caller: Caller,
    PathIds(agent, webhook): PathIds,
) -> Reply<WebhookInfo> {
    let webhooks = of(&state, &caller, agent).await?;
    Ok(Json(webhooks.pause_webhook(caller.identity.owner_id, agent, webhook, true).await?))
}

/// Resume a webhook
///
/// Also one that was paused because its receiver no longer exists. It continues at once, with the
/// queued deliveries.
#[utoipa::path(post, path = "/agents/{id}/webhooks/{wid}/resume", tag = "webhooks", operation_id = "resume_webhook",
    params(("id" = Uuid, Path), ("wid" = Uuid, Path)), responses((status = 200, body = WebhookInfo)))]
pub async fn resume(
    State(state): State<ServerState>,
    caller: Caller,
    PathIds(agent, webhook): PathIds,
) -> Reply<WebhookInfo> {
    let webhooks = of(&state, &caller, agent).await?;
    Ok(Json(webhooks.pause_webhook(caller.identity.owner_id, agent, webhook, false).await?))
}

/// Set the secret that signs an agent's deliveries
///
/// For all of its webhooks, from now on. It is stored encrypted and never shown.
#[utoipa::path(post, path = "/agents/{id}/secret", tag = "webhooks", operation_id = "set_webhook_secret",
    params(("id" = Uuid, Path)), request_body = WebhookSecret, responses((status = 200, body = Done)))]
pub async fn secret(
    State(state): State<ServerState>,
    caller: Caller,
    PathId(agent): PathId,
    JsonBody(secret): JsonBody<WebhookSecret>,
) -> NoStoreReply<Done> {
    let webhooks = of(&state, &caller, agent).await?;
    webhooks.set_webhook_secret(caller.identity.owner_id, agent, caller.identity.agent_id, secret).await?;
    Ok(NoStore(Done { ok: true }))
}

/// The webhooks of an agent, for the agent itself and for curators of its tenant. In open mode the
/// agent need not exist.
async fn of(state: &ServerState, caller: &Caller, agent: Uuid) -> Result<Arc<dyn Webhooks>, Problem> {
    let identity = &caller.identity;
    let is_there = agent == identity.agent_id
        || identity.has(Role::Curator)
            && (state.auth == AuthMode::Open || state.tenancy.agent(identity.owner_id, agent).await?.is_some());
    if !is_there {
        return Err(StoreError::NotFound { what: "agent", id: agent }.into());
    }
    Ok(state.tenancy.webhooks())
}
