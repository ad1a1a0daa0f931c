//! The shared types of the runtime: records, selectors, events, tools, requests, responses, calls
//! and leases. And the traits through which other crates use a store: [`Breadcrumbs`] (one tenant
//! as one agent sees it), [`Tenancy`] (all tenants) and [`Embedder`] (texts to vectors).
//!
//! This crate does no I/O. It deliberately does not know Postgres, HTTP or V8. The store and the
//! HTTP client implement [`Breadcrumbs`]; the server and the runner use only the trait.
//!
//! Begin with `breadcrumb.rs` (the record), `store/mod.rs` (the trait [`Breadcrumbs`]) and
//! `call.rs` (calls and leases).
//!
//! # Example
//! A record is written and read through the traits of a store, whichever store it is:
//! ```
//! use rcrt_breadcrumb::{Breadcrumb, NewBreadcrumb, Records, StoreError};
//! use serde_json::json;
//!
//! async fn request(store: &dyn Records) -> Result<Breadcrumb, StoreError> {
//!     let request: NewBreadcrumb = serde_json::from_value(json!({
//!         "title": "Six times seven",
//!         "schema_name": "tool.request.v1",
//!         "tags": ["workspace:demo"],
//!         "context": {"tool": "calculator", "input": {"expression": "6 * 7"}},
//!     }))
//!     .map_err(|error| StoreError::Internal(error.to_string()))?;
//!     request.check()?; // A store checks this too. The error has every violation.
//!     let created = store.create(request, Some("request-1")).await?;
//!     store.get(created.id).await
//! }
//! ```

mod a2a_push;
mod acl;
mod allowed_tools;
mod annotations;
mod audit;
mod breadcrumb;
mod breadcrumb_query;
mod call;
mod call_history;
pub mod catalog;
mod deprecation;
mod deserialize_from_object;
mod egress_log;
mod embedder;
mod event;
mod event_context;
mod exact_numbers;
mod example;
mod fetch;
pub mod foreign_text;
mod fuel;
mod guide;
mod hex;
mod host;
mod hygiene;
mod identity;
mod json_size;
mod large_result;
pub mod limits;
mod matcher;
mod named_records;
mod names;
mod near_miss;
mod nearest;
mod new_breadcrumb;
mod permissions;
mod private_host;
pub mod profile;
mod public_address;
mod quotas;
mod runner_protocol;
mod runner_report;
mod search;
mod secret;
mod secret_unavailable;
mod selector;
mod store;
mod token;
mod tool_creation;
mod tool_definition;
mod tool_filter;
mod tool_log;
mod tool_request;
mod tool_response;
mod tool_shadow;
mod tool_source;
mod traceparent;
mod trigger_event;
mod ttl;
mod typed_json;
mod value_set;
mod version_pin;
mod violations;
mod webhook;

