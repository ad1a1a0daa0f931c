//! Any store of breadcrumbs behind HTTP and server-sent events: routes, tokens and roles, problem documents, metrics,
//! and the OpenAPI description made from the routes.
//!
//! It deliberately does not know Postgres or any other store (only the traits [`Tenancy`] and `Breadcrumbs`), nor
//! runners, tools and V8: a call is a record and a lease here. What a route is for stands beside its handler, who may
//! call it in the route table, and how an error reads in `problem.rs`; nowhere else.

mod access;
mod acl;
mod agents;
mod allowance;
mod answer_watch;
mod answers;
mod audit;
mod auth;
mod breadcrumbs;
mod calls;
mod chosen_secrets;
mod connections;
mod cross_origin;
mod dead_letters;
mod drain;
mod events;
mod foreign_host;
mod held_body;
mod hygiene;
mod invoke;
mod json_body;
mod known_agents;
mod limits;
mod metrics;
mod one_header;
mod openapi;
mod operations;
mod path_id;
mod path_tool;
mod precondition;
mod prefer;
mod problem;
mod query;
mod rcrt_compat;
mod readiness;
mod revocation;
mod routes;
mod secret_grants;
mod secrets;
mod selectors;
mod serve;
mod stalled_write;
mod streams;
mod tenants;
mod token;
mod token_ring;
mod tool_schemas;
mod tools;
mod trace;
mod traceparent;
mod under_way;
mod webhooks;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Extension,
    middleware::{from_fn, from_fn_with_state},
};
use breadcrumb::Tenancy;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use json_body::BodyLimit;

pub use cross_origin::Origins;
pub use foreign_host::AllowedHosts;
pub use json_body::MAX_BODY_BYTES;
pub use limits::{Limits, NoRate, Rate};
pub use streams::StreamOptions;
pub use token::{MIN_KEY_BYTES, ProvenToken, TokenError, TokenId};
pub use token_ring::TokenKey;

use allowance::Allowances;
use answer_watch::AnswerWatch;
use foreign_host::Answered;
use known_agents::KnownAgents;
use metrics::MetricsToken;
use rcrt_compat::RcrtCompat;
use readiness::Readiness;
use streams::Streams;
use under_way::UnderWay;

/// Who gets a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// Who proves an agent's key.
    Keys,
    /// Whoever asks, for RCRT's clients as they are. Beyond a loopback address only with [`ServerOptions::hosts`] or
    /// [`ServerOptions::rcrt_compat`], and then for callers of private networks.
    Open,
}

pub struct ServerOptions {
    /// Bound already, so that the caller knows the address and says so when it is taken.
    pub listener: TcpListener,
    pub auth: AuthMode,
    pub token_key: TokenKey,
    pub streams: StreamOptions,
    pub limits: Limits,
    /// Whose pages a browser lets call this server.
    pub origins: Origins,
    /// By which names, beside those of loopback, a server with open auth is addressed.
    pub hosts: AllowedHosts,
    /// Opens `/metrics` with the names of every tenant's tools, beside the operator's tokens.
    pub metrics_token: Option<String>,
    /// Takes what RCRT's clients send as RCRT takes it, a token in the address of an event stream too; a stream goes on
    /// after its token has expired (not after a revocation, or the end of its agent). docs/moving-from-rcrt.md describes
    /// it. Default: false.
    pub rcrt_compat: bool,
}

