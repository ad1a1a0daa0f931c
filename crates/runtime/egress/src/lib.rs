//! The egress gate: the only way from a tool or a webhook to the network. It checks the tool's
//! permission before it resolves a name, checks every address before it connects, and follows
//! redirects itself, so that each passes the same checks. The values of a call's secrets are in its
//! [`Vault`]; the gate puts them into requests and redacts them from responses.
//!
//! It deliberately does not know tools, calls or the sandbox. The sender of a request names its
//! tenant in an [`EgressContext`].
//!
//! Begin with `fetch.rs` (one fetch) and `vault/mod.rs`.
//!
//! # Example
//! A tool reaches only the hosts that its permission names, on public addresses:
//! ```no_run
//! use rcrt_breadcrumb::{FetchRequest, NetPermission, Redirect};
//! use rcrt_egress::{Connections, Egress, EgressContext, EgressOptions, NetRules, Vault};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let egress = Egress::new(EgressOptions::default())?;
//! let rules = NetRules::read(&NetPermission::Listed(vec!["api.example.com".into()]))?;
//! let (vault, connections) = (Vault::default(), Connections::default());
//! let context =
//!     EgressContext { tool: "weather", rules: &rules, vault: &vault, connections: &connections, origin: None, observer: None };
//! let request = FetchRequest {
//!     method: "GET".into(),
//!     url: "https://api.example.com/today".into(),
//!     headers: Vec::new(),
//!     redirect: Redirect::Follow,
//! };
//! let response = egress.fetch(context, request, None).await?;
//! # let _ = response.status;
//! # Ok(())
//! # }
//! ```

mod address_check;
mod body;
mod connections;
mod decoding;
mod denied_host;
mod fetch;
mod headers;
mod interfaces;
mod log;
mod resolver;
mod rules;
mod secrets;
mod span;
mod target;
pub mod trace;
mod vault;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use rcrt_breadcrumb::OpError;
use rustls::pki_types::CertificateDer;

pub use connections::Connections;
pub use denied_host::{DeniedHost, DeniedHostError};
pub use interfaces::{Interfaces, SystemInterfaces};
pub use log::{EgressRecorder, Logged, Origin, RequestObserver};
pub use rcrt_breadcrumb::{PrivateHost, PrivateHostError};
pub use resolver::{Resolver, SystemResolver};
pub use rules::NetRules;
pub use vault::{HeldSecret, Redaction, Unsearchable, Vault};

#[derive(Debug, Clone)]
pub struct EgressOptions {
    /// Hosts that may have non-public addresses. Default: none.
    pub allowed_private: Vec<PrivateHost>,
    /// Hosts that no tool reaches, whatever else allows them. Default: none.
    pub denied: Arc<[DeniedHost]>,
    /// Where each request is logged. Default: only in the program's log.
    pub log: Option<EgressRecorder>,
    /// Bytes of a request's body. Default 10 MiB.
    pub max_request_bytes: u64,
    /// Bytes of a response's body, both encoded and decoded. Default 10 MiB.
    pub max_response_bytes: u64,
    /// Bytes of a request's body that are buffered in case a redirect needs them again. Default 1
    /// MiB.
    pub max_replay_bytes: usize,
    /// Bytes of request bodies that are buffered for one call at the same time. Default 32 MiB.
    pub max_held_bytes: usize,
    /// The same for all calls together. A call that buffers no more than `max_replay_bytes` can
    /// exceed it, so that no call blocks the others. Default 256 MiB.
    pub max_held_by_all_bytes: usize,
    /// Bytes of all header fields of a request or a response, names and values. Default 64 KiB.
    pub max_header_bytes: usize,
    /// Header fields of a request or a response. Default 128.
    pub max_header_fields: usize,
    /// To resolve a name. Default 5 seconds.
    pub lookup_timeout: Duration,
    /// From resolving the name until the connection is writable, TLS included. Default 10 seconds.
    pub connect_timeout: Duration,
    /// From the last chunk of a request's body to the head of the response. Default 2 minutes,
    /// because some services compute for long.
    pub head_timeout: Duration,
    /// From one chunk of a response's body to the next. Default 1 minute.
    pub idle_timeout: Duration,
    /// A whole fetch, redirects and bodies included. Default 15 minutes, the longest possible call.
    pub total_timeout: Duration,
    /// Certificate authorities (DER) in addition to the machine's own.
    pub more_authorities: Vec<CertificateDer<'static>>,
    /// Lists the addresses that are refused as the runner's own. Default: the system's interfaces.
    pub interfaces: Arc<dyn Interfaces>,
}

impl Default for EgressOptions {
    fn default() -> Self {
        Self {
            allowed_private: Vec::new(),
            denied: Arc::default(),
            log: None,
            max_request_bytes: 10 * 1024 * 1024,
            max_response_bytes: 10 * 1024 * 1024,
            max_replay_bytes: 1024 * 1024,
            max_held_bytes: 32 * 1024 * 1024,
            max_held_by_all_bytes: 256 * 1024 * 1024,
            max_header_bytes: 64 * 1024,
            max_header_fields: 128,
            lookup_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_mins(2),
            idle_timeout: Duration::from_mins(1),
            total_timeout: Duration::from_millis(rcrt_breadcrumb::MAX_TIMEOUT_MS),
            more_authorities: Vec::new(),
            interfaces: Arc::new(SystemInterfaces),
        }
    }
}

/// On whose behalf a fetch is made: one call of one tool.
#[derive(Clone, Copy)]
pub struct EgressContext<'a> {
    /// The tool's name, as in [`PrivateHost`].
    pub tool: &'a str,
    pub rules: &'a NetRules,
    pub vault: &'a Vault,
    /// Used by this call only.
    pub connections: &'a Connections,
    /// `None`: the request is not in any tenant's egress log.
    pub origin: Option<Origin>,
    /// What receives each request, besides the log.
    pub observer: Option<&'a Arc<dyn RequestObserver>>,
}

/// The gate could not be built.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    #[error("the resolver cannot be created: {0}")]
    Resolver(String),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// The egress gate, one per process. It keeps nothing between calls: connections belong to a call's
/// [`Connections`].
pub struct Egress {
    /// Bytes of request bodies that are buffered for all calls.
    held: AtomicUsize,
    options: EgressOptions,
    resolver: Arc<dyn Resolver>,
    tls: rustls::ClientConfig,
}

impl Egress {
    /// A gate with the machine's own resolver.
    pub fn new(options: EgressOptions) -> Result<Self, EgressError> {
        let resolver = SystemResolver::new().map_err(EgressError::Resolver)?;
        Self::with_resolver(options, &(Arc::new(resolver) as Arc<dyn Resolver>))
    }

    /// A gate with this resolver. Its answers are checked like all others.
    pub fn with_resolver(options: EgressOptions, resolver: &Arc<dyn Resolver>) -> Result<Self, EgressError> {
        let tls = connections::tls(&options)?;
        Ok(Self { held: AtomicUsize::new(0), options, resolver: resolver.clone(), tls })
    }
}

/// What the fetch standard calls a network error.
fn type_error(message: impl Into<String>) -> OpError {
    OpError::new("TypeError", message)
}
