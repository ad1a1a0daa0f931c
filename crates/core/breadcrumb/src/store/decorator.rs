//! [`BreadcrumbsDecorator`] and [`TenancyDecorator`]: a store over another one, which writes only
//! the methods that it changes. An example is `schemas/src/layer.rs`.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    AuditLog, Breadcrumbs, CallHistory, CallQueue, ChangeCheck, EgressLog, Events, Records, Rights, Runners, Secrets,
    Selectors, StoreError,
};
use crate::{
    AclChange, AclEntry, AgentInfo, AgentRegistration, AgentStatus, AllowedTools, AnsweredTerms, AuditEntry,
    AuditQuery, Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, BreadcrumbView,
    Call, CallDetails, CallPage, CallQuery, CallStats, CallStatsQuery, Claim, ClaimRequest, ClaimTerms, Created,
    EgressEntry, EgressQuery, EgressRecord, EventNumber, HygieneRun, HygieneStats, Identity, Lease, LeaseState,
    NewAgent, NewAgentKey, NewBreadcrumb, NewSecret, PublishRule, Release, ReportReply, RunnerDrain, RunnerInfo,
    RunnerReport, Search, SearchResults, SecretChanges, SecretInfo, Selector, SelectorSubscription, SubscribeOptions,
    SubscriptionStream, Tenancy, TenantCount, TenantInfo, TenantQuotas, TenantUsage, TokenInfo, TokenQuery,
    TokenRecord, TokenRevocation, ToolFailure, UnfinishedCalls, Webhooks,
};

type Result<T> = std::result::Result<T, StoreError>;

