//! The common start of `server` and `up`: the data folder, the port, the store and the HTTP server.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use server::{AllowedHosts, AllowedOrigins, AuthMode, ServerError, StreamOptions};
use tokio::net::TcpListener;
use url::Url;

use super::limit_options::LimitOptions;
use super::{DataFolder, DatabaseOptions, HttpServerOptions, System, base_url, bind, check_url};
use crate::config::{Config, DEFAULT_LISTEN, listen_address};
use crate::exit::Failure;
use crate::progress::ConsoleProgress;

#[derive(Debug, Args)]
pub struct ServingOptions {
    /// Where to listen
    #[arg(long, env = "RCRT_LISTEN", default_value = DEFAULT_LISTEN, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: SocketAddr,
    /// Who gets a token: who proves an agent's key, or anybody who asks (when listening on this machine alone, or with
    /// --allow-host or --compat rcrt for callers of private networks)
    #[arg(long, env = "RCRT_AUTH", default_value = "keys")]
    auth: Auth,
    /// An origin whose pages a browser lets call this server, such as http://localhost:8082; again for more, or with
    /// commas in the environment; * for all, though not with --auth open
    #[arg(long, env = "RCRT_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    cors_origin: Vec<String>,
    /// A token that opens /metrics with the names of every tenant's tools, for Prometheus; at least 16 characters. Without
    /// it that takes the token of `rcrt token --operator`
    #[arg(long, env = "RCRT_METRICS_TOKEN", hide_env_values = true, value_name = "TOKEN", value_parser = metrics_token)]
    metrics_token: Option<String>,
    /// With --auth open: a host name or an address by which the server may be addressed beside localhost, such as rcrt in
    /// http://rcrt:8080; again for more, or with commas in the environment
    #[arg(long, env = "RCRT_ALLOW_HOSTS", value_name = "NAME", value_delimiter = ',')]
    allow_host: Vec<String>,
    #[command(flatten)]
    streams: StreamBounds,
    #[command(flatten)]
    database: DatabaseOptions,
    #[command(flatten)]
    limits: LimitOptions,
    /// Of `--compat`, which is the whole command's.
    #[arg(skip)]
    pub rcrt_compat: bool,
}

#[derive(Debug, Args)]
struct StreamBounds {
    /// How many event streams a tenant may have open at once; one more is answered 429
    #[arg(long, env = "RCRT_MAX_STREAMS", value_name = "N", default_value_t = StreamOptions::default().most_per_tenant)]
    max_streams: usize,
    /// How many of them one agent may have
    #[arg(long, env = "RCRT_MAX_STREAMS_PER_AGENT", value_name = "N", default_value_t = StreamOptions::default().most_per_agent)]
    max_streams_per_agent: usize,
    /// Tell a new record on event streams as breadcrumb.updated, as RCRT does: some of its clients hear nothing else
    #[arg(long, env = "RCRT_RCRT_EVENTS", value_parser = clap::builder::FalseyValueParser::new())]
    rcrt_events: bool,
}

impl StreamBounds {
    fn options(&self) -> StreamOptions {
        StreamOptions {
            most_per_tenant: self.max_streams,
            most_per_agent: self.max_streams_per_agent,
            new_as_updated: self.rcrt_events,
            ..StreamOptions::default()
        }
    }
}

/// One that could be guessed would open them to everybody.
fn metrics_token(text: &str) -> Result<String, String> {
    if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must have at least 16 characters of ASCII without spaces".into());
    }
    Ok(text.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Auth {
    Keys,
    Open,
}

/// What is this process's alone, before anything runs on it.
pub struct BoundServer {
    auth: AuthMode,
    origins: AllowedOrigins,
    hosts: AllowedHosts,
    folder: DataFolder,
    listener: TcpListener,
    base_url: Url,
}

impl BoundServer {
    /// The data folder, absolute and without links.
    pub fn data(&self) -> PathBuf {
        self.folder.path()
    }
}

/// A system that answers over HTTP.
pub struct StartedServer {
    pub base_url: Url,
    pub data: PathBuf,
    /// The first agent's.
    pub token: String,
}

impl ServingOptions {
    /// Refuses what does not go together before anything is touched.
    pub fn check(&self) -> anyhow::Result<()> {
        self.auth_mode()?;
        self.origins()?;
        self.hosts()?;
        self.database.embedding.options()?;
        Ok(check_url(self.database.database_url.as_ref())?)
    }

    /// Tokens for everybody are for this machine alone.
    fn auth_mode(&self) -> anyhow::Result<AuthMode> {
        let listen = self.listen;
        match self.auth {
            Auth::Keys => Ok(AuthMode::Keys),
            Auth::Open if listen.ip().is_loopback() || !self.allow_host.is_empty() || self.rcrt_compat => {
                Ok(AuthMode::Open)
            }
            Auth::Open => Err(Failure::Usage(format!(
                "--auth open gives a token to anybody who asks, so it is for 127.0.0.1 or [::1] only, not for {listen}; \
                 within a private network, name the host by which the server is addressed there with --allow-host"
            ))
            .into()),
        }
    }

    fn hosts(&self) -> anyhow::Result<AllowedHosts> {
        Ok(AllowedHosts::new(&self.allow_host).map_err(|error| Failure::Usage(format!("--allow-host: {error}")))?)
    }

    fn origins(&self) -> anyhow::Result<AllowedOrigins> {
        let origins = AllowedOrigins::new(&self.cors_origin)
            .map_err(|error| Failure::Usage(format!("--cors-origin: {error}")))?;
        if self.auth == Auth::Open && self.cors_origin.iter().any(|origin| origin == "*") {
            return Err(Failure::Usage(ServerError::AnyOriginWithOpenAuth.to_string()).into());
        }
        Ok(origins)
    }

    /// Takes the data folder and the port.
    pub async fn begin(&self, config: &Config) -> anyhow::Result<BoundServer> {
        let (auth, origins, hosts) = (self.auth_mode()?, self.origins()?, self.hosts()?);
        let mut folder = DataFolder::take(&config.data)?;
        let listener = bind(self.listen).await?;
        let base_url = base_url(&listener)?;
        folder.announce(base_url.as_str())?;
        Ok(BoundServer { auth, origins, hosts, folder, listener, base_url })
    }

    /// Opens the store and the HTTP server; the system has whatever is up, also after an error.
    pub async fn open(
        &self,
        begun: BoundServer,
        progress: &ConsoleProgress,
        system: &mut System,
    ) -> anyhow::Result<StartedServer> {
        let BoundServer { auth, origins, hosts, folder, listener, base_url } = begun;
        let (data, token_key) = (folder.path(), folder.keys.token_key()?);
        system.open_store(folder, &self.database, progress).await?;
        let (limits, rcrt_compat) = (self.limits.limits(), self.rcrt_compat);
        let mut streams = self.streams.options();
        streams.new_as_updated |= rcrt_compat;
        if auth == AuthMode::Open && !self.listen.ip().is_loopback() {
            tracing::warn!(listen = %self.listen, "whoever reaches this server from a private network gets all rights");
        }
        let metrics_token = self.metrics_token.clone();
        let options = HttpServerOptions { auth, limits, origins, hosts, streams, metrics_token, rcrt_compat };
        let token = system.start_http_server(listener, options, &token_key, &data)?;
        tracing::info!(%base_url, "the server listens");
        Ok(StartedServer { base_url, data, token })
    }
}
