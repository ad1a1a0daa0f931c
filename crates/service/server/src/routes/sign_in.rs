//! Signs a person in to the dashboard by a link: a one-time ticket in place of a token, because
//! links stay in the history of browsers and terminals.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::CALL_READERS;
use super::tokens::{self, GivenToken};
use crate::ServerState;
use crate::auth::access::{self, Caller};
use crate::auth::token::TicketUse;
use crate::http::json_body::JsonBody;
use crate::http::query::Query;
use crate::routes::replies::{NoStore, NoStoreReply};

/// The longest validity of a token that a ticket is exchanged for: a working day.
const SESSION_SEC: u64 = 12 * 3600;

/// A ticket for one sign-in.
#[derive(Serialize, ToSchema)]
pub struct SignInTicket {
    /// For `POST /auth/sign-in`, or the link `/#/sign-in/<ticket>` of the dashboard. Valid once.
    ticket: String,
    /// Seconds in which it must be used.
    expires_in: u64,
}

/// Get a ticket to sign in
///
/// For a link to the dashboard: `rcrt up` and `rcrt open` print one. Whoever uses it first gets a
/// token with the rights of the token of this request.
#[utoipa::path(post, path = "/auth/ticket", tag = "auth", operation_id = "sign_in_ticket",
    responses((status = 200, body = SignInTicket)))]
pub async fn ticket(State(state): State<ServerState>, caller: Caller, query: Query) -> NoStoreReply<SignInTicket> {
    query.finish()?;
    let ticket = caller.ticket(&state, TicketUse::SignIn)?;
    Ok(NoStore(SignInTicket { ticket, expires_in: TicketUse::SignIn.time().as_secs() }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// From `POST /auth/ticket`.
    ticket: String,
}

/// Sign in with a ticket
///
/// Exchanges the ticket for a token, once. The token is valid for at most 12 hours, and not longer
/// than the token with which the ticket was requested.
#[utoipa::path(post, path = "/auth/sign-in", tag = "auth", operation_id = "sign_in",
    request_body = SignIn, responses((status = 200, body = GivenToken)))]
pub async fn sign_in(State(state): State<ServerState>, JsonBody(asked): JsonBody<SignIn>) -> NoStoreReply<GivenToken> {
    let caller = access::redeem(&state, CALL_READERS, TicketUse::SignIn, &asked.ticket).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // At least a second: it has not expired, since the ticket has not.
    let left = caller.expires_at.saturating_sub(now).max(1);
    tokens::issue(&state, caller.identity, left.min(SESSION_SEC))
}
