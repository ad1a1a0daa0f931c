//! The common start of `server` and `up`: the data folder, the port, the store and the HTTP server.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use rcrt_breadcrumb::PrivateHost;
use rcrt_server::{AllowedHosts, AllowedOrigins, AuthMode, PublicUrl, ServerError, ServerOptions, StreamOptions};
use tokio::net::TcpListener;
use url::Url;

use super::limit_options::LimitOptions;
use super::{DataFolder, DatabaseOptions, Pruning, RetentionOptions, System, base_url, bind, check_url, check_url_of};
use crate::config::{Config, DEFAULT_LISTEN, listen_address};
use crate::exit::Failure;
use crate::progress::ConsoleProgress;

#[derive(Debug, Args)]
pub struct ServingOptions {
    /// The address to listen on
    #[arg(long, env = "RCRT_LISTEN", default_value = DEFAULT_LISTEN, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: SocketAddr,
    /// Who gets a token: keys (an agent that proves its key), or open (everybody; on loopback, or
    /// with --allow-host or --compat rcrt for callers of private networks)
    #[arg(long, env = "RCRT_AUTH", default_value = "keys")]
    auth: Auth,
    /// An origin whose pages can call this server in a browser, such as http://localhost:8082. Can
    /// be repeated, or separated by commas in the environment; * allows all origins, but not with
    /// --auth open
    #[arg(long, env = "RCRT_CORS_ORIGINS", value_name = "ORIGIN", value_delimiter = ',')]
    cors_origin: Vec<String>,
    /// A token for /metrics that shows the names of every tenant's tools, for Prometheus; at least
    /// 16 characters. Without it, use the token of `rcrt token --operator`
    #[arg(long, env = "RCRT_METRICS_TOKEN", hide_env_values = true, value_name = "TOKEN", value_parser = metrics_token)]
    metrics_token: Option<String>,
    /// With --auth open, and for /mcp on loopback: a host name or address by which clients can
    /// address the server besides loopback, such as rcrt in http://rcrt:8080. Can be repeated, or
    /// separated by commas in the environment
    #[arg(long, env = "RCRT_ALLOW_HOSTS", value_name = "NAME", value_delimiter = ',')]
    allow_host: Vec<String>,
    /// The URL by which clients reach this server through a proxy, such as
    /// https://example.com/rcrt, for the links in responses; the proxy removes its path
    #[arg(long, env = "RCRT_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    public_url: Option<PublicUrl>,
    #[command(flatten)]
    streams: StreamBounds,
    #[command(flatten)]
    database: DatabaseOptions,
    #[command(flatten)]
    retention: RetentionOptions,
    /// A folder to which calls and events are written before they are deleted, as compressed lines
    /// of JSON for `rcrt import`: one or more files for each tenant and day. All servers of a
    /// database need the same folder
    #[arg(long, env = "RCRT_ARCHIVE", value_name = "FOLDER")]
    archive: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitOptions,
    /// Set from `--compat`, which is an option of the command.
    #[arg(skip)]
    pub rcrt_compat: bool,
    /// Set from `--allow-private-host`, which is an option of the command.
    #[arg(skip)]
    pub allowed_private: Vec<PrivateHost>,
    /// Set from `--search-meaning-percent`, which is an option of the command.
    #[arg(skip)]
    pub meaning_weight: Option<f64>,
}

#[derive(Debug, Args)]
struct StreamBounds {
    /// Open event streams of one tenant; one more gets 429
    #[arg(long, env = "RCRT_MAX_STREAMS", value_name = "N", default_value_t = StreamOptions::default().most_per_tenant)]
    max_streams: usize,
    /// Open event streams of one agent; one more gets 429
    #[arg(long, env = "RCRT_MAX_STREAMS_PER_AGENT", value_name = "N", default_value_t = StreamOptions::default().most_per_agent)]
    max_streams_per_agent: usize,
    /// Report new records on event streams as breadcrumb.updated, as the original RCRT does; some
    /// of its clients handle no other event
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

/// The folder of `--archive`, absolute. It is created if it does not exist.
fn archive_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| fs::canonicalize(folder)).map_err(
        |error| {
            let text = format!("--archive: {} cannot be used as a folder: {error}", folder.display());
            Failure::Usage(text).into()
        },
    )
}

