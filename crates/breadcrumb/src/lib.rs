//! The words of the runtime: what a breadcrumb, a selector, an event, a tool, a request, a response, a call and its
//! lease are, and [`Breadcrumbs`], the store as everybody sees it.
//!
//! This crate does no I/O. It deliberately does not know Postgres, HTTP, V8, or who is listening: the store and the
//! HTTP client implement [`Breadcrumbs`], the server and the runner only ever see the trait.

mod breadcrumb;
mod call;
mod check;
mod event;
mod identity;
mod limits;
mod permissions;
mod secret;
mod selector;
mod store;
mod tool_definition;
mod tool_request;
mod tool_response;

pub use breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, BreadcrumbView, Created,
    DEFAULT_PAGE, MAX_PAGE, NewBreadcrumb, Sensitivity, TextSearch, TtlType, Visibility,
};
pub use call::{Call, CallState, Claim, ClaimRequest, HeldLease, Lease, LeaseStatus, Release};
pub use check::{MAX_RECORD_BYTES, Violation, Violations};
pub use event::{Event, EventKind, EventNumber, EventStream};
pub use identity::{AgentInfo, Identity, NewAgent, NewAgentKey, Role, Tenancy, TenantInfo};
pub use limits::{Limits, MAX_TIMEOUT_MS};
pub use permissions::{Grant, NetPermission, Permissions};
pub use secret::{NewSecret, SecretInfo};
pub use selector::{ContextMatch, ContextPath, MatchOp, Selector};
pub use store::{Breadcrumbs, StoreError};
pub use tool_definition::{
    Bootstrap, BootstrapMode, Example, Implementation, Isolation, Language, NativeImplementation, ToolCode,
    ToolDefinition,
};
pub use tool_request::ToolRequest;
pub use tool_response::{ErrorCode, ResponseStatus, ToolFailure, ToolResponse};

/// The schema names that the runtime itself reads or writes.
pub mod schema_names {
    /// A call that an agent asks for.
    pub const TOOL_REQUEST: &str = "tool.request.v1";
    /// The one terminal answer to a request.
    pub const TOOL_RESPONSE: &str = "tool.response.v1";
    /// A tool whose code stands in the record.
    pub const TOOL_CODE: &str = "tool.code.v1";
    /// A tool that a native executor runs.
    pub const TOOL_LEGACY: &str = "tool.v1";
    /// What a runner found wrong with a tool definition, for its author.
    pub const TOOL_ERROR: &str = "tool.error.v1";
}
