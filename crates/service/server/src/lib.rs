//! An HTTP server for any store of breadcrumbs: routes, server-sent events, tokens and roles,
//! problem documents, metrics, and an OpenAPI description made from the routes.
//!
//! It deliberately does not know Postgres or any other store (only the traits [`Tenancy`] and
//! `Breadcrumbs`), nor runners, tools and V8. To the server a call is a record and a lease. Each
//! route is documented at its handler, the route table says who can call it, and `http/problem.rs`
//! has the text of every error.
//!
//! Begin with `routes/mod.rs` (the route table), `auth/access.rs` (who can call a route) and
//! `routes/breadcrumbs.rs` (typical handlers).
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//!
//! use rcrt_breadcrumb::Tenancy;
//! use rcrt_server::{AuthMode, Server, ServerError, ServerOptions, TokenKey};
//! use tokio::net::TcpListener;
//! use tokio_util::sync::CancellationToken;
//!
//! async fn serve(store: Arc<dyn Tenancy>, key: &[u8], stop: CancellationToken) -> Result<(), ServerError> {
//!     let listener = TcpListener::bind("127.0.0.1:8081").await?;
//!     let options = ServerOptions::new(listener, AuthMode::Keys, TokenKey::from_bytes(key)?);
//!     Server::new(options, store)?.run(stop).await;
//!     Ok(())
//! }
//! ```

mod auth;
mod http;
mod limits;
mod openapi;
mod readiness;
mod response_waiters;
mod routes;
mod streamed_calls;
mod tool_searches;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Extension,
    middleware::{from_fn, from_fn_with_state},
    response::IntoResponse,
};
use futures::future::BoxFuture;
use rcrt_breadcrumb::{PrivateHost, Tenancy};
use rcrt_mcp_server::HttpEndpoint;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;

use http::json_body::BodyLimit;

pub use auth::host_policy::AllowedHosts;
pub use auth::token::{MIN_KEY_BYTES, TokenError, TokenId, VerifiedToken};
pub use auth::token_keys::TokenKey;
pub use http::cors::AllowedOrigins;
pub use http::json_body::{BODY_TIME, MAX_BODY_BYTES};
pub use http::metrics::install as install_metrics;
pub use http::metrics_listener::{ReadyCheck, serve_metrics};
pub use http::public_url::PublicUrl;
pub use http::streams::StreamOptions;
pub use limits::{InvalidRate, Rate, ServerLimits};

use auth::agent_cache::AgentCache;
use auth::host_policy::HostPolicy;
use auth::token_uses::TokenUses;
use http::concurrency_limit::ConcurrencyLimit;
use http::metrics::MetricsToken;
use http::public_url::PublicLinks;
use http::rate_limit::RateLimiter;
use http::streams::Streams;
use readiness::Readiness;
use response_waiters::ResponseWaiters;
use routes::rcrt_compat::RcrtCompat;
use tool_searches::ToolSearches;

/// Which callers get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// Callers that prove an agent's key.
    Keys,
    /// Every caller, for unmodified clients of RCRT. Beyond a loopback address this needs
    /// [`ServerOptions::hosts`] or [`ServerOptions::rcrt_compat`], and only callers of private
    /// networks are served.
    Open,
}

pub struct ServerOptions {
    /// Already bound, so that the caller knows the address and gets the error if it is in use.
    pub listener: TcpListener,
    pub auth: AuthMode,
    pub token_key: TokenKey,
    pub streams: StreamOptions,
    pub limits: ServerLimits,
    /// The origins whose pages can call this server.
    pub origins: AllowedOrigins,
    /// The names, in addition to those of loopback, of a server with open auth, and of `/mcp` on a
    /// loopback address.
    pub hosts: AllowedHosts,
    /// Gives access to `/metrics` with the names of every tenant's tools, as an operator's token
    /// does.
    pub metrics_token: Option<String>,
    /// Accepts the requests of RCRT's clients as RCRT does, including a token in the URL of an
    /// event stream. A stream stays open after its token has expired (but not after a revocation or
    /// the deletion of its agent). See docs/moving-from-rcrt.md. Default: false.
    pub rcrt_compat: bool,
    /// The URL by which clients reach this server through a proxy, for the links in responses.
    pub public_url: Option<PublicUrl>,
    /// The private hosts that tools and webhooks can reach. A webhook for another one is refused.
    pub allowed_private: Vec<PrivateHost>,
    /// The share of the meaning in the score of a tool that is searched for, from 0 to 1; the rest
    /// is that of its words.
    pub meaning_weight: f64,
}

