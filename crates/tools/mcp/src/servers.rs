//! The servers of a tenant and their connections: one for each server and runner. A connection is
//! opened when it is first needed, and kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{Breadcrumbs, Host};
use rcrt_egress::{Egress, NetRules, Origin, Vault};
use rcrt_executors::builtin::{FolderContent, MAX_ENTRIES};
use rcrt_jail::command::{CommandLimits, CommandSpec, FilesystemView, Jail, JailError, PATH, make_folder};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::attempt::Attempt;
use crate::connection::{Connection, Opening};
use crate::failure::McpError;
use crate::questions::Questions;
use crate::records::{self, ServerRecord};
use crate::secrets::{Access, access, filled};
use crate::server::{ServerConfig, Transport};
use crate::settings::Settings;
use crate::transport::{EgressClient, LegacySseTransport, ProgramLog, RawLists, StdioTransport};

/// The path of the working folder in the jail.
const FOLDER: &str = "/work";
/// Requests at the same time on one HTTP connection.
const MAX_REQUESTS: usize = 256;
const MIB: u64 = 1024 * 1024;
/// A broken stream of a response is resumed if the server can do that. These attempts take 15
/// seconds, so a call does not wait for a server that is gone.
const MAX_RESUMPTIONS: usize = 5;
const FIRST_RESUMPTION: std::time::Duration = std::time::Duration::from_millis(500);

pub struct Servers {
    pub(crate) store: Arc<dyn Breadcrumbs>,
    egress: Arc<Egress>,
    pub(crate) settings: Settings,
    /// Opened with the first program.
    jail: OnceCell<Jail>,
    /// By the name in lower case.
    known: Mutex<BTreeMap<String, Arc<Server>>>,
}

/// One version of a server's record, and the connection that was opened for it.
pub struct Server {
    pub record: ServerRecord,
    /// One attempt to connect at a time.
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// How it was connected last.
    attempt: Mutex<Option<Attempt>>,
}

impl Servers {
    /// `store` is the store as the runner's agent sees it. `egress` is for HTTP servers.
    pub fn new(store: Arc<dyn Breadcrumbs>, egress: Arc<Egress>, settings: Settings) -> Arc<Self> {
        let (jail, known) = (OnceCell::new(), Mutex::default());
        Arc::new(Self { store, egress, settings, jail, known })
    }

    /// Replaces what is known of a server. The connection of an older version closes after its last
    /// call.
    pub(crate) fn insert(&self, record: ServerRecord) -> Arc<Server> {
        let key = record.config.name.to_lowercase();
        let mut known = self.known.lock();
        if let Some(present) = known.get(&key).filter(|present| present.record == record) {
            return present.clone();
        }
        let server = Arc::new(Server { record, connection: tokio::sync::Mutex::default(), attempt: Mutex::default() });
        known.insert(key, server.clone());
        server
    }

    pub(crate) fn forget(&self, id: Uuid) {
        self.known.lock().retain(|_, server| server.record.id != id);
    }

    /// The server with this name, in any case.
    pub(crate) async fn find(&self, name: &str) -> Result<Arc<Server>, McpError> {
        let known = self.known.lock().get(&name.to_lowercase()).cloned();
        if let Some(server) = known {
            return Ok(server);
        }
        // This runner has not yet read the records, or not yet this one.
        let records = records::servers(&*self.store).await?;
        let names: Vec<String> = records.iter().map(|record| record.config.name.clone()).collect();
        match records.into_iter().find(|record| record.config.name.eq_ignore_ascii_case(name)) {
            Some(record) => Ok(self.insert(record)),
            None => Err(McpError::Unknown { name: line(name, 100), known: names }),
        }
    }

    /// The open connection of a server; a new one if there is none.
    pub(crate) async fn connection(&self, server: &Server) -> Result<Arc<Connection>, McpError> {
        let config = &server.record.config;
        if !config.enabled {
            return Err(McpError::Disabled(config.name.clone()));
        }
        let mut present = server.connection.lock().await;
        if let Some(connection) = present.as_ref().filter(|connection| !connection.is_over()) {
            return Ok(connection.clone());
        }
        let refused = present.as_ref().and_then(|connection| connection.refused_token());
        let connection = Arc::new(self.connect(server, refused).await?);
        *present = Some(connection.clone());
        Ok(connection)
    }

    /// A new connection. `refused`: the version of the secret whose access token the server
    /// refused.
    async fn connect(&self, server: &Server, refused: Option<i64>) -> Result<Connection, McpError> {
        let record = (server.record.id, &server.record.config);
        let access_with = |refused| access(&*self.store, &self.egress, record, refused);
        let first = access_with(refused).await?;
        let version = first.token.map(|token| token.version);
        match self.open(server, &first).await {
            // The token was revoked before its time.
            Err(McpError::Unauthorized(_)) if version.is_some() && !first.is_new => {
                self.open(server, &access_with(version).await?).await
            }
            opened => opened,
        }
    }

