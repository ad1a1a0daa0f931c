//! The one gate through which tools reach the network. It reads the tool's permission before it asks for a name,
//! checks every address before it is dialled, and follows redirects itself, so that each goes through the same gate.

mod address;
mod body;
mod exchange;
mod headers;
mod host;
mod resolver;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use sandbox::OpError;

pub use address::special_purpose;
pub use host::{Host, HostEntry};
pub use resolver::{Resolver, SystemResolver};
pub use rules::NetRules;

use resolver::CheckedResolver;

#[derive(Debug, Clone)]
pub struct EgressOptions {
    /// Hosts that may resolve to non-public addresses; without a port on any port. It opens no door by itself: the
    /// tool's `permissions.net` must list the host too.
    pub allowed_private: Vec<HostEntry>,
    /// Bytes of a request's body. Default 10 MiB.
    pub max_request_bytes: u64,
    /// Bytes of an answer's body, decoded. Default 10 MiB.
    pub max_response_bytes: u64,
    /// Bytes of a request's body that are kept for a redirect that asks for it again. Default 1 MiB.
    pub max_replay_bytes: usize,
    /// Default 10 seconds.
    pub connect_timeout: Duration,
}

impl Default for EgressOptions {
    fn default() -> Self {
        Self {
            allowed_private: Vec::new(),
            max_request_bytes: 10 * 1024 * 1024,
            max_response_bytes: 10 * 1024 * 1024,
            max_replay_bytes: 1024 * 1024,
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// The gate could not be built.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    #[error("the machine's name service cannot be used: {0}")]
    Resolver(String),
    #[error("the HTTP client cannot be built: {0}")]
    Client(#[from] reqwest::Error),
}

/// The gate. One for a process: it keeps connections open between calls.
pub struct Egress {
    options: EgressOptions,
    /// Refuses every non-public address.
    public: reqwest::Client,
    /// For the operator's allowed hosts alone. A client of its own, so that a connection to the inside is never found
    /// in the pool of the other.
    private: reqwest::Client,
}

impl Egress {
    /// A gate on the machine's own name service.
    pub fn new(options: EgressOptions) -> Result<Self, EgressError> {
        let resolver = SystemResolver::new().map_err(EgressError::Resolver)?;
        Self::with_resolver(options, &(Arc::new(resolver) as Arc<dyn Resolver>))
    }

    /// A gate that asks this resolver. Its answers are checked like any.
    pub fn with_resolver(options: EgressOptions, resolver: &Arc<dyn Resolver>) -> Result<Self, EgressError> {
        let client = |admits_private| {
            let build = |builder: reqwest::ClientBuilder| {
                builder
                    .dns_resolver(Arc::new(CheckedResolver { resolver: resolver.clone(), admits_private }))
                    .no_proxy()
                    .redirect(reqwest::redirect::Policy::none())
                    .referer(false)
                    .connect_timeout(options.connect_timeout)
                    .pool_idle_timeout(Duration::from_secs(30))
                    .pool_max_idle_per_host(8)
                    .user_agent(concat!("rcrt/", env!("CARGO_PKG_VERSION")))
                    .build()
            };
            build(reqwest::Client::builder()).or_else(|error| {
                // A machine without certificate authorities still has http, and https fails with the reason.
                tracing::warn!(%error, "no certificate authorities were found; tools cannot use https");
                build(reqwest::Client::builder().tls_certs_only([]))
            })
        };
        let (public, private) = (client(false)?, client(true)?);
        Ok(Self { options, public, private })
    }
}

/// What the fetch standard calls a network error.
fn type_error(message: impl Into<String>) -> OpError {
    OpError::new("TypeError", message)
}
