//! The route table: every path of the server, and who can call it. A route enters the server and
//! its OpenAPI document only through this table, and an entry without an [`Access`] does not
//! compile.

pub(crate) mod a2a;
pub(crate) mod acl;
pub(crate) mod agents;
pub(crate) mod audit;
pub(crate) mod breadcrumbs;
pub(crate) mod call_history;
pub(crate) mod calls;
pub(crate) mod config_secrets;
pub(crate) mod dashboard;
pub(crate) mod dead_letters;
pub(crate) mod events;
pub(crate) mod hygiene;
pub(crate) mod invoke;
pub(crate) mod mcp;
pub(crate) mod model_schemas;
pub(crate) mod operations;
pub(crate) mod rcrt_compat;
pub(crate) mod replies;
pub(crate) mod runners;
pub(crate) mod secret_grants;
pub(crate) mod secrets;
pub(crate) mod selectors;
pub(crate) mod sign_in;
pub(crate) mod tenants;
pub(crate) mod tokens;
pub(crate) mod tool_authoring;
pub(crate) mod tool_ranking;
pub(crate) mod tool_schemas;
pub(crate) mod tool_types;
pub(crate) mod tools;
pub(crate) mod webhooks;

use axum::{
    Router,
    extract::Request,
    middleware,
    response::{IntoResponse, Response},
};
use rcrt_breadcrumb::Role::{self, Caller, Emitter, Runner, Subscriber};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouter},
    routes,
};

use crate::ServerState;
use crate::auth::access::{self, Access};
use crate::auth::revocation;
use crate::http::problem::Problem;
use crate::openapi;

/// One operation.
pub struct RouteEntry {
    pub access: Access,
    pub route: UtoipaMethodRouter<ServerState>,
}

const READERS: Access = Access::Roles(&[Emitter, Subscriber, Runner]);
/// A runner writes on behalf of the tools that it runs.
const WRITERS: Access = Access::Roles(&[Emitter, Runner]);
/// What callers may use too. A caller reads only its own calls and writes only requests: the store
/// sees to that.
pub(crate) const CALL_READERS: Access = Access::Roles(&[Emitter, Subscriber, Runner, Caller]);
pub(crate) const REQUESTERS: Access = Access::Roles(&[Emitter, Runner, Caller]);
const FOLLOWERS: &[Role] = &[Subscriber, Runner, Caller];
const SUBSCRIBERS: &[Role] = &[Subscriber, Runner];
const RUNNERS: Access = Access::Roles(&[Runner]);
const CURATORS: Access = Access::Roles(&[]);

fn entry(access: Access, route: UtoipaMethodRouter<ServerState>) -> RouteEntry {
    RouteEntry { access, route }
}

/// Every operation of the server.
pub fn table() -> Vec<RouteEntry> {
    let mut entries = operations_of_the_api();
    entries.extend(protocols());
    entries
}

/// The protocols of other clients and agents.
fn protocols() -> Vec<RouteEntry> {
    vec![
        // The Model Context Protocol: the store and the catalog enforce each agent's rights.
        entry(CALL_READERS, routes!(mcp::post)),
        entry(CALL_READERS, routes!(mcp::stream)),
        entry(CALL_READERS, routes!(mcp::end)),
        // A2A
        entry(Access::Unauthenticated, routes!(a2a::card)),
        entry(Access::Unauthenticated, routes!(a2a::card_folder)),
        entry(REQUESTERS, routes!(a2a::rpc)),
        entry(REQUESTERS, routes!(a2a::send)),
        entry(REQUESTERS, routes!(a2a::stream)),
        entry(REQUESTERS, routes!(a2a::list)),
        entry(REQUESTERS, routes!(a2a::get)),
        entry(REQUESTERS, routes!(a2a::change)),
        entry(REQUESTERS, routes!(a2a::create_push)),
        entry(REQUESTERS, routes!(a2a::list_push)),
        entry(REQUESTERS, routes!(a2a::get_push)),
        entry(REQUESTERS, routes!(a2a::delete_push)),
        entry(REQUESTERS, routes!(a2a::extended_card)),
        // The token of the task is checked by the handler.
        entry(Access::Unauthenticated, routes!(a2a::receive_push)),
    ]
}

