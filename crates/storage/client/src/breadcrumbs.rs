//! The trait, one request per method.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AclChange, AclEntry, AuditEntry, AuditLog, AuditQuery, Breadcrumb, BreadcrumbChanges, BreadcrumbListItem,
    BreadcrumbQuery, BreadcrumbVersion, BreadcrumbView, Breadcrumbs, Call, CallDetails, CallHistory, CallPage,
    CallQuery, CallQueue, CallState, CallStats, CallStatsQuery, Claim, ClaimRequest, Created, EgressEntry, EgressLog,
    EgressQuery, EgressRecord, EventNumber, Events, Lease, LeaseState, NewBreadcrumb, NewSecret, RUNNER_PROTOCOL,
    RUNNER_PROTOCOL_HEADER, Records, Release, ReportReply, Rights, Role, RunnerDrain, RunnerInfo, RunnerReport,
    Runners, Search, SearchMode, SearchResults, SecretChanges, SecretInfo, Secrets, Selector, SelectorSubscription,
    Selectors, StoreError, SubscribeOptions, SubscriptionStream, Violations,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::{
    Client,
    agents::Acknowledged,
    request::{
        Request,
        RetryPolicy::{Idempotent, IfNotProcessed},
    },
};

#[derive(Deserialize)]
struct Latest {
    number: EventNumber,
}

#[derive(Deserialize)]
struct Granted {
    id: Uuid,
}

#[derive(Deserialize)]
struct Revoked {
    rows: u64,
}

#[derive(Deserialize)]
struct Completed {
    id: Uuid,
}

#[derive(Deserialize)]
struct SecretValue {
    value: String,
}

#[async_trait]
impl Records for Client {
    /// If the caller has no key, it gets one here, so that it can be repeated after a lost
    /// response.
    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        let key = idempotency_key.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        let request = Request::new(Method::POST, &["breadcrumbs"], Idempotent).json(&record)?;
        let created: Created = self.send(request.header("idempotency-key", &key)?).await?;
        // With a key of ours, a replay is our own repetition, which the caller should not see.
        Ok(Created { replayed: created.replayed && idempotency_key.is_some(), ..created })
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["breadcrumbs", &id.to_string(), "full"], Idempotent)).await?)
    }

    async fn view(&self, id: Uuid) -> Result<BreadcrumbView, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["breadcrumbs", &id.to_string()], Idempotent)).await?)
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["breadcrumbs", &id.to_string(), "history"], Idempotent)).await?)
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        let id = id.to_string();
        let path = ["breadcrumbs", &id];
        let request = Request::new(Method::PATCH, &path, IfNotProcessed).json(&changes)?;
        Ok(self.send(request.header("if-match", &format!("\"{version}\""))?).await?)
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        self.delete_at(&["breadcrumbs", &id.to_string()], version).await
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        // The server returns fewer records than a limit above its maximum. A program that pages
        // would take that for the last page.
        query.check()?;
        let mut request = Request::new(Method::GET, &["breadcrumbs"], Idempotent);
        request.query = selector(&query.selector)?;
        request.query.push(("limit", query.limit.to_string()));
        request.query.push(("offset", query.offset.to_string()));
        request.query.push(("include_context", query.include_context.to_string()));
        Ok(self.send(request).await?)
    }

    async fn search(&self, search: &Search) -> Result<SearchResults, StoreError> {
        search.check()?;
        let mut request = Request::new(Method::GET, &["breadcrumbs", "search"], Idempotent);
        request.query = selector(&search.selector)?;
        request.query.extend(search.q.clone().map(|q| ("q", q)));
        if let Some(qvec) = &search.qvec {
            let numbers: Vec<String> = qvec.iter().map(ToString::to_string).collect();
            request.query.push(("qvec", format!("[{}]", numbers.join(","))));
        }
        request.query.extend(search.mode.map(|mode| ("mode", mode.to_string())));
        request.query.extend(search.ids.iter().map(|id| ("id", id.to_string())));
        request.query.push(("nn", search.nn.to_string()));
        request.query.push(("include_context", search.include_context.to_string()));
        let (items, headers) = self.send_with_headers(request).await?;
        let header_text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Ok(SearchResults {
            items,
            // A server that sends no mode only searches text.
            mode: header_text("search-mode").and_then(|mode| mode.parse().ok()).unwrap_or(SearchMode::Text),
            fallback: header_text("search-fallback").map(str::to_owned),
        })
    }
}

#[async_trait]
impl Rights for Client {
    async fn is_curator(&self) -> Result<bool, StoreError> {
        match self.on_behalf_of {
            Some(agent) => Ok(self.agent(agent).await?.roles.contains(&Role::Curator)),
            None => Ok(false),
        }
    }

    async fn grants(&self, record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        let mut request = Request::new(Method::GET, &["acl"], Idempotent);
        request.query.extend(record.map(|record| ("breadcrumb_id", record.to_string())));
        Ok(self.send(request).await?)
    }

