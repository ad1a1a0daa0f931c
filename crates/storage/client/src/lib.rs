//! The trait `Breadcrumbs` over HTTP and server-sent events, for programs on another machine than
//! the store.
//!
//! This crate handles lost connections: it repeats requests that are safe to repeat, resumes event
//! streams where they broke off, and renews tokens before they expire. It deliberately does not
//! know the code of the server or of the store. The wire types are those of the crate `breadcrumb`
//! and of the problem documents.
//!
//! Begin with `request.rs` (one request and its retries), `breadcrumbs.rs` (the trait) and
//! `event_stream.rs`.
//!
//! # Guide
//! Create a [`Client`] from an address and [`Credentials`]: a token, or an agent's key with which
//! tokens are fetched and renewed. It implements the trait `Breadcrumbs`, so code written for a
//! store works with it: `create`, `get`, `update` with the version that was read, `list`, `search`,
//! `events`, secrets, grants, selectors. Operations that only a server has are methods of
//! [`Client`]: a tool call in one round trip ([`Client::invoke`]), the catalog ([`Client::tools`]),
//! agents, health.
//!
//! Every method returns a `StoreError`. `is_retryable` says whether the same request can succeed
//! later. The client itself repeats what is safe to repeat: reads, deletions, and creates and calls
//! (each has an `Idempotency-Key`). It does not repeat an update whose response was lost: read the
//! record again.
//!
//! ## Call a tool
#![doc = concat!("```no_run\n", include_str!("../examples/call_a_tool.rs"), "```")]
//! A model's call of a tool is read, and its message written, by [`rcrt_breadcrumb::ModelCall`].
//!
//! ## Follow events
//! Each event once, in order, across lost connections and restarts of the server.
#![doc = concat!("```no_run\n", include_str!("../examples/follow_events.rs"), "```")]

mod agents;
mod breadcrumbs;
mod credentials;
mod event_stream;
mod problem;
mod request;
mod revocation;
mod sse;
mod tools;
mod webhooks;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rcrt_breadcrumb::{StoreError, Violations, is_this_machine};
use url::Url;
use uuid::Uuid;

pub use agents::{Health, SignInTicket, TenantDetails, TenantSettings, Token, TokenRequest};
pub use credentials::Credentials;
pub use problem::refused_for_now;
pub use revocation::{Revoke, Revoked};
pub use tools::{FoundTools, Invocation, Invoked, PublishedTool, ScoredTool};

use credentials::Tokens;

/// The timeout for a connection.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A server's records, as one agent sees them. Clones share the connections and the token.
#[derive(Clone)]
pub struct Client {
    /// An invalid address, or a TLS failure on this machine, is the error of every call.
    http: Result<reqwest::Client, StoreError>,
    base_url: Url,
    tokens: Arc<Tokens>,
    /// The agent on whose behalf a runner's client acts.
    on_behalf_of: Option<Uuid>,
    /// When every request must have ended.
    deadline: Option<Instant>,
}

impl Client {
    /// A client of the server at `base_url` (a path in it is prepended to the server's paths). Does
    /// not connect yet. If the address is not http or https, every call fails with
    /// [`StoreError::Invalid`].
    pub fn new(base_url: Url, credentials: Credentials) -> Self {
        let tokens = Arc::new(Tokens::new(credentials));
        Self { http: http(&base_url), base_url, tokens, on_behalf_of: None, deadline: None }
    }

    /// The same client, whose requests end at `deadline` at the latest, with the reason why they
    /// had no response. Otherwise each attempt has at least a minute. Event streams do not end.
    #[must_use]
    pub fn with_deadline(&self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self.clone() }
    }

    /// `time`, or what is left until the deadline if that is less.
    fn bounded(&self, time: Duration) -> Duration {
        self.deadline.map_or(time, |deadline| time.min(deadline.saturating_duration_since(Instant::now())))
    }

    fn http(&self) -> Result<&reqwest::Client, StoreError> {
        self.http.as_ref().map_err(StoreError::clone)
    }

    fn url(&self, path: &[&str]) -> Result<Url, StoreError> {
        // They would make another path.
        if let Some(part) = path.iter().find(|part| matches!(part.trim(), "" | "." | "..")) {
            let message = format!("must not be empty, . or ..; it is {part:?}");
            return Err(StoreError::Invalid(Violations::one("name", message)));
        }
        let mut url = self.base_url.clone();
        url.set_query(None);
        url.path_segments_mut()
            .map_err(|()| StoreError::Internal("the server's address cannot have a path".into()))?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base_url", &self.base_url.as_str()).finish_non_exhaustive()
    }
}

fn http(base_url: &Url) -> Result<reqwest::Client, StoreError> {
    if !matches!(base_url.scheme(), "http" | "https") || base_url.host().is_none() {
        let message = format!("{base_url} is not the address of a server; it must begin with http:// or https://");
        return Err(StoreError::Invalid(Violations::one("server", message)));
    }
    let mut http = reqwest::Client::builder()
        .user_agent(concat!("rcrt/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME)
        .tcp_keepalive(Duration::from_secs(30))
        // The token must not be sent to another server.
        .redirect(reqwest::redirect::Policy::none());
    if is_this_machine(base_url) {
        http = http.no_proxy();
    }
    http.build().map_err(|error| StoreError::Internal(format!("no HTTP client: {error}")))
}