impl ServerOptions {
    /// For programs only: no page of another origin may call the server.
    pub fn new(listener: TcpListener, auth: AuthMode, token_key: TokenKey) -> Self {
        let (streams, limits, origins, hosts) = Default::default();
        Self { listener, auth, token_key, streams, limits, origins, hosts, metrics_token: None, rcrt_compat: false }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(
        "open auth gives tokens to whoever asks, so it needs a loopback address such as 127.0.0.1, and {address} is \
         none; listen on a loopback address, use keys, or allow the host names by which the server is addressed"
    )]
    OpenAuthBeyondLoopback { address: SocketAddr },
    #[error("open auth gives tokens to whoever asks, so the origins of pages that may ask are named one by one, not *")]
    AnyOriginWithOpenAuth,
    #[error("{text:?} is no origin of pages; it would be such as {right}, or * for all")]
    NoOrigin { text: String, right: String },
    #[error("{text:?} is no host name; it would be such as rcrt, rcrt.internal or 10.0.0.5, without a port")]
    NoHostName { text: String },
    #[error("the token key has {bytes} bytes; it needs at least {MIN_KEY_BYTES}")]
    WeakTokenKey { bytes: usize },
    #[error("a token could not be signed: {0}")]
    Sign(String),
    #[error("the listener's address is unknown: {0}")]
    Listener(#[from] std::io::Error),
}

/// An HTTP server that is ready to run.
pub struct Server {
    listener: TcpListener,
    limits: Limits,
    state: ServerState,
    origins: Arc<Origins>,
    /// Set with open auth.
    answered: Option<Arc<Answered>>,
}

/// The OpenAPI 3.1 document of every server of this version, as `GET /openapi.json` gives it, in lines.
pub fn api_description() -> String {
    openapi::in_lines()
}

/// What handlers share.
#[derive(Clone)]
struct ServerState(Arc<Shared>);

struct Shared {
    tenancy: Arc<dyn Tenancy>,
    auth: AuthMode,
    rcrt_compat: bool,
    token_key: TokenKey,
    known_agents: KnownAgents,
    answers: AnswerWatch,
    streams: Arc<Streams>,
    stream_options: StreamOptions,
    allowances: Allowances,
    under_way: Arc<UnderWay>,
    readiness: Readiness,
    metrics_token: Option<MetricsToken>,
    /// No new work is taken any more.
    draining: CancellationToken,
    /// Ends the event streams, which would hold a shutdown up forever, and the waiting for answers.
    shutdown: CancellationToken,
}

impl std::ops::Deref for ServerState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Server {
    /// Refuses open auth on an address that others can reach, unless it is said how the server is addressed there.
    pub fn new(options: ServerOptions, tenancy: Arc<dyn Tenancy>) -> Result<Self, ServerError> {
        let address = options.listener.local_addr()?;
        let is_beyond = !address.ip().is_loopback();
        if options.auth == AuthMode::Open && is_beyond && options.hosts.is_empty() && !options.rcrt_compat {
            return Err(ServerError::OpenAuthBeyondLoopback { address });
        }
        if options.auth == AuthMode::Open && options.origins.is_any() {
            return Err(ServerError::AnyOriginWithOpenAuth);
        }
        metrics::install();
        let shutdown = CancellationToken::new();
        let state = ServerState(Arc::new(Shared {
            known_agents: KnownAgents::new(Arc::clone(&tenancy)),
            readiness: Readiness::new(Arc::clone(&tenancy)),
            tenancy,
            auth: options.auth,
            rcrt_compat: options.rcrt_compat,
            token_key: options.token_key,
            streams: Arc::default(),
            stream_options: options.streams,
            answers: AnswerWatch::new(shutdown.clone()),
            allowances: Allowances::new(&options.limits),
            under_way: UnderWay::new(options.limits.max_requests_per_tenant),
            metrics_token: options.metrics_token.as_deref().map(MetricsToken::new),
            draining: CancellationToken::new(),
            shutdown,
        }));
        let origins = Arc::new(options.origins);
        let answered = (options.auth == AuthMode::Open).then(|| {
            let dotless = is_beyond && options.rcrt_compat;
            Arc::new(Answered { hosts: options.hosts, dotless, only_private: is_beyond })
        });
        Ok(Self { listener: options.listener, limits: options.limits, state, origins, answered })
    }

    /// Cancel it before the shutdown, while what was begun comes to its end elsewhere: from then on everybody but runners is
    /// answered 503, and so is who asks for the health. Event streams and requests under way go on.
    pub fn draining(&self) -> CancellationToken {
        self.state.draining.clone()
    }

    /// Serves until `shutdown`; then event streams end at once, and requests under way get `drain_time` to finish. Boxed, so that
    /// all of it is compiled here and not once more, as the last of all, in the program.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(self.until(shutdown))
    }

    async fn until(self, shutdown: CancellationToken) {
        let streams = self.state.shutdown.clone();
        // Also when this future is dropped instead of finished.
        let _ends_streams = streams.clone().drop_guard();
        let state = self.state.clone();
        let limits = self.limits;
        let mut router = routes::router(self.state);
        if state.rcrt_compat {
            router = router.layer(Extension(RcrtCompat));
        }
        if let Some(answered) = self.answered {
            router = router.layer(from_fn_with_state(answered, foreign_host::refuse));
        }
        let router = router
            .layer(Extension(BodyLimit(limits.max_body_bytes.min(MAX_BODY_BYTES))))
            .layer(from_fn(drain::rest_of_body))
            .layer(CatchPanicLayer::custom(trace::panicked))
            .layer(from_fn_with_state(self.origins, cross_origin::admit))
            .layer(from_fn(trace::observe));
        let serving = serve::serve(self.listener, router, &limits, shutdown.clone());
        let ending = async {
            shutdown.cancelled().await;
            state.draining.cancel();
            streams.cancel();
        };
        tokio::join!(serving, ending, revocation::follow(state.clone(), shutdown.clone()));
        state.answers.ended().await;
    }
}