    async fn grant(&self, change: &AclChange) -> Result<Uuid, StoreError> {
        let granted: Granted =
            self.send(Request::new(Method::POST, &["acl", "grant"], Idempotent).json(change)?).await?;
        Ok(granted.id)
    }

    /// If the response to the first request was lost, the grant does not exist any more, and the
    /// count is that of the repetition.
    async fn revoke(&self, change: &AclChange) -> Result<u64, StoreError> {
        let revoked: Revoked =
            self.send(Request::new(Method::POST, &["acl", "revoke"], Idempotent).json(change)?).await?;
        Ok(revoked.rows)
    }
}

#[async_trait]
impl Events for Client {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        let latest: Latest = self.send(Request::new(Method::GET, &["events", "latest"], Idempotent)).await?;
        Ok(latest.number)
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        crate::event_stream::subscribe(self.clone(), options).await
    }
}

#[async_trait]
impl Selectors for Client {
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        let request = Request::new(Method::POST, &["subscriptions", "selectors"], IfNotProcessed).json(&selector)?;
        Ok(self.send(request).await?)
    }

    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["subscriptions", "selectors"], Idempotent)).await?)
    }

    async fn selectors_of(&self, agent: Uuid) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["agents", &agent.to_string(), "selectors"], Idempotent)).await?)
    }

    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        let id = id.to_string();
        let path = ["subscriptions", "selectors", &id];
        Ok(self.send(Request::new(Method::PUT, &path, Idempotent).json(&selector)?).await?)
    }

    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError> {
        self.delete_at(&["subscriptions", "selectors", &id.to_string()], None).await
    }
}

#[async_trait]
impl CallQueue for Client {
    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        // Not repeated after a lost response: those leases expire, and a second claim would take
        // more calls.
        let request = Request::new(Method::POST, &["calls", "claim"], IfNotProcessed)
            .header(RUNNER_PROTOCOL_HEADER, &RUNNER_PROTOCOL.to_string())?
            .json(claim)?;
        Ok(self.send(request).await?)
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        let body = json!({"lease": lease, "max_attempts": max_attempts});
        let request = Request::new(Method::POST, &["calls", "start"], Idempotent).json(&body)?;
        self.send::<Acknowledged>(request).await?;
        Ok(())
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<LeaseState>, StoreError> {
        let body = json!({"leases": leases, "lease_ms": lease_ms});
        Ok(self.send(Request::new(Method::POST, &["calls", "heartbeat"], Idempotent).json(&body)?).await?)
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        let body = json!({"lease": lease, "response": response});
        let request = Request::new(Method::POST, &["calls", "complete"], Idempotent).json(&body)?;
        match self.send::<Completed>(request).await {
            Ok(completed) => Ok(completed.id),
            Err(refusal) if refusal.maybe_processed && matches!(refusal.error, StoreError::LeaseLost { .. }) => {
                self.own_response(lease.request, &response).await?.ok_or(refusal.error)
            }
            Err(refusal) => Err(refusal.error),
        }
    }

    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError> {
        let body = json!({"lease": lease, "release": release});
        let request = Request::new(Method::POST, &["calls", "release"], Idempotent).json(&body)?;
        match self.send::<Acknowledged>(request).await {
            Ok(_) => Ok(()),
            // The first request returned the call, or the lease expired. In both cases the call is
            // no longer ours, as intended.
            Err(refusal) if refusal.maybe_processed && matches!(refusal.error, StoreError::LeaseLost { .. }) => Ok(()),
            Err(refusal) => Err(refusal.error),
        }
    }

    async fn call(&self, request: Uuid) -> Result<Call, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["calls", &request.to_string()], Idempotent)).await?)
    }

    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError> {
        Ok(self.send(Request::new(Method::POST, &["calls", &request.to_string(), "cancel"], Idempotent)).await?)
    }
}

#[async_trait]
impl Runners for Client {
    async fn report_runner(&self, report: &RunnerReport) -> Result<ReportReply, StoreError> {
        Ok(self.send(Request::new(Method::POST, &["runners"], Idempotent).json(report)?).await?)
    }

    async fn runners(&self) -> Result<Vec<RunnerInfo>, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["runners"], Idempotent)).await?)
    }

    async fn drain_runner(&self, id: Uuid, drain: RunnerDrain) -> Result<RunnerInfo, StoreError> {
        let id = id.to_string();
        Ok(self.send(Request::new(Method::POST, &["runners", &id, "drain"], Idempotent).json(&drain)?).await?)
    }
}

#[async_trait]
impl CallHistory for Client {
    async fn list_calls(&self, query: &CallQuery) -> Result<CallPage, StoreError> {
        query.check()?;
        Ok(self.send(Request::new(Method::GET, &["calls"], Idempotent).selecting(query)?).await?)
    }