impl ServerOptions {
    /// For programs only: no page of another origin can call the server.
    pub fn new(listener: TcpListener, auth: AuthMode, token_key: TokenKey) -> Self {
        let (streams, limits, origins, hosts) = Default::default();
        Self {
            listener,
            auth,
            token_key,
            streams,
            limits,
            origins,
            hosts,
            metrics_token: None,
            rcrt_compat: false,
            public_url: None,
            allowed_private: Vec::new(),
            meaning_weight: rcrt_tool_search::MEANING_WEIGHT,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(
        "open auth issues a token to every caller, so it needs a loopback address such as 127.0.0.1; {address} is not \
         one. Listen on a loopback address, use keys, or allow the host names of the server"
    )]
    OpenAuthBeyondLoopback { address: SocketAddr },
    #[error("open auth issues a token to every caller, so list each allowed origin instead of *")]
    AnyOriginWithOpenAuth,
    #[error("{text:?} is not an origin; expected for example {right}, or * for all")]
    NoOrigin { text: String, right: String },
    #[error("{text:?} is not a host name; expected for example rcrt, rcrt.internal or 10.0.0.5, without a port")]
    NoHostName { text: String },
    #[error(
        "{text:?} is not the public URL of a server; expected for example https://tools.example.com or \
         https://example.com/rcrt"
    )]
    NoPublicUrl { text: String },
    #[error("the token key has {bytes} bytes; it needs at least {MIN_KEY_BYTES}")]
    WeakTokenKey { bytes: usize },
    #[error("a token cannot be signed: {0}")]
    Sign(String),
    #[error("the listener's address is unknown: {0}")]
    Listener(#[from] std::io::Error),
}

/// An HTTP server that is ready to run.
pub struct Server {
    listener: TcpListener,
    limits: ServerLimits,
    state: ServerState,
    origins: Arc<AllowedOrigins>,
    /// Set in open mode.
    host_policy: Option<Arc<HostPolicy>>,
    public_links: Option<Arc<PublicLinks>>,
}

/// The OpenAPI 3.1 document of this version, as `GET /openapi.json` returns it, but indented.
pub fn api_description() -> String {
    openapi::in_lines()
}

/// The state that handlers share.
#[derive(Clone)]
struct ServerState(Arc<Shared>);

struct Shared {
    tenancy: Arc<dyn Tenancy>,
    auth: AuthMode,
    rcrt_compat: bool,
    token_key: TokenKey,
    agent_cache: AgentCache,
    token_uses: TokenUses,
    response_waiters: ResponseWaiters,
    mcp: HttpEndpoint,
    /// The hosts of `/mcp`. Set on a loopback address with keys; with open auth, all routes have a
    /// policy.
    mcp_hosts: Option<AllowedHosts>,
    origins: Arc<AllowedOrigins>,
    streams: Arc<Streams>,
    stream_options: StreamOptions,
    rate_limiter: RateLimiter,
    concurrency_limit: Arc<ConcurrencyLimit>,
    readiness: Readiness,
    metrics_token: Option<MetricsToken>,
    allowed_private: Vec<PrivateHost>,
    meaning_weight: f64,
    tool_searches: ToolSearches,
    public_url: Option<PublicUrl>,
    /// Cancelled when the server accepts no new work.
    draining: CancellationToken,
    /// The callers that wait for a response. They can finish before the shutdown.
    invocations: TaskTracker,
    /// Cancelled at the shutdown: closes the event streams, which would block it forever, and stops
    /// waiting for responses.
    shutdown: CancellationToken,
}