pub use a2a_push::{PUSH_HASH, PushToken, WOKEN_AT, push_path};
pub use acl::{AclChange, AclEntry, Action};
pub use allowed_tools::{AllowedTools, AllowedToolsChange};
pub use annotations::Annotations;
pub use audit::{AUDIT_ACTIONS, AuditEntry, AuditQuery, MAX_AUDIT_ENTRIES, check_audit_action};
pub use breadcrumb::{Breadcrumb, BreadcrumbListItem, BreadcrumbVersion, BreadcrumbView, Sensitivity, Visibility};
pub use breadcrumb_query::{BreadcrumbQuery, DEFAULT_PAGE, MAX_PAGE};
pub use call::{
    AnsweredTerms, Call, CallState, Claim, ClaimRequest, ClaimTerms, Lease, LeaseState, LeaseStatus, Release,
};
pub use call_history::{
    CallAttempt, CallDetails, CallInterval, CallPage, CallQuery, CallStage, CallStats, CallStatsQuery, CallSummary,
    MAX_CALLS, MAX_STATS_SECONDS, Percentiles, ToolStats, UnfinishedCalls,
};
pub use catalog::{Catalog, CatalogEntry, ModelCall, Registration, ToolFormat, Waiting};
pub use deprecation::Deprecation;
pub use egress_log::{EgressEntry, EgressOutcome, EgressQuery, EgressRecord, MAX_EGRESS_ENTRIES, MAX_EGRESS_REASON};
pub use embedder::{EmbedError, EmbedPriority, Embedder, EmbeddingModel};
pub use event::{
    Event, EventKind, EventNumber, EventSink, EventStream, SubscribeOptions, SubscriptionItem, SubscriptionStream,
};
pub use event_context::EventContext;
pub use exact_numbers::{check_javascript_numbers, check_numbers};
pub use example::{
    Example, ExampleRecord, ExpectedFailure, ExpectedRequest, GivenFailure, GivenResponse, HttpExchange, StatedCall,
};
pub use fetch::{BodyStream, FetchRequest, FetchResponse, OpError, Redirect};
pub use fuel::{Fuel, OutOfFuel};
pub use guide::Guide;
pub use hex::hex;
pub use host::{Host, HostEntry, HostError, is_localhost, is_this_machine, is_web_port};
pub use hygiene::{HygieneRun, HygieneStats};
pub use identity::{
    AgentInfo, AgentRegistration, AgentStatus, Identity, MEMORY_OF_CALLER_TAG, NewAgent, NewAgentKey, Role,
    TRIGGERED_BY_TAG, Tenancy, TenantInfo, TokenRevocation, WhichTokens,
};
pub use json_size::{json_bytes, object_bytes};
pub use large_result::{LARGE_RESULT_READERS, LargeResult, LargeResultKind, LargeResultMarker, model_text};
pub use limits::{
    LimitName, LimitReached, Limits, MAX_BREADCRUMBS_WRITTEN, MAX_BYTES_WRITTEN, MAX_DESCENDANTS, MAX_TIMEOUT_MS,
};
pub use matcher::Matcher;
pub use named_records::{named_records, oldest_by_name};
pub use near_miss::intended_field;
pub use nearest::nearest_names;
pub use new_breadcrumb::{BreadcrumbChanges, Created, MAX_TAGS, NewBreadcrumb};
pub use permissions::{AccessList, NetPermission, Permissions};
pub use private_host::{PrivateHost, PrivateHostError};
pub use profile::{Profile, Profiles};
pub use public_address::{Purpose, reached_address, special_purpose};
pub use quotas::{TenantCount, TenantQuotas, TenantUsage};
pub use runner_protocol::{OLDEST_RUNNER_PROTOCOL, RUNNER_PROTOCOL, RUNNER_PROTOCOL_HEADER, check_runner_protocol};
pub use runner_report::{
    LiveRunner, MAX_ALLOWED_HOSTS, RUNNERS_WAIT, ReportReply, RunnerDrain, RunnerInfo, RunnerReport, RunnerSlots,
    SlotCount,
};
pub use search::{MAX_DIMENSIONS, MAX_FOUND, MAX_QUESTION, Search, SearchMode, SearchResults};
pub use secret::{
    GrantedTool, MAX_SECRET_BYTES, MAX_SECRET_HOSTS, MIN_OPAQUE_BYTES, NewSecret, SecretChanges, SecretInfo,
    check_opaque_length, is_secret_name, secret_hosts,
};
pub use secret_unavailable::SecretUnavailable;
pub use selector::{ContextMatch, ContextPath, MAX_SELECTORS, MatchOp, Selector, SelectorSubscription};
pub use store::{
    AuditLog, Breadcrumbs, BreadcrumbsDecorator, CallHistory, CallQueue, ChangeCheck, DESCENDANTS, EgressLog, Events,
    Records, Rights, Runners, Secrets, Selectors, StoreError, TenancyDecorator,
};
pub use token::{MAX_TOKENS, TokenInfo, TokenQuery, TokenRecord};
pub use tool_creation::{CREATE_TOOL, CreationMode, DRAFT_TAG, PublishRule, RequestKind, TEST_TOOL, is_draft};
pub use tool_definition::{
    Bootstrap, BootstrapMode, CURATORS_TOOL_TAG, Implementation, Isolation, Language, NativeImplementation, ToolCode,
    ToolDefinition, is_tool_name,
};
pub use tool_filter::ToolFilter;
pub use tool_log::{LogLine, ToolLog};
pub use tool_request::{MAX_DEADLINE_MS, RESULT_CHARS, ToolRequest};
pub use tool_response::{ErrorCode, ResponseStatus, ToolFailure, ToolResponse};
pub use tool_shadow::{ENOUGH_SAME, ShadowReport, is_shadow_tag, shadow_share, shadow_tag};
pub use tool_source::ToolSource;
pub use traceparent::{NoTraceparent, Traceparent};
pub use trigger_event::TriggerEvent;
pub use ttl::{Expiry, MAX_TTL_READS, MAX_TTL_SECONDS, TimeToLive, TtlType, ttl_seconds};
pub use typed_json::{read_typed, type_violation};
pub use value_set::ValueSet;
pub use version_pin::VersionPin;
pub use violations::{MAX_RECORD_BYTES, MAX_VIOLATIONS, Violation, Violations};
pub use webhook::{
    CallWebhook, DeadLetter, Deliveries, Delivery, DeliveryClaimRequest, DeliveryOfCall, DeliveryOutcome,
    MAX_CALL_WEBHOOKS, MAX_WEBHOOKS, NewWebhook, Retention, WebhookInfo, WebhookSecret, WebhookState, Webhooks,
    check_webhook_host,
};