    async fn call_details(&self, request: Uuid) -> Result<CallDetails, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["calls", &request.to_string()], Idempotent)).await?)
    }

    async fn call_stats(&self, query: &CallStatsQuery) -> Result<CallStats, StoreError> {
        query.check()?;
        let mut request = Request::new(Method::GET, &["calls", "stats"], Idempotent);
        request.query.extend(query.tool.clone().map(|tool| ("tool", tool)));
        request.query.push(("window", format!("{}s", query.window_seconds)));
        Ok(self.send(request).await?)
    }
}

#[async_trait]
impl Secrets for Client {
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError> {
        Ok(self.send(Request::new(Method::POST, &["secrets"], IfNotProcessed).json(&secret)?).await?)
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError> {
        Ok(self.send(Request::new(Method::GET, &["secrets"], Idempotent)).await?)
    }

    /// A new value is a new version each time; all other changes can be repeated.
    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError> {
        let id = id.to_string();
        let retry = if changes.value.is_some() { IfNotProcessed } else { Idempotent };
        Ok(self.send(Request::new(Method::PUT, &["secrets", &id], retry).json(&changes)?).await?)
    }

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError> {
        self.delete_at(&["secrets", &id.to_string()], None).await
    }

    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        let id = id.to_string();
        let path = ["secrets", &id, "grants"];
        Ok(self.send(Request::new(Method::POST, &path, Idempotent).json(&json!({"tool_id": tool_id}))?).await?)
    }

    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        let (id, tool_id) = (id.to_string(), tool_id.to_string());
        let path = ["secrets", &id, "grants", &tool_id];
        Ok(self.send(Request::new(Method::DELETE, &path, IfNotProcessed)).await?)
    }

    async fn decrypt_secret(&self, id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String, StoreError> {
        let id = id.to_string();
        let path = ["secrets", &id, "decrypt"];
        let body = json!({"reason": reason, "tool_id": for_tool});
        let request = Request::new(Method::POST, &path, Idempotent).json(&body)?;
        let secret: SecretValue = self.send(request).await?;
        Ok(secret.value)
    }
}

/// A page of a log.
#[derive(Deserialize)]
struct Page<T> {
    entries: Vec<T>,
}

#[async_trait]
impl EgressLog for Client {
    async fn log_egress(&self, records: Vec<EgressRecord>) -> Result<(), StoreError> {
        let body = json!({"entries": records});
        // A repetition could write the records twice.
        let request = Request::new(Method::POST, &["audit", "egress"], IfNotProcessed).json(&body)?;
        self.send::<Acknowledged>(request).await?;
        Ok(())
    }

    async fn egress_log(&self, query: &EgressQuery) -> Result<Vec<EgressEntry>, StoreError> {
        let request = Request::new(Method::GET, &["audit", "egress"], Idempotent).selecting(query)?;
        Ok(self.send::<Page<EgressEntry>>(request).await?.entries)
    }
}

#[async_trait]
impl AuditLog for Client {
    async fn audit_log(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let request = Request::new(Method::GET, &["audit"], Idempotent).selecting(query)?;
        Ok(self.send::<Page<AuditEntry>>(request).await?.entries)
    }
}

impl Breadcrumbs for Client {
    /// The first request shows whether the client's agent is allowed to.
    fn on_behalf_of(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        Ok(Arc::new(Self { on_behalf_of: Some(agent), ..self.clone() }))
    }
}

impl Client {
    /// The response record of a request, if it is this one: then a completion whose HTTP response
    /// was lost succeeded.
    async fn own_response(&self, request: Uuid, response: &NewBreadcrumb) -> Result<Option<Uuid>, StoreError> {
        let call = self.call(request).await?;
        let (CallState::Finished, Some(id)) = (call.state, call.response) else { return Ok(None) };
        match self.get(id).await {
            Ok(record) => Ok((record.context == response.context).then_some(id)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn selector(selector: &Selector) -> Result<Vec<(&'static str, String)>, StoreError> {
    // A condition that the query cannot express must not be dropped.
    selector.check().map_err(StoreError::Invalid)?;
    let mut query: Vec<(&'static str, String)> = Vec::new();
    query.extend(selector.all_tags.iter().map(|tag| ("tag", tag.clone())));
    query.extend(selector.any_tags.iter().map(|tag| ("any_tag", tag.clone())));
    query.extend(selector.schema_name.iter().map(|name| ("schema_name", name.clone())));
    if !selector.context_match.is_empty() {
        let text = serde_json::to_string(&selector.context_match)
            .map_err(|error| StoreError::Invalid(Violations::one("context_match", error.to_string())))?;
        query.push(("context_match", text));
    }
    query.extend(selector.exclude_runtime.then(|| ("exclude_runtime", "true".to_owned())));
    Ok(query)
}
