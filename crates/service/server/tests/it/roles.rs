//! Every route, and the roles that can call it. The responses are tested in `routes`.

use std::collections::BTreeSet;

use rcrt_breadcrumb::Role::{self, Caller, Curator, Emitter, Runner, Subscriber};

use crate::harness::World;

/// `None`: every caller, without a token.
pub type Roles = Option<&'static [Role]>;

const ANYONE: Roles = None;
const READERS: Roles = Some(&[Curator, Emitter, Subscriber, Runner]);
const WRITERS: Roles = Some(&[Curator, Emitter, Runner]);
const CALL_READERS: Roles = Some(&[Curator, Emitter, Subscriber, Runner, Caller]);
const REQUESTERS: Roles = Some(&[Curator, Emitter, Runner, Caller]);
const FOLLOWERS: Roles = Some(&[Curator, Subscriber, Runner, Caller]);
const SUBSCRIBERS: Roles = Some(&[Curator, Subscriber, Runner]);
const RUNNERS: Roles = Some(&[Curator, Runner]);
const CURATORS: Roles = Some(&[Curator]);

/// The roles of each route, intentionally written a second time.
pub const EXPECTED: &[(&str, &str, Roles)] = &[
    ("POST", "/auth/token", ANYONE),
    ("POST", "/auth/ticket", CALL_READERS),
    ("POST", "/auth/sign-in", ANYONE),
    ("GET", "/auth/tokens", CALL_READERS),
    ("POST", "/auth/revoke", CALL_READERS),
    ("POST", "/breadcrumbs", REQUESTERS),
    ("GET", "/breadcrumbs", CALL_READERS),
    ("GET", "/breadcrumbs/search", CALL_READERS),
    ("GET", "/breadcrumbs/{id}", CALL_READERS),
    ("GET", "/breadcrumbs/{id}/full", CALL_READERS),
    ("GET", "/breadcrumbs/{id}/history", CALL_READERS),
    ("PATCH", "/breadcrumbs/{id}", WRITERS),
    ("DELETE", "/breadcrumbs/{id}", WRITERS),
    ("GET", "/acl", READERS),
    ("POST", "/acl/grant", WRITERS),
    ("POST", "/acl/revoke", WRITERS),
    ("GET", "/events/stream", FOLLOWERS),
    ("POST", "/events/ticket", FOLLOWERS),
    ("GET", "/events/latest", FOLLOWERS),
    ("POST", "/subscriptions/selectors", FOLLOWERS),
    ("GET", "/subscriptions/selectors", FOLLOWERS),
    ("PUT", "/subscriptions/selectors/{id}", FOLLOWERS),
    ("DELETE", "/subscriptions/selectors/{id}", FOLLOWERS),
    ("GET", "/tools", CALL_READERS),
    ("GET", "/tools/{name}", CALL_READERS),
    ("POST", "/tools/{name}/invoke", REQUESTERS),
    ("POST", "/tools/types", CALL_READERS),
    ("POST", "/tools/validate", WRITERS),
    ("POST", "/tools/test", WRITERS),
    ("POST", "/tools/{name}/publish", CURATORS),
    ("POST", "/mcp", CALL_READERS),
    ("GET", "/mcp", CALL_READERS),
    ("DELETE", "/mcp", CALL_READERS),
    ("GET", "/calls/{request_id}", CALL_READERS),
    ("POST", "/calls/{request_id}/cancel", REQUESTERS),
    ("POST", "/calls/claim", RUNNERS),
    ("POST", "/calls/start", RUNNERS),
    ("POST", "/calls/heartbeat", RUNNERS),
    ("POST", "/calls/complete", RUNNERS),
    ("POST", "/calls/release", RUNNERS),
    ("POST", "/runners", RUNNERS),
    ("GET", "/runners", CURATORS),
    ("POST", "/runners/{id}/drain", CURATORS),
    ("POST", "/secrets", CURATORS),
    ("GET", "/secrets", RUNNERS),
    ("PUT", "/secrets/{id}", RUNNERS),
    ("DELETE", "/secrets/{id}", CURATORS),
    ("POST", "/secrets/{id}/decrypt", RUNNERS),
    ("POST", "/secrets/{id}/grants", CURATORS),
    ("DELETE", "/secrets/{id}/grants/{tool_id}", CURATORS),
    ("POST", "/agents", CURATORS),
    ("GET", "/agents", CURATORS),
    ("GET", "/agents/{id}", RUNNERS),
    ("GET", "/agents/{id}/selectors", CURATORS),
    ("POST", "/agents/{id}", CURATORS),
    ("POST", "/agents/{id}/rotate-key", CURATORS),
    ("DELETE", "/agents/{id}", CURATORS),
    ("GET", "/hygiene/stats", CURATORS),
    ("POST", "/hygiene/run", CURATORS),
    ("POST", "/admin/purge", CURATORS),
    ("POST", "/agents/{id}/webhooks", SUBSCRIBERS),
    ("GET", "/agents/{id}/webhooks", READERS),
    ("DELETE", "/agents/{id}/webhooks/{wid}", READERS),
    ("POST", "/agents/{id}/webhooks/{wid}/pause", READERS),
    ("POST", "/agents/{id}/webhooks/{wid}/resume", SUBSCRIBERS),
    ("POST", "/agents/{id}/secret", READERS),
    ("GET", "/dlq", CURATORS),
    ("DELETE", "/dlq", CURATORS),
    ("POST", "/dlq/{id}/retry", CURATORS),
    ("DELETE", "/dlq/{id}", CURATORS),
    ("GET", "/audit", CURATORS),
    ("GET", "/calls", CALL_READERS),
    ("GET", "/calls/stats", CURATORS),
    ("GET", "/audit/egress", CURATORS),
    ("POST", "/audit/egress", RUNNERS),
    ("GET", "/tenants", CURATORS),
    ("GET", "/tenants/{id}", CURATORS),
    ("POST", "/tenants/{id}", CURATORS),
    ("PUT", "/tenants/{id}", CURATORS),
    ("DELETE", "/tenants/{id}", CURATORS),
    ("GET", "/.well-known/agent-card.json", ANYONE),
    ("GET", "/.well-known/agent-card.json/", ANYONE),
    ("POST", "/a2a", REQUESTERS),
    ("POST", "/a2a/message:send", REQUESTERS),
    ("POST", "/a2a/message:stream", REQUESTERS),
    ("GET", "/a2a/tasks", REQUESTERS),
    ("GET", "/a2a/tasks/{id}", REQUESTERS),
    ("POST", "/a2a/tasks/{id}", REQUESTERS),
    ("POST", "/a2a/tasks/{id}/pushNotificationConfigs", REQUESTERS),
    ("GET", "/a2a/tasks/{id}/pushNotificationConfigs", REQUESTERS),
    ("GET", "/a2a/tasks/{id}/pushNotificationConfigs/{config}", REQUESTERS),
    ("DELETE", "/a2a/tasks/{id}/pushNotificationConfigs/{config}", REQUESTERS),
    ("GET", "/a2a/extendedAgentCard", REQUESTERS),
    ("POST", "/a2a/push/{tenant}/{task}", ANYONE),
    ("GET", "/health", ANYONE),
    ("GET", "/health/live", ANYONE),
    ("GET", "/metrics", ANYONE),
    ("GET", "/openapi.json", ANYONE),
    ("GET", "/docs", ANYONE),
    ("GET", "/docs/", ANYONE),
    ("GET", "/", ANYONE),
    ("GET", "/swagger", ANYONE),
    ("GET", "/docs/page.css", ANYONE),
    ("GET", "/docs/page.js", ANYONE),
    ("GET", "/favicon.svg", ANYONE),
    ("GET", "/assets/{name}", ANYONE),
];

#[tokio::test]
async fn the_list_has_all_routes() {
    let world = World::start().await;
    let document = world.get("/openapi.json", "").await.ok().json();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let roles: Option<Vec<String>> =
                operation.get("x-roles").map(|roles| serde_json::from_value(roles.clone()).unwrap());
            described.insert((method.to_uppercase(), path.clone(), roles));
        }
    }
    let expected: BTreeSet<_> = EXPECTED
        .iter()
        .map(|(method, path, roles)| {
            let roles = roles.map(|roles| roles.iter().map(|role| role.as_str().to_owned()).collect::<Vec<_>>());
            ((*method).to_owned(), (*path).to_owned(), roles)
        })
        .collect();
    assert_eq!(described, expected);
    world.close().await;
}