/// Parses `--public-url`.
pub fn public_url(text: &str) -> Result<PublicUrl, String> {
    PublicUrl::new(text).map_err(|error| error.to_string())
}

/// A short token could be guessed.
pub fn metrics_token(text: &str) -> Result<String, String> {
    if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must have at least 16 ASCII characters, without spaces".into());
    }
    Ok(text.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Auth {
    Keys,
    Open,
}

/// The locked data folder and the open port, before anything is started.
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

/// A system that serves HTTP.
pub struct StartedServer {
    pub base_url: Url,
    pub data: PathBuf,
    /// The token of the first agent.
    pub token: String,
}

impl ServingOptions {
    /// Refuses contradicting options before anything is changed.
    pub fn check(&self) -> anyhow::Result<()> {
        self.auth_mode()?;
        self.origins()?;
        self.hosts()?;
        self.database.embedding.options()?;
        self.retention.check()?;
        check_url_of("--read-database-url", self.database.read_database_url.as_ref())?;
        Ok(check_url(self.database.database_url.as_ref())?)
    }

    /// `--auth open` needs loopback, `--allow-host` or `--compat rcrt`.
    fn auth_mode(&self) -> anyhow::Result<AuthMode> {
        let listen = self.listen;
        match self.auth {
            Auth::Keys => Ok(AuthMode::Keys),
            Auth::Open if listen.ip().is_loopback() || !self.allow_host.is_empty() || self.rcrt_compat => {
                Ok(AuthMode::Open)
            }
            Auth::Open => Err(Failure::Usage(format!(
                "--auth open issues a token to every caller, so it works only on 127.0.0.1 or [::1], not on {listen}; in a \
                 private network, name the host by which clients address the server with --allow-host"
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

    /// The URLs at which this server is reached, as far as they are known before it starts.
    pub fn own_urls(&self) -> Vec<String> {
        let listen = [format!("http://{}", self.listen), format!("http://localhost:{}", self.listen.port())];
        listen.into_iter().chain(self.public_url().map(str::to_owned)).collect()
    }

    pub fn public_url(&self) -> Option<&str> {
        self.public_url.as_ref().map(PublicUrl::as_str)
    }

    /// How long calls can continue at shutdown.
    pub fn drain_time(&self) -> Duration {
        self.limits.drain.time()
    }

    /// Locks the data folder and opens the port.
    pub async fn begin(&self, config: &Config) -> anyhow::Result<BoundServer> {
        let (auth, origins, hosts) = (self.auth_mode()?, self.origins()?, self.hosts()?);
        let mut folder = DataFolder::take(&config.data)?;
        let listener = bind(self.listen).await?;
        let base_url = base_url(&listener)?;
        folder.announce(base_url.as_str())?;
        Ok(BoundServer { auth, origins, hosts, folder, listener, base_url })
    }

    /// Opens the store and the HTTP server. `system` has the parts that were started, also after an
    /// error.
    pub async fn open(
        &self,
        begun: BoundServer,
        progress: &ConsoleProgress,
        system: &mut System,
    ) -> anyhow::Result<StartedServer> {
        let BoundServer { auth, origins, hosts, folder, listener, base_url } = begun;
        let (data, token_key) = (folder.path(), folder.keys.token_key()?);
        let archive = self.archive.as_deref().map(archive_folder).transpose()?;
        let pruning = Pruning { retention: self.retention.in_store(), archive };
        system.open_store(folder, &self.database, pruning, progress).await?;
        let mut streams = self.streams.options();
        streams.new_as_updated |= self.rcrt_compat;
        if auth == AuthMode::Open && !self.listen.ip().is_loopback() {
            tracing::warn!(listen = %self.listen, "every caller of this server in a private network gets all rights");
        }
        let mut options = ServerOptions {
            streams,
            limits: self.limits.limits(),
            origins,
            hosts,
            metrics_token: self.metrics_token.clone(),
            rcrt_compat: self.rcrt_compat,
            public_url: self.public_url.clone(),
            allowed_private: self.allowed_private.clone(),
            ..ServerOptions::new(listener, auth, token_key)
        };
        options.meaning_weight = self.meaning_weight.unwrap_or(options.meaning_weight);
        let token = system.start_http_server(options, &data)?;
        tracing::info!(%base_url, "the server is listening");
        Ok(StartedServer { base_url, data, token })
    }
}