/// The schema names that the runtime itself reads or writes.
pub mod schema_names {
    /// Whether a schema name is one of these, or another one of tools, memory, schedules, schemas,
    /// MCP servers, A2A or guides. The function `is_runtime_schema` of the database must agree.
    pub fn is_of_runtime(name: &str) -> bool {
        ["tool.", "memory.", "schedule.", "schema.", "mcp.", "a2a.", "system.guide."]
            .iter()
            .any(|kind| name.starts_with(kind))
    }

    /// Whether records of this schema are tools that runners offer.
    pub fn is_tool(schema_name: Option<&str>) -> bool {
        matches!(schema_name, Some(TOOL_CODE | TOOL_V1))
    }

    /// A call that an agent asks for.
    pub const TOOL_REQUEST: &str = "tool.request.v1";
    /// The one final response to a request.
    pub const TOOL_RESPONSE: &str = "tool.response.v1";
    /// A request to create or change a tool.
    pub const TOOL_CREATE_REQUEST: &str = "tool.create.request.v1";
    /// The one final response to such a request.
    pub const TOOL_CREATE_RESPONSE: &str = "tool.create.response.v1";
    /// A tool whose code is in the record.
    pub const TOOL_CODE: &str = "tool.code.v1";
    /// A tool that a native executor runs.
    pub const TOOL_V1: &str = "tool.v1";
    /// A tool that was retired: no runner offers it, and its versions are kept.
    pub const TOOL_RETIRED: &str = "tool.retired.v1";
    /// The errors that a runner found in a tool definition, for its author.
    pub const TOOL_ERROR: &str = "tool.error.v1";
    /// The tools that are offered. Runners write and update these records.
    pub const TOOL_CATALOG: &str = "tool.catalog.v1";
    /// The native tools that a live runner is configured for, for the other runners of the tenant.
    pub const TOOL_RUNNER: &str = "tool.runner.v1";
    /// What came of the runs of a tool's shadow. Runners write and update these records.
    pub const TOOL_SHADOW: &str = "tool.shadow.v1";
    /// The progress of a running call.
    pub const TOOL_PROGRESS: &str = "tool.progress.v1";
    /// Console lines of a call with `debug`.
    pub const TOOL_LOG: &str = "tool.log.v1";
    /// A guide to a family of tools, for agents.
    pub const TOOL_GUIDE: &str = "tool.guide.v1";
    /// One entry in working memory.
    pub const MEMORY_ENTRY: &str = "memory.entry.v1";
    /// A scheduled task.
    pub const SCHEDULE: &str = "schedule.v1";
    /// What records of one schema name contain, how long they are kept, and how models see them.
    pub const SCHEMA_DEFINITION: &str = "schema.def.v1";
    /// An MCP server whose tools are offered.
    pub const MCP_SERVER: &str = "mcp.server.v1";
    /// The state of an MCP server. Runners write and update these records.
    pub const MCP_STATUS: &str = "mcp.status.v1";
    /// A changed definition of an MCP server's tool, which waits until a curator accepts it.
    pub const MCP_CHANGE: &str = "mcp.change.v1";
    /// Another agent that tools can ask.
    pub const A2A_AGENT: &str = "a2a.agent.v1";
    /// A task that another agent does.
    pub const A2A_TASK: &str = "a2a.task.v1";
    /// Which tools a tenant offers to other agents.
    pub const A2A_CARD: &str = "a2a.card.v1";
    /// One firing of a scheduled task.
    pub const SCHEDULE_FIRED: &str = "schedule.fired.v1";
}