fn operations_of_the_api() -> Vec<RouteEntry> {
    vec![
        entry(Access::Unauthenticated, routes!(tokens::token)),
        entry(CALL_READERS, routes!(sign_in::ticket)),
        entry(Access::Unauthenticated, routes!(sign_in::sign_in)),
        entry(CALL_READERS, routes!(tokens::list)),
        entry(CALL_READERS, routes!(revocation::revoke)),
        // Records
        entry(REQUESTERS, routes!(breadcrumbs::create)),
        entry(CALL_READERS, routes!(breadcrumbs::list)),
        entry(CALL_READERS, routes!(breadcrumbs::search)),
        entry(CALL_READERS, routes!(breadcrumbs::get)),
        entry(CALL_READERS, routes!(breadcrumbs::full)),
        entry(CALL_READERS, routes!(breadcrumbs::history)),
        entry(WRITERS, routes!(breadcrumbs::update)),
        entry(WRITERS, routes!(breadcrumbs::delete)),
        // Rights
        entry(READERS, routes!(acl::list)),
        entry(WRITERS, routes!(acl::grant)),
        entry(WRITERS, routes!(acl::revoke)),
        // Events
        entry(Access::RolesOrTicket(FOLLOWERS), routes!(events::stream)),
        entry(Access::Roles(FOLLOWERS), routes!(events::ticket)),
        entry(Access::Roles(FOLLOWERS), routes!(events::latest)),
        entry(Access::Roles(FOLLOWERS), routes!(selectors::create)),
        entry(Access::Roles(FOLLOWERS), routes!(selectors::list)),
        entry(Access::Roles(FOLLOWERS), routes!(selectors::update)),
        entry(Access::Roles(FOLLOWERS), routes!(selectors::delete)),
        // Tools
        entry(CALL_READERS, routes!(tools::list)),
        entry(CALL_READERS, routes!(tools::get)),
        entry(REQUESTERS, routes!(invoke::invoke)),
        entry(CALL_READERS, routes!(tool_types::types)),
        entry(WRITERS, routes!(tool_authoring::validate)),
        entry(WRITERS, routes!(tool_authoring::test)),
        entry(CURATORS, routes!(tool_authoring::publish)),
        // Calls
        entry(CALL_READERS, routes!(call_history::list)),
        entry(CURATORS, routes!(call_history::stats)),
        entry(CALL_READERS, routes!(call_history::get)),
        entry(REQUESTERS, routes!(calls::cancel)),
        entry(RUNNERS, routes!(calls::claim)),
        entry(RUNNERS, routes!(calls::start)),
        entry(RUNNERS, routes!(calls::heartbeat)),
        entry(RUNNERS, routes!(calls::complete)),
        entry(RUNNERS, routes!(calls::release)),
        entry(RUNNERS, routes!(runners::report)),
        entry(CURATORS, routes!(runners::list)),
        entry(CURATORS, routes!(runners::drain)),
        // Secrets
        entry(CURATORS, routes!(secrets::create)),
        entry(RUNNERS, routes!(secrets::list)),
        entry(RUNNERS, routes!(secrets::update)),
        entry(CURATORS, routes!(secrets::delete)),
        entry(CURATORS, routes!(secret_grants::grant)),
        entry(CURATORS, routes!(secret_grants::revoke)),
        entry(RUNNERS, routes!(secrets::decrypt)),
        // Agents
        entry(CURATORS, routes!(agents::create)),
        entry(CURATORS, routes!(agents::list)),
        entry(RUNNERS, routes!(agents::get)),
        entry(CURATORS, routes!(agents::selectors)),
        entry(CURATORS, routes!(agents::put)),
        entry(CURATORS, routes!(agents::rotate_key)),
        entry(CURATORS, routes!(agents::delete)),
        // Hygiene
        entry(CURATORS, routes!(hygiene::stats)),
        entry(CURATORS, routes!(hygiene::run)),
        entry(CURATORS, routes!(hygiene::purge)),
        // Webhooks: an agent's own, or any for a curator
        entry(Access::Roles(SUBSCRIBERS), routes!(webhooks::create)),
        entry(READERS, routes!(webhooks::list)),
        entry(READERS, routes!(webhooks::delete)),
        entry(READERS, routes!(webhooks::pause)),
        entry(Access::Roles(SUBSCRIBERS), routes!(webhooks::resume)),
        entry(READERS, routes!(webhooks::secret)),
        entry(CURATORS, routes!(dead_letters::list)),
        entry(CURATORS, routes!(dead_letters::delete_all)),
        entry(CURATORS, routes!(dead_letters::retry)),
        entry(CURATORS, routes!(dead_letters::delete)),
        // Audit
        entry(CURATORS, routes!(audit::log)),
        entry(CURATORS, routes!(audit::egress)),
        entry(RUNNERS, routes!(audit::log_egress)),
        // Tenants
        entry(CURATORS, routes!(tenants::list)),
        entry(CURATORS, routes!(tenants::get)),
        entry(CURATORS, routes!(tenants::ensure)),
        entry(CURATORS, routes!(tenants::update)),
        entry(CURATORS, routes!(tenants::delete)),
        // Operations
        entry(Access::Anyone, routes!(operations::health)),
        entry(Access::Anyone, routes!(operations::live)),
        entry(Access::Anyone, routes!(operations::metrics)),
        entry(Access::Anyone, routes!(operations::openapi)),
        entry(Access::Anyone, routes!(operations::docs)),
        entry(Access::Anyone, routes!(operations::docs_folder)),
        entry(Access::Anyone, routes!(operations::swagger)),
        entry(Access::Anyone, routes!(operations::docs_style)),
        entry(Access::Anyone, routes!(operations::docs_script)),
        entry(Access::Anyone, routes!(dashboard::page)),
        entry(Access::Anyone, routes!(dashboard::icon)),
        entry(Access::Anyone, routes!(dashboard::asset)),
    ]
}

/// The table as a router, with each route behind its check.
pub fn router(state: ServerState) -> Router {
    let mut router = OpenApiRouter::with_openapi(openapi::bare());
    for RouteEntry { access, route: (schemas, paths, handler) } in table() {
        let guard = middleware::from_fn_with_state((state.clone(), access), access::check);
        router = router.routes((schemas, paths, handler.route_layer(guard)));
    }
    let (router, _) = router.split_for_parts();
    router.fallback(unknown_path).method_not_allowed_fallback(method_not_allowed).with_state(state)
}

async fn unknown_path(request: Request) -> Response {
    Problem::unknown_path(request.uri().path()).into_response()
}

async fn method_not_allowed(request: Request) -> Response {
    Problem::method_not_allowed(request.method().as_str(), request.uri().path()).into_response()
}