    /// Both eras are tried, and for a URL the transport of the first revision last. Once one
    /// worked, the others are tried only if the server does not understand it any more.
    async fn open(&self, server: &Server, access: &Access) -> Result<Connection, McpError> {
        let (config, worked) = (&server.record.config, *server.attempt.lock());
        let mut failed = None;
        for attempt in Attempt::all(worked) {
            let opened = match &config.transport {
                Transport::Stdio { .. } if attempt == Attempt::LegacySse => continue,
                Transport::Stdio { .. } => self.start(config, access, attempt).await,
                Transport::Http { .. } => self.reach(server.record.id, config, access, attempt).await,
            };
            match opened {
                Ok(connection) => {
                    let info = connection.info();
                    let has_initialize = info.is_some_and(|info| info.protocol_version.has_initialize());
                    *server.attempt.lock() = Some(attempt.next_time(has_initialize));
                    return Ok(connection);
                }
                // The error of the first attempt is usually the cause.
                Err(error @ McpError::NotUnderstood(_)) => failed = failed.or(Some(error)),
                Err(error @ McpError::Unreachable(_)) if worked.is_none() => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| McpError::Unreachable("it cannot be reached".to_owned())))
    }

    async fn start(&self, config: &ServerConfig, access: &Access, attempt: Attempt) -> Result<Connection, McpError> {
        self.measure(config).await?;
        let lists = RawLists::default();
        let order = self.order(config, &access.vault).await?;
        let program = self.jail().await.start(&order).await.map_err(|error| not_started(&error))?;
        let (transport, log) = StdioTransport::new(program, lists.clone());
        let opening = access.opening(config, Some(log), folders(config).await);
        Connection::open(transport, lists, opening, attempt.mode()).await
    }

    async fn reach(
        &self,
        record: Uuid,
        config: &ServerConfig,
        access: &Access,
        attempt: Attempt,
    ) -> Result<Connection, McpError> {
        let vault = &access.vault;
        let Transport::Http { url, headers, auth } = &config.transport else {
            return Err(McpError::Configuration("transport.type: is not http".to_owned()));
        };
        let lists = RawLists::default();
        let host = Host::of(url).zip(url.port_or_known_default());
        let (host, port) = host.ok_or_else(|| McpError::Configuration("transport.url: has no host".to_owned()))?;
        let mut sent: Vec<(String, String)> =
            headers.iter().map(|(name, value)| (name.clone(), filled(value, vault))).collect();
        if let Some(auth) = auth {
            let handle = vault.handle(auth.secret()).unwrap_or_default();
            sent.push(("authorization".to_owned(), format!("Bearer {handle}")));
        }
        // A runner's log is that of its one tenant.
        let origin = Origin { owner_id: Uuid::nil(), agent_id: None, tool_id: Some(record), call: None };
        let (egress, rules) = (self.egress.clone(), NetRules::only_of("transport.url", host, port));
        let client = EgressClient::new(egress, config.name.clone(), rules, vault.clone(), origin, sent, lists.clone());
        let within = config.connect_timeout();
        if attempt == Attempt::LegacySse {
            let opening = LegacySseTransport::open(client, url);
            let opened = tokio::time::timeout(within, opening).await;
            let opened = opened.map_err(|_| McpError::Timeout(config.connect_timeout_ms))?;
            let transport = opened.map_err(|error| McpError::of_transport(&error, vault))?;
            return Connection::open(transport, lists, access.opening(config, None, Vec::new()), attempt.mode()).await;
        }
        let mut options =
            StreamableHttpClientTransportConfig::with_uri(url.as_str()).max_concurrent_requests(MAX_REQUESTS);
        let mut resuming = ExponentialBackoff::default();
        (resuming.max_times, resuming.base_duration) = (Some(MAX_RESUMPTIONS), FIRST_RESUMPTION);
        options.retry_config = Arc::new(resuming);
        let transport = StreamableHttpClientTransport::with_client(client, options);
        Connection::open(transport, lists, access.opening(config, None, Vec::new()), attempt.mode()).await
    }

    /// Returns when the working folder of a program holds more than it may.
    pub(crate) async fn folder_filled(&self, config: &ServerConfig) -> McpError {
        if !matches!(config.transport, Transport::Stdio { .. }) {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(self.settings.measure_every).await;
            if let Err(error) = self.measure(config).await {
                return error;
            }
        }
    }