/// Writes the decorator's trait, whose methods forward to the inner store, and implements the
/// store's traits for every decorator. Each method is listed once; clippy reports a missing one.
macro_rules! decorator {
    (
        $(#[$about:meta])*
        $decorator:ident over $inner:ident;
        $($(#[$attribute:meta])* $trait:ident {
            $(async fn $method:ident($($argument:ident: $type:ty),*) -> $output:ty;)*
            $(fn $sync:ident($($sync_argument:ident: $sync_type:ty),*) -> $sync_output:ty;)*
        })*
    ) => {
        $(#[$about])*
        #[async_trait]
        pub trait $decorator: Send + Sync + 'static {
            fn inner(&self) -> &dyn $inner;
            $(
                $(async fn $method(&self, $($argument: $type),*) -> $output {
                    self.inner().$method($($argument),*).await
                })*
                $(fn $sync(&self, $($sync_argument: $sync_type),*) -> $sync_output {
                    self.inner().$sync($($sync_argument),*)
                })*
            )*
        }

        $(
            #[warn(clippy::missing_trait_methods)]
            $(#[$attribute])*
            #[async_trait]
            impl<D: $decorator> $trait for D {
                $(async fn $method(&self, $($argument: $type),*) -> $output {
                    $decorator::$method(self, $($argument),*).await
                })*
                $(fn $sync(&self, $($sync_argument: $sync_type),*) -> $sync_output {
                    $decorator::$sync(self, $($sync_argument),*)
                })*
            }
        )*
    };
}

decorator! {
    /// A [`Breadcrumbs`] over another one. A method that it does not write is the inner store's.
    BreadcrumbsDecorator over Breadcrumbs;

    Records {
        async fn create(record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created>;
        async fn get(id: Uuid) -> Result<Breadcrumb>;
        async fn view(id: Uuid) -> Result<BreadcrumbView>;
        async fn version(id: Uuid, is_full: bool) -> Result<i64>;
        async fn history(id: Uuid) -> Result<Vec<BreadcrumbVersion>>;
        async fn update(id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb>;
        async fn update_checked(
            id: Uuid, version: i64, changes: BreadcrumbChanges, check: &ChangeCheck<'_>
        ) -> Result<Breadcrumb>;
        async fn delete(id: Uuid, version: Option<i64>) -> Result<()>;
        async fn list(query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>>;
        async fn search(search: &Search) -> Result<SearchResults>;
    }

    Rights {
        async fn allowed_tools() -> Result<Option<AllowedTools>>;
        async fn is_curator() -> Result<bool>;
        async fn grants(record: Option<Uuid>) -> Result<Vec<AclEntry>>;
        async fn grant(change: &AclChange) -> Result<Uuid>;
        async fn revoke(change: &AclChange) -> Result<u64>;
    }

    #[allow(clippy::missing_trait_methods)] // `events` reads the decorator's own `subscribe`.
    Events {
        async fn latest_event() -> Result<EventNumber>;
        async fn newest_committed_event() -> Result<EventNumber>;
        async fn subscribe(options: SubscribeOptions) -> Result<SubscriptionStream>;
    }

    Selectors {
        async fn create_selector(selector: Selector) -> Result<SelectorSubscription>;
        async fn selectors() -> Result<Vec<SelectorSubscription>>;
        async fn selectors_of(agent: Uuid) -> Result<Vec<SelectorSubscription>>;
        async fn update_selector(id: Uuid, selector: Selector) -> Result<SelectorSubscription>;
        async fn delete_selector(id: Uuid) -> Result<()>;
    }

    CallQueue {
        async fn call_queued() -> ();
        async fn create_claimed(
            request: NewBreadcrumb, idempotency_key: Option<&str>, terms: ClaimTerms
        ) -> Result<(Created, Option<Claim>)>;
        async fn create_answered(
            request: NewBreadcrumb, idempotency_key: Option<&str>, terms: AnsweredTerms
        ) -> Result<Created>;
        async fn claim(claim: &ClaimRequest) -> Result<Vec<Claim>>;
        async fn start(lease: Lease, max_attempts: u32) -> Result<()>;
        async fn heartbeat(leases: &[Lease], lease_ms: u64) -> Result<Vec<LeaseState>>;
        async fn complete(lease: Lease, response: NewBreadcrumb) -> Result<Uuid>;
        async fn release(lease: Lease, release: Release) -> Result<()>;
        async fn call(request: Uuid) -> Result<Call>;
        async fn cancel(request: Uuid) -> Result<Call>;
    }

    Runners {
        async fn report_runner(report: &RunnerReport) -> Result<ReportReply>;
        async fn runners() -> Result<Vec<RunnerInfo>>;
        async fn drain_runner(id: Uuid, drain: RunnerDrain) -> Result<RunnerInfo>;
        async fn runners_behind(tool: Uuid) -> Result<Vec<Uuid>>;
    }

    CallHistory {
        async fn list_calls(query: &CallQuery) -> Result<CallPage>;
        async fn call_details(request: Uuid) -> Result<CallDetails>;
        async fn call_stats(query: &CallStatsQuery) -> Result<CallStats>;
    }

    Secrets {
        async fn create_secret(secret: NewSecret) -> Result<SecretInfo>;
        async fn secrets() -> Result<Vec<SecretInfo>>;
        async fn update_secret(id: Uuid, changes: SecretChanges) -> Result<SecretInfo>;
        async fn delete_secret(id: Uuid) -> Result<()>;
        async fn grant_secret(id: Uuid, tool_id: Uuid) -> Result<SecretInfo>;
        async fn revoke_secret(id: Uuid, tool_id: Uuid) -> Result<SecretInfo>;
        async fn decrypt_secret(id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String>;
    }

    EgressLog {
        async fn log_egress(records: Vec<EgressRecord>) -> Result<()>;
        async fn egress_log(query: &EgressQuery) -> Result<Vec<EgressEntry>>;
    }

    AuditLog {
        async fn audit_log(query: &AuditQuery) -> Result<Vec<AuditEntry>>;
    }

    Breadcrumbs {
        fn on_behalf_of(agent: Uuid) -> Result<Arc<dyn Breadcrumbs>>;
    }
}

decorator! {
    /// A [`Tenancy`] over another one. A method that it does not write is the inner store's.
    TenancyDecorator over Tenancy;

    Tenancy {
        async fn ensure_tenant(name: &str) -> Result<TenantInfo>;
        async fn tenants() -> Result<Vec<TenantInfo>>;
        async fn tenant(id: Uuid) -> Result<Option<TenantInfo>>;
        async fn put_tenant(id: Uuid, name: &str, cell: Option<&str>) -> Result<(TenantInfo, bool)>;
        async fn set_quotas(id: Uuid, quotas: TenantQuotas) -> Result<()>;
        async fn set_publish(id: Uuid, publish: PublishRule) -> Result<()>;
        async fn usage(id: Uuid) -> Result<TenantUsage>;
        async fn delete_tenant(id: Uuid) -> Result<()>;
        async fn put_agent(
            owner_id: Uuid, by: Option<Uuid>, agent_id: Uuid, agent: AgentRegistration
        ) -> Result<(AgentInfo, Option<String>)>;
        async fn create_agent(owner_id: Uuid, by: Option<Uuid>, agent: NewAgent) -> Result<NewAgentKey>;
        async fn agents(owner_id: Uuid) -> Result<Vec<AgentInfo>>;
        async fn rotate_agent_key(owner_id: Uuid, by: Option<Uuid>, agent_id: Uuid) -> Result<NewAgentKey>;
        async fn delete_agent(owner_id: Uuid, by: Option<Uuid>, agent_id: Uuid) -> Result<()>;
        async fn agent(owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>>;
        async fn agent_by_key(owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>>;
        async fn agent_status(owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus>;
        async fn revoke_tokens(owner_id: Uuid, by: Uuid, revocation: TokenRevocation) -> Result<()>;
        async fn record_tokens(tokens: Vec<TokenRecord>) -> Result<()>;
        async fn tokens(owner_id: Uuid, query: &TokenQuery) -> Result<Vec<TokenInfo>>;
        async fn recently_changed_agents() -> Result<Vec<(Uuid, Uuid, DateTime<Utc>)>>;
        async fn use_ticket(owner_id: Uuid, ticket: Uuid, until: DateTime<Utc>) -> Result<bool>;
        async fn kept_session(owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<Option<Value>>;
        async fn keep_session(owner_id: Uuid, agent_id: Uuid, id: &str, state: &Value) -> Result<()>;
        async fn end_session(owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<()>;
        async fn hygiene(owner_id: Uuid) -> Result<HygieneStats>;
        async fn run_hygiene(owner_id: Uuid) -> Result<HygieneRun>;
        async fn unfinished_calls() -> Result<Vec<UnfinishedCalls>>;
        async fn test_tool(
            identity: Identity, tool_spec: Map<String, Value>
        ) -> Option<std::result::Result<Value, ToolFailure>>;
        async fn ping() -> Result<()>;
        fn acting_as(identity: Identity) -> Arc<dyn Breadcrumbs>;
        fn counted_tenants() -> Vec<TenantCount>;
        fn webhooks() -> Arc<dyn Webhooks>;
    }
}
