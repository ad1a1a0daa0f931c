//! A valid request for each route, and the expected status. `{record}`, `{secret}` and so on are
//! replaced by the ids of resources of one tenant ([`super::resources`]), `{caller}` by the agent
//! that calls. Every request has `If-Match: 1` and `Prefer: respond-async`.

use rcrt_breadcrumb::Role::{self, Emitter, Runner};

pub struct Fixture {
    /// Method and path, as in the route table.
    pub route: &'static str,
    pub path: &'static str,
    /// JSON, or nothing.
    pub body: &'static str,
    /// The status for allowed callers of the tenant that the resources belong to.
    pub own: u16,
    /// The status for callers with the role in another tenant.
    pub other: u16,
    /// In the own tenant: the roles that can call the route but get another status.
    pub judged: &'static [(Role, u16)],
}

impl Fixture {
    const fn judging(self, judged: &'static [(Role, u16)]) -> Self {
        Self { judged, ..self }
    }

    pub fn own(&self, role: Role) -> u16 {
        self.judged.iter().find(|(judged, _)| *judged == role).map_or(self.own, |(_, status)| *status)
    }

    /// For callers with the role in another tenant.
    pub fn other(&self, role: Role) -> u16 {
        if self.judged == CALLER_FORBIDDEN && role == Role::Caller { 403 } else { self.other }
    }

    pub fn method_and_template(&self) -> (&'static str, &'static str) {
        self.route.split_once(' ').unwrap()
    }

    /// The path, with ids that do not exist.
    pub fn path_of_nothing(&self) -> String {
        let mut path = self.path.to_owned();
        while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
            path.replace_range(start..=end, &uuid::Uuid::new_v4().to_string());
        }
        path
    }

    /// The code of the problem if the thing does not exist.
    pub fn not_found(&self) -> &'static str {
        match self.route {
            route if route.contains("/tools/") => "tool_not_found",
            route if route.contains("/assets/") => "unknown_path",
            _ => "not_found",
        }
    }
}

const fn fixture(route: &'static str, path: &'static str, body: &'static str, own: u16, other: u16) -> Fixture {
    Fixture { route, path, body, own, other, judged: &[] }
}

/// A caller writes requests and reads its own calls, and nothing else.
const CALLER_FORBIDDEN: &[(Role, u16)] = &[(Role::Caller, 403)];
const CALLER_NOT_FOUND: &[(Role, u16)] = &[(Role::Caller, 404)];

const A2A_MESSAGE: &str = r#"{"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}}"#;
const NOTE: &str = r#"{"title": "a note", "schema_name": "note.v1", "context": {"text": "of nobody"}}"#;