    async fn measure(&self, config: &ServerConfig) -> Result<(), McpError> {
        const MB: u64 = 1_000_000;
        let most = self.settings.most_bytes;
        if most == 0 {
            return Ok(());
        }
        let folder = self.settings.folder.join(&config.name);
        let read = tokio::task::spawn_blocking(move || FolderContent::read(&folder)).await;
        let content = read.map_err(std::io::Error::other).flatten();
        let content = content
            .map_err(|error| McpError::Unreachable(format!("its working folder cannot be measured: {error}")))?;
        if content.bytes <= most && content.entries <= MAX_ENTRIES {
            return Ok(());
        }
        Err(McpError::FolderFull(format!(
            "the working folder of its program has {} MB in {} files and folders, and may have {} MB in {MAX_ENTRIES} \
             (--workdir-mb); it runs again when files are removed",
            content.bytes / MB,
            content.entries,
            most / MB
        )))
    }

    async fn jail(&self) -> &Jail {
        self.jail.get_or_init(|| Jail::open(self.settings.helper.clone())).await
    }

    /// The command of a stdio server. Its environment has nothing of the runner's.
    async fn order(&self, config: &ServerConfig, vault: &Vault) -> Result<CommandSpec, McpError> {
        let Transport::Stdio { command, args, env, network, memory_mb } = &config.transport else {
            return Err(McpError::Configuration("transport.type: is not stdio".to_owned()));
        };
        let (folder, network) = (self.settings.folder.join(&config.name), *network);
        let readable = self.settings.readable.clone();
        let command = command.clone();
        let seen = move || -> std::io::Result<_> {
            make_folder(&folder)?;
            let mut view = FilesystemView::of_programs(network);
            view.write(&folder, Path::new(FOLDER));
            for path in readable {
                view.show_unless_shown(&path);
            }
            let program = if command.contains('/') { command.into() } else { view.program(&command)? };
            Ok((view, program))
        };
        let seen = tokio::task::spawn_blocking(seen).await.map_err(std::io::Error::other).flatten();
        let (view, program) = seen.map_err(|error| McpError::Unreachable(error.to_string()))?;
        let own = [
            ("PATH", PATH),
            ("HOME", FOLDER),
            ("TMPDIR", "/tmp"),
            ("PWD", FOLDER),
            ("USER", "agent"),
            ("LANG", "C.UTF-8"),
        ];
        let mut environment: BTreeMap<String, String> =
            own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        environment.extend(env.iter().map(|(name, value)| (name.clone(), filled(value, vault))));
        Ok(CommandSpec {
            program,
            arguments: args.clone(),
            environment,
            folder: FOLDER.into(),
            view,
            network,
            bounds: CommandLimits {
                time: config.connect_timeout(),
                // It runs as long as the runner.
                processor_time: std::time::Duration::from_secs(u32::MAX.into()),
                memory: memory_mb * MIB,
                processes: 256,
                ..CommandLimits::default()
            },
        })
    }

    /// Closes all connections, and waits until their programs have exited.
    pub async fn close(&self) {
        let servers: Vec<Arc<Server>> = std::mem::take(&mut *self.known.lock()).into_values().collect();
        let closing = servers.iter().map(|server| async {
            let connection = server.connection.lock().await.take();
            if let Some(connection) = connection {
                connection.close().await;
            }
        });
        futures::future::join_all(closing).await;
        if let Some(jail) = self.jail.get() {
            jail.ended().await;
        }
    }
}

impl Access {
    /// `folders`: those that a program may use.
    fn opening(&self, config: &ServerConfig, program: Option<ProgramLog>, folders: Vec<String>) -> Opening {
        let questions = Questions { elicitation: config.elicitation, folders };
        let (timeout, vault) = (config.connect_timeout(), self.vault.clone());
        Opening { timeout, vault, program, token: self.token, questions }
    }
}

/// The folders that a program may use, as it sees them: those that its arguments name, or its
/// working folder. A server such as one for files would otherwise prefer the latter.
async fn folders(config: &ServerConfig) -> Vec<String> {
    let mut folders = Vec::new();
    if let Transport::Stdio { args, .. } = &config.transport {
        for path in args.iter().filter(|argument| argument.starts_with('/')) {
            let is_folder = tokio::fs::metadata(path).await.is_ok_and(|file| file.is_dir());
            if is_folder || Path::new(path).starts_with(FOLDER) {
                folders.push(path.clone());
            }
        }
    }
    if folders.is_empty() {
        folders.push(FOLDER.to_owned());
    }
    folders
}

fn not_started(error: &JailError) -> McpError {
    match error {
        JailError::Refused(reason) => McpError::Configuration(format!(
            "programs can run only in a jail, and this machine does not support one: {reason}"
        )),
        other => McpError::Unreachable(other.to_string()),
    }
}