impl std::ops::Deref for ServerState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Server {
    /// Refuses open auth on an address that others can reach, unless the server's host names there
    /// are given.
    pub fn new(options: ServerOptions, tenancy: Arc<dyn Tenancy>) -> Result<Self, ServerError> {
        let address = options.listener.local_addr()?;
        let is_beyond = !address.ip().is_loopback();
        if options.auth == AuthMode::Open && is_beyond && options.hosts.is_empty() && !options.rcrt_compat {
            return Err(ServerError::OpenAuthBeyondLoopback { address });
        }
        if options.auth == AuthMode::Open && options.origins.is_any() {
            return Err(ServerError::AnyOriginWithOpenAuth);
        }
        http::metrics::install();
        let shutdown = CancellationToken::new();
        let origins = Arc::new(options.origins);
        let mcp_hosts = (options.auth == AuthMode::Keys && !is_beyond)
            .then(|| options.hosts.clone().with_public(options.public_url.as_ref()));
        let state = ServerState(Arc::new(Shared {
            agent_cache: AgentCache::new(Arc::clone(&tenancy)),
            token_uses: TokenUses::default(),
            readiness: Readiness::new(Arc::clone(&tenancy)),
            tenancy,
            auth: options.auth,
            rcrt_compat: options.rcrt_compat,
            token_key: options.token_key,
            streams: Arc::default(),
            stream_options: options.streams,
            response_waiters: ResponseWaiters::new(shutdown.clone()),
            mcp: HttpEndpoint::new(shutdown.clone()),
            mcp_hosts,
            origins: Arc::clone(&origins),
            rate_limiter: RateLimiter::new(&options.limits),
            concurrency_limit: ConcurrencyLimit::new(options.limits.max_requests_per_tenant),
            metrics_token: options.metrics_token.as_deref().map(MetricsToken::new),
            allowed_private: options.allowed_private,
            meaning_weight: options.meaning_weight,
            tool_searches: ToolSearches::default(),
            public_url: options.public_url.clone(),
            draining: CancellationToken::new(),
            invocations: TaskTracker::new(),
            shutdown,
        }));
        let host_policy = (options.auth == AuthMode::Open).then(|| {
            let dotless = is_beyond && options.rcrt_compat;
            Arc::new(HostPolicy { hosts: options.hosts, dotless, only_private: is_beyond })
        });
        let public_links = options.public_url.map(PublicLinks::new);
        Ok(Self { listener: options.listener, limits: options.limits, state, origins, host_policy, public_links })
    }

    /// Cancel it before the shutdown, while running calls finish elsewhere. From then on `/health`
    /// and all new requests get 503, except those of runners and those that only read: callers
    /// still get their responses. Event streams and requests in progress continue.
    pub fn draining(&self) -> CancellationToken {
        self.state.draining.clone()
    }

    /// Serves until `shutdown`, and then drains: callers that wait for a response get it if it
    /// comes within `drain_time`, by `invoke` or on an event stream of their agent. After that,
    /// event streams close when they have sent the events so far, and requests in progress get
    /// `drain_time` to finish. Boxed, so that the future is compiled in this crate and not again in
    /// the binary, which is compiled last.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.until(shutdown))
    }

    async fn until(self, shutdown: CancellationToken) {
        let streams = self.state.shutdown.clone();
        // Also if this future is dropped before it finishes.
        let _ends_streams = streams.clone().drop_guard();
        let state = self.state.clone();
        let limits = self.limits;
        let body_limit = BodyLimit(limits.max_body_bytes.min(MAX_BODY_BYTES));
        // One layer, the outermost first: each layer of a router boxes its service once more for
        // each request.
        let layers = ServiceBuilder::new()
            .layer(from_fn(http::request_log::observe))
            .option_layer(self.public_links.map(|links| from_fn_with_state(links, http::public_url::apply)))
            .option_layer((!self.origins.is_empty()).then(|| from_fn_with_state(self.origins, http::cors::apply)))
            .map_response(IntoResponse::into_response)
            .layer(CatchPanicLayer::custom(http::request_log::panicked))
            .layer(from_fn(http::unread_body::discard_unread))
            .layer(Extension(body_limit))
            .option_layer(self.host_policy.map(|policy| from_fn_with_state(policy, auth::host_policy::enforce)))
            .option_layer(state.rcrt_compat.then_some(Extension(RcrtCompat)));
        let router = routes::router(self.state).layer(layers);
        // Separate from `shutdown`: runners complete calls until no caller waits for them.
        let stop = CancellationToken::new();
        let serving = http::serve::serve(self.listener, router, &limits, stop.clone());
        let ending = async {
            shutdown.cancelled().await;
            state.draining.cancel();
            state.invocations.close();
            let answered = async { tokio::join!(state.invocations.wait(), state.streamed_calls_ended()) };
            if tokio::time::timeout(limits.drain_time, answered).await.is_err() {
                tracing::warn!(invocations = state.invocations.len(), "callers are still waiting at the shutdown");
            }
            stop.cancel();
            streams.cancel();
        };
        let recording = auth::token_uses::write_batches(state.clone(), stop.clone());
        tokio::join!(serving, ending, auth::revocation::follow(state.clone(), stop.clone()), recording);
        state.response_waiters.ended().await;
    }
}