#[rustfmt::skip] // A table.
pub const FIXTURES: &[Fixture] = &[
    fixture("POST /auth/token", "/auth/token", r#"{"owner_id": "{tenant}", "agent_id": "{agent}", "agent_key": "{agent_key}"}"#, 200, 200),
    fixture("POST /auth/ticket", "/auth/ticket", "", 200, 200),
    fixture("POST /auth/sign-in", "/auth/sign-in", r#"{"ticket": "{ticket}"}"#, 200, 200),
    // The id of an agent's token: for the agent itself, or a curator.
    fixture("POST /auth/revoke", "/auth/revoke", r#"{"jti": "{request}", "agent_id": "{agent}"}"#, 403, 404)
        .judging(&[(Role::Curator, 200)]),
    fixture("GET /auth/tokens", "/auth/tokens?limit=10", "", 200, 200),
    // Records
    fixture("POST /breadcrumbs", "/breadcrumbs", NOTE, 201, 201).judging(CALLER_FORBIDDEN),
    fixture("GET /breadcrumbs", "/breadcrumbs?tag=note&include_context=true", "", 200, 200),
    fixture("GET /breadcrumbs/search", "/breadcrumbs/search?q=text&include_context=true", "", 200, 200),
    fixture("GET /breadcrumbs/{id}", "/breadcrumbs/{record}", "", 200, 404).judging(CALLER_NOT_FOUND),
    fixture("GET /breadcrumbs/{id}/full", "/breadcrumbs/{record}/full", "", 200, 404).judging(CALLER_NOT_FOUND),
    fixture("GET /breadcrumbs/{id}/history", "/breadcrumbs/{record}/history", "", 200, 404).judging(CALLER_NOT_FOUND),
    fixture("PATCH /breadcrumbs/{id}", "/breadcrumbs/{record}", r#"{"title": "changed"}"#, 200, 404),
    fixture("DELETE /breadcrumbs/{id}", "/breadcrumbs/{record}", "", 200, 404),
    // Rights: only a curator or the record's creator can grant access. The effect of a grant is
    // tested in `acl.rs`.
    fixture("GET /acl", "/acl", "", 200, 200),
    fixture("POST /acl/grant", "/acl/grant", r#"{"breadcrumb_id": "{record}", "grantee_agent_id": "{agent}", "actions": ["read_full"]}"#, 200, 404)
        .judging(&[(Emitter, 403), (Runner, 403)]),
    fixture("POST /acl/revoke", "/acl/revoke", r#"{"breadcrumb_id": "{record}", "grantee_agent_id": "{agent}", "action": "read_full"}"#, 200, 404)
        .judging(&[(Emitter, 403), (Runner, 403)]),
    // Events
    fixture("GET /events/stream", "/events/stream", "", 200, 200),
    fixture("POST /events/ticket", "/events/ticket", "", 200, 200),
    fixture("GET /events/latest", "/events/latest", "", 200, 200),
    // An agent's own selectors, whatever its roles.
    fixture("POST /subscriptions/selectors", "/subscriptions/selectors", r#"{"any_tags": ["a"]}"#, 201, 201),
    fixture("GET /subscriptions/selectors", "/subscriptions/selectors", "", 200, 200),
    fixture("PUT /subscriptions/selectors/{id}", "/subscriptions/selectors/{selector}", r#"{"any_tags": ["b"]}"#, 404, 404),
    fixture("DELETE /subscriptions/selectors/{id}", "/subscriptions/selectors/{selector}", "", 404, 404),
    // Tools
    fixture("GET /tools", "/tools", "", 200, 200),
    fixture("GET /tools/{name}", "/tools/{offered}", "", 200, 404),
    fixture("POST /tools/{name}/invoke", "/tools/{offered}/invoke", r#"{"input": {}}"#, 202, 202),
    fixture("POST /tools/types", "/tools/types", "{}", 200, 200),
    fixture("POST /tools/validate", "/tools/validate", r#"{"tool_spec": {"name": "x"}}"#, 200, 200),
    // No runner: a call in the queue.
    fixture("POST /tools/test", "/tools/test", r#"{"tool_spec": {"name": "x"}}"#, 202, 202),
    fixture("POST /tools/{name}/publish", "/tools/{offered}/publish", "{}", 404, 404),
    // Without the headers of the protocol, which `mcp` tests.
    fixture("POST /mcp", "/mcp", r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#, 406, 406),
    fixture("GET /mcp", "/mcp", "", 406, 406),
    fixture("DELETE /mcp", "/mcp", "", 400, 400),
    // Calls
    fixture("GET /calls", "/calls?limit=10", "", 200, 200),
    fixture("GET /calls/stats", "/calls/stats?window=1h", "", 200, 200),
    fixture("GET /calls/{request_id}", "/calls/{request}", "", 200, 404).judging(CALLER_NOT_FOUND),
    fixture("POST /calls/{request_id}/cancel", "/calls/{request}/cancel", "", 200, 404).judging(CALLER_NOT_FOUND),
    fixture("POST /calls/claim", "/calls/claim", r#"{"runner_id": "{request}", "limit": 10, "lease_ms": 5000}"#, 200, 200),
    fixture("POST /calls/start", "/calls/start", r#"{"lease": {lease}, "max_attempts": 1}"#, 200, 409),
    fixture("POST /calls/heartbeat", "/calls/heartbeat", r#"{"leases": [{lease}], "lease_ms": 5000}"#, 200, 200),
    fixture("POST /calls/complete", "/calls/complete",
        r#"{"lease": {lease}, "response": {"title": "r", "schema_name": "tool.response.v1", "context": {"status": "success"}}}"#, 200, 409),
    fixture("POST /calls/release", "/calls/release", r#"{"lease": {lease}, "release": "unstarted"}"#, 200, 409),
    fixture("POST /runners", "/runners",
        r#"{"runner_id": "{request}", "lease_ms": 1000, "applied": 0, "host": "h", "version": "1", "draining": false,
            "started_at": "2026-01-31T12:00:00Z",
            "slots": {"worker": {"used": 0, "free": 1}, "waiting": {"used": 0, "free": 1}}}"#, 200, 200),
    fixture("GET /runners", "/runners", "", 200, 200),
    fixture("POST /runners/{id}/drain", "/runners/{runner}/drain", r#"{"drain": true}"#, 200, 404),
    // A2A: only the agent that sent a task's message sees the task. No skill is offered here.
    fixture("GET /.well-known/agent-card.json", "/.well-known/agent-card.json", "", 200, 200),
    fixture("GET /.well-known/agent-card.json/", "/.well-known/agent-card.json/", "", 200, 200),
    fixture("POST /a2a", "/a2a?A2A-Version=1.0", r#"{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "{request}"}}"#, 200, 200),
    fixture("POST /a2a/message:send", "/a2a/message:send?A2A-Version=1.0", A2A_MESSAGE, 400, 400),
    fixture("POST /a2a/message:stream", "/a2a/message:stream?A2A-Version=1.0", A2A_MESSAGE, 400, 400),
    fixture("GET /a2a/tasks", "/a2a/tasks?A2A-Version=1.0", "", 200, 200),
    fixture("GET /a2a/tasks/{id}", "/a2a/tasks/{request}?A2A-Version=1.0", "", 404, 404),
    fixture("POST /a2a/tasks/{id}", "/a2a/tasks/{request}:cancel?A2A-Version=1.0", "", 404, 404),
    fixture("POST /a2a/tasks/{id}/pushNotificationConfigs", "/a2a/tasks/{request}/pushNotificationConfigs?A2A-Version=1.0", r#"{"url": "https://example.com/"}"#, 404, 404),
    fixture("GET /a2a/tasks/{id}/pushNotificationConfigs", "/a2a/tasks/{request}/pushNotificationConfigs?A2A-Version=1.0", "", 404, 404),
    fixture("GET /a2a/tasks/{id}/pushNotificationConfigs/{config}", "/a2a/tasks/{request}/pushNotificationConfigs/a?A2A-Version=1.0", "", 404, 404),
    fixture("DELETE /a2a/tasks/{id}/pushNotificationConfigs/{config}", "/a2a/tasks/{request}/pushNotificationConfigs/a?A2A-Version=1.0", "", 404, 404),
    fixture("GET /a2a/extendedAgentCard", "/a2a/extendedAgentCard?A2A-Version=1.0", "", 200, 200),
    // The token of no agent is that of a task.
    fixture("POST /a2a/push/{tenant}/{task}", "/a2a/push/{tenant}/{record}", "", 401, 401),
    // Secrets
    fixture("POST /secrets", "/secrets", r#"{"name": "FIXTURE", "value": "a long value"}"#, 201, 201),
    fixture("GET /secrets", "/secrets", "", 200, 200),
    fixture("PUT /secrets/{id}", "/secrets/{secret}", r#"{"value": "another long value", "tool_id": "{tool}"}"#, 200, 404),
    fixture("DELETE /secrets/{id}", "/secrets/{secret}", "", 200, 404),
    fixture("POST /secrets/{id}/decrypt", "/secrets/{secret}/decrypt", r#"{"reason": "a test", "tool_id": "{tool}"}"#, 200, 404),
    fixture("POST /secrets/{id}/grants", "/secrets/{secret}/grants", r#"{"tool_id": "{tool}"}"#, 200, 404),
    fixture("DELETE /secrets/{id}/grants/{tool_id}", "/secrets/{secret}/grants/{tool}", "", 200, 404),
    // Agents
    fixture("POST /agents", "/agents", r#"{"name": "fixture", "roles": ["emitter"]}"#, 201, 201),
    fixture("GET /agents", "/agents", "", 200, 200),
    fixture("GET /agents/{id}", "/agents/{agent}", "", 200, 404),
    fixture("GET /agents/{id}/selectors", "/agents/{agent}/selectors", "", 200, 404),
    fixture("POST /agents/{id}/rotate-key", "/agents/{agent}/rotate-key", "", 200, 404),
    fixture("DELETE /agents/{id}", "/agents/{agent}", "", 200, 404),
    // Hygiene
    fixture("GET /hygiene/stats", "/hygiene/stats", "", 200, 200),
    fixture("POST /hygiene/run", "/hygiene/run", "", 200, 200),
    fixture("POST /admin/purge", "/admin/purge", "", 200, 200),
    // Webhooks
    fixture("POST /agents/{id}/webhooks", "/agents/{caller}/webhooks", r#"{"url": "https://hook.example/"}"#, 201, 404),
    fixture("GET /agents/{id}/webhooks", "/agents/{caller}/webhooks", "", 200, 404),
    fixture("DELETE /agents/{id}/webhooks/{wid}", "/agents/{caller}/webhooks/{webhook}", "", 200, 404),
    fixture("POST /agents/{id}/webhooks/{wid}/pause", "/agents/{caller}/webhooks/{webhook}/pause", "", 200, 404),
    fixture("POST /agents/{id}/webhooks/{wid}/resume", "/agents/{caller}/webhooks/{webhook}/resume", "", 200, 404),
    fixture("POST /agents/{id}/secret", "/agents/{caller}/secret", r#"{"secret": "a signing secret"}"#, 200, 404),
    fixture("GET /dlq", "/dlq?limit=10&offset=0", "", 200, 200),
    fixture("DELETE /dlq", "/dlq", "", 200, 200),
    fixture("POST /dlq/{id}/retry", "/dlq/{dead_letter}/retry", "", 200, 404),
    fixture("DELETE /dlq/{id}", "/dlq/{dead_letter}", "", 200, 404),
    // The id is in use by another tenant: refused, without a hint to that tenant.
    fixture("POST /agents/{id}", "/agents/{agent}", r#"{"roles": ["subscriber"]}"#, 200, 400),
    // Audit
    fixture("GET /audit", "/audit?limit=10&action=agent", "", 200, 200),
    fixture("GET /audit/egress", "/audit/egress?limit=10", "", 200, 200),
    fixture("POST /audit/egress", "/audit/egress",
        r#"{"entries": [{"at": "2026-01-01T00:00:00Z", "tool": "t", "host": "a.example", "port": 443, "method": "GET", "outcome": "failed",
            "bytes_out": 0, "bytes_in": 0, "duration_ms": 1}]}"#, 200, 200),
    // Tenants: callers that are not operators.
    fixture("GET /tenants", "/tenants", "", 200, 200),
    fixture("GET /tenants/{id}", "/tenants/{tenant}", "", 200, 404),
    fixture("POST /tenants/{id}", "/tenants/{tenant}", r#"{"name": "{tenant} renamed"}"#, 200, 403),
    fixture("PUT /tenants/{id}", "/tenants/{tenant}", r#"{"name": "{tenant} renamed"}"#, 200, 403),
    fixture("DELETE /tenants/{id}", "/tenants/{tenant}", "", 403, 404),
    // Operations
    fixture("GET /health", "/health", "", 200, 200),
    fixture("GET /health/live", "/health/live", "", 200, 200),
    fixture("GET /metrics", "/metrics", "", 200, 200),
    fixture("GET /openapi.json", "/openapi.json", "", 200, 200),
    fixture("GET /docs", "/docs", "", 200, 200),
    fixture("GET /docs/", "/docs/", "", 200, 200),
    fixture("GET /", "/", "", 200, 200),
    fixture("GET /swagger", "/swagger", "", 200, 200),
    fixture("GET /docs/page.css", "/docs/page.css", "", 200, 200),
    fixture("GET /docs/page.js", "/docs/page.js", "", 200, 200),
    fixture("GET /favicon.svg", "/favicon.svg", "", 200, 200),
    fixture("GET /assets/{name}", "/assets/none.js", "", 404, 404),
];
