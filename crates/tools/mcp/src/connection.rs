//! A connection to one server, of either era of the protocol.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use parking_lot::Mutex;
use rcrt_breadcrumb::foreign_text::line;
use rcrt_egress::Vault;
use rcrt_executors::ProgressSink;
use rmcp::handler::client::progress::ProgressDispatcher;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ServerPeerInfo, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    Peer, PeerRequestOptions, RequestHandle, RoleClient, RunningService, RxJsonRpcMessage, Subscription,
    TxJsonRpcMessage,
};
use rmcp::transport::{DynamicTransportError, Transport};
use rmcp::{ClientLifecycleMode, ServiceError};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::definition::Definition;
use crate::failure::McpError;
use crate::handler::Handler;
use crate::questions::{self, Questions};
use crate::text::redacted_line;
use crate::transport::{ProgramLog, RawList, RawLists, StdioTransport};

/// The most tools of one server.
const MAX_TOOLS: usize = 400;
const MAX_PAGES: usize = 100;
/// The most bytes of all definitions of a server.
const MAX_LIST_BYTES: usize = 8 * 1024 * 1024;
/// How long a server may take to close.
const CLOSING: Duration = Duration::from_secs(5);

/// A definition, or the name of the tool and why it cannot be registered.
type Read = Result<Definition, (String, String)>;

/// A transport that cancels a token at its end, such as when the server closes it.
struct WatchedTransport<T> {
    transport: T,
    _over: DropGuard,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for WatchedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.transport.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

/// The tools of a server, as it listed them last.
#[derive(Debug, Default, PartialEq)]
pub struct ToolList {
    /// By the server's own names.
    pub tools: BTreeMap<String, Definition>,
    /// Tools that cannot be registered, each with the reason.
    pub refused: Vec<(String, String)>,
    /// How long the list is valid, if the server says.
    pub ttl: Option<Duration>,
}

/// What a connection is opened with.
pub struct Opening {
    /// To start, and for each list.
    pub timeout: Duration,
    /// The secrets that the server gets.
    pub vault: Arc<Vault>,
    /// Of a program.
    pub program: Option<ProgramLog>,
    pub token: Option<TokenInUse>,
    pub questions: Questions,
}

/// The access token that an authorization server issued for a connection.
#[derive(Debug, Clone, Copy)]
pub struct TokenInUse {
    /// The version of the secret that it is stored in.
    pub version: i64,
    /// When another one is needed, if that is known.
    pub until: Option<Instant>,
}

pub struct Connection {
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    progress: ProgressDispatcher,
    changes: watch::Sender<u64>,
    raw_lists: RawLists,
    /// The tools as they were listed last.
    list: watch::Sender<Arc<ToolList>>,
    timeout: Duration,
    token: Option<TokenInUse>,
    /// Whether the server refused the token.
    is_refused: AtomicBool,
    /// Cancelled at the end of the connection, and when it is given up.
    over: CancellationToken,
    /// The secrets that the server got. They are redacted from what it returns.
    pub vault: Arc<Vault>,
    program: Option<ProgramLog>,
    pub questions: Questions,
}

impl Connection {
    /// Connects, finds out the era, and lists the tools.
    pub async fn open<T>(
        transport: T,
        raw_lists: RawLists,
        Opening { timeout: within, vault, program, token, questions }: Opening,
        mode: ClientLifecycleMode,
    ) -> Result<Self, McpError>
    where
        T: Transport<RoleClient> + 'static,
    {
        let (progress, changes) = (ProgressDispatcher::new(), watch::Sender::new(0));
        let handler = Handler { progress: progress.clone(), changes: changes.clone(), questions: questions.clone() };
        let over = CancellationToken::new();
        let transport = WatchedTransport { transport, _over: over.clone().drop_guard() };
        let serving =
            rmcp::service::serve_client_with_lifecycle_and_ct(handler, transport, mode, CancellationToken::new());
        let service = match timeout(within, serving).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(McpError::of_start(&error, program.as_ref(), &vault)),
            Err(_) => return Err(McpError::Timeout(within.as_millis() as u64)),
        };
        let connection = Self {
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            progress,
            changes,
            raw_lists,
            list: watch::Sender::default(),
            timeout: within,
            token,
            is_refused: AtomicBool::new(false),
            over,
            vault,
            program,
            questions,
        };
        connection.refresh().await?;
        Ok(connection)
    }

    pub fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Whether new calls need another connection.
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled() || self.peer.is_transport_closed() || self.has_expired()
    }

    /// Whether its access token is too old.
    pub fn has_expired(&self) -> bool {
        self.token.and_then(|token| token.until).is_some_and(|until| until <= Instant::now())
    }

    /// The version of the secret whose access token the server refused.
    pub fn refused_token(&self) -> Option<i64> {
        self.token.filter(|_| self.is_refused.load(Ordering::SeqCst)).map(|token| token.version)
    }

    /// Returns when new calls need another connection.
    pub async fn ended(&self) {
        match self.token.and_then(|token| token.until) {
            None => self.over.cancelled().await,
            Some(until) => tokio::select! {
                () = self.over.cancelled() => {}
                () = sleep_until(until) => {}
            },
        }
    }

    /// Why it ended, as far as that is known.
    pub fn why_ended(&self) -> String {
        let Some(program) = &self.program else { return "the connection ended".to_owned() };
        let why = program.stopped().map_or_else(|| "the connection ended".to_owned(), |error| error.message);
        let stderr = program.stderr(&self.vault);
        if stderr.is_empty() { why } else { format!("{why}; its standard error: {stderr}") }
    }

    /// New calls get another connection. This one closes after its last call.
    pub fn give_up(&self) {
        self.over.cancel();
    }

    /// The tools as they were listed last.
    pub fn list(&self) -> Arc<ToolList> {
        self.list.borrow().clone()
    }

    /// The same, with each list that differs from the one before.
    pub fn lists(&self) -> watch::Receiver<Arc<ToolList>> {
        self.list.subscribe()
    }

    /// Lists the tools again.
    pub async fn refresh(&self) -> Result<Arc<ToolList>, McpError> {
        let list = Arc::new(self.list_tools().await?);
        self.list.send_if_modified(|present| std::mem::replace(present, list.clone()) != list);
        Ok(list)
    }

    /// The definitions without the secrets that the server got, each with its size in bytes, or
    /// with why it cannot be used.
    async fn definitions(&self, tools: Vec<Value>) -> Result<Vec<(usize, Read)>, McpError> {
        let (vault, known) = (self.vault.clone(), self.list());
        let read = move |mut tool: Value| {
            if !vault.is_empty() {
                vault.outward().json(&mut tool);
            }
            (tool.to_string().len(), Definition::read(tool, &known.tools))
        };
        // Redaction and the check of schemas compute for long.
        let reading = tokio::task::spawn_blocking(move || tools.into_iter().take(MAX_TOOLS + 1).map(read).collect());
        reading.await.map_err(|error| McpError::Unreachable(format!("its tools cannot be read: {error}")))
    }

    async fn list_tools(&self) -> Result<ToolList, McpError> {
        let mut list = ToolList::default();
        let Some(info) = self.info() else { return Ok(list) };
        if info.capabilities.tools.is_none() {
            return Ok(list);
        }
        let (mut cursor, mut bytes, mut shortest) = (None, 0, None::<u64>);
        for _ in 0..MAX_PAGES {
            let page = self.page(cursor).await?;
            for (size, tool) in self.definitions(page.tools).await? {
                bytes += size;
                if bytes > MAX_LIST_BYTES {
                    return Err(McpError::Unreachable(format!(
                        "its definitions have more than {MAX_LIST_BYTES} bytes"
                    )));
                }
                match tool {
                    Ok(tool) if list.tools.contains_key(&tool.name) => {
                        list.refused.push((line(&tool.name, 100), "it is listed twice".to_owned()));
                    }
                    Ok(tool) => drop(list.tools.insert(tool.name.clone(), tool)),
                    Err(refused) => list.refused.push(refused),
                }
                if list.tools.len() + list.refused.len() > MAX_TOOLS {
                    return Err(McpError::Unreachable(format!("it has more than {MAX_TOOLS} tools")));
                }
            }
            shortest = match (shortest, page.ttl_ms) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            cursor = page.next;
            if cursor.is_none() {
                list.ttl = shortest.map(Duration::from_millis);
                return Ok(list);
            }
        }
        Err(McpError::Unreachable(format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    async fn page(&self, cursor: Option<String>) -> Result<RawList, McpError> {
        let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
        let options = PeerRequestOptions::with_timeout(self.timeout);
        let sent = self.peer.send_request_with_option(ClientRequest::ListToolsRequest(request), options).await;
        let handle = sent.map_err(|error| self.failed(error))?;
        let id = json!(handle.id);
        let answered = handle.await_response().await;
        let raw = self.raw_lists.take(&id);
        let answered = answered.map_err(|error| self.failed(error))?;
        let mut page = raw.ok_or_else(|| McpError::Unreachable("its list of tools is not well-formed".to_owned()))?;
        if let ServerResult::ListToolsResult(listed) = answered {
            // `rmcp` leaves out tools whose headers a client cannot send.
            page.tools.retain(|tool| {
                let name = tool.get("name").and_then(Value::as_str);
                listed.tools.iter().any(|known| Some(known.name.as_ref()) == name)
            });
        }
        Ok(page)
    }

    fn failed(&self, error: ServiceError) -> McpError {
        let error = self.explained(error);
        self.note(&error);
        McpError::of_list(&error, &self.vault)
    }

    /// Why a program was stopped, in place of that its connection ended.
    fn explained(&self, error: ServiceError) -> ServiceError {
        match (error, self.program.as_ref().and_then(ProgramLog::stopped)) {
            (ServiceError::TransportClosed, Some(why)) => {
                let transport = TypeId::of::<StdioTransport>();
                ServiceError::TransportSend(DynamicTransportError::from_parts("stdio", transport, Box::new(why)))
            }
            (error, _) => error,
        }
    }

    /// Gives the connection up if the error says that it is broken, or that its token is refused.
    fn note(&self, error: &ServiceError) {
        let is_refused = error.is_authorization_required();
        self.is_refused.fetch_or(is_refused, Ordering::SeqCst);
        // Another challenge is about this request only, such as one for a further scope.
        let is_broken = matches!(error, ServiceError::TransportSend(_) | ServiceError::TransportClosed);
        if is_refused || (is_broken && error.auth_challenge().is_none()) {
            self.give_up();
        }
    }

    /// Announcements of changes of the list, from now on.
    pub async fn watch(&self) -> ListWatch {
        let changes = self.changes.subscribe();
        let announces = self.info().is_some_and(|info| {
            let listens = !info.protocol_version.has_initialize();
            listens && info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
        });
        // An older server sends them unasked, if at all.
        if !announces {
            return ListWatch { changes, subscription: None };
        }
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let subscription = match timeout(self.timeout, self.peer.listen(filter)).await {
            Ok(Ok(subscription)) => Some(subscription),
            Ok(Err(error)) => {
                tracing::debug!(%error, "an MCP server does not announce changes");
                None
            }
            Err(_) => None,
        };
        ListWatch { changes, subscription }
    }

    /// Calls a tool. When `stop` completes, the server is notified, and the result is `None`.
    pub async fn call(
        &self,
        params: CallToolRequestParams,
        progress: &dyn ProgressSink,
        stop: impl Future<Output = ()>,
    ) -> Option<Result<ServerResult, ServiceError>> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.request(request, progress, stop).await
    }

    /// Sends a request, again with responses while the server asks and they can be given. When
    /// `stop` completes, the server is notified, and the result is `None`. If the connection
    /// breaks, new calls get another one.
    pub async fn request(
        &self,
        mut request: ClientRequest,
        progress: &dyn ProgressSink,
        stop: impl Future<Output = ()>,
    ) -> Option<Result<ServerResult, ServiceError>> {
        let mut stop = std::pin::pin!(stop);
        let mut pause = questions::FIRST_PAUSE;
        for _ in 0..questions::MAX_ROUNDS {
            let answered = self.exchange(request.clone(), progress, stop.as_mut()).await?;
            let answered = answered.map_err(|error| self.explained(error));
            if let Err(error) = &answered {
                self.note(error);
            }
            let Ok(ServerResult::InputRequiredResult(asked)) = &answered else { return Some(answered) };
            let Some(responses) = self.questions.responses(asked) else { return Some(answered) };
            // Without a question, the server only wants to be asked later.
            if responses.is_empty() {
                tokio::select! {
                    () = &mut stop => return None,
                    () = sleep(pause) => pause *= 2,
                }
            }
            if !questions::fill(&mut request, responses, asked.request_state.clone()) {
                return Some(answered);
            }
        }
        Some(Err(ServiceError::InputRequiredRoundsExceeded { max_rounds: questions::MAX_ROUNDS }))
    }

    async fn exchange(
        &self,
        request: ClientRequest,
        progress: &dyn ProgressSink,
        stop: impl Future<Output = ()>,
    ) -> Option<Result<ServerResult, ServiceError>> {
        let mut stop = std::pin::pin!(stop);
        let sending = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle: RequestHandle<RoleClient> = tokio::select! {
            () = &mut stop => return None,
            sent = sending => match sent {
                Ok(handle) => handle,
                Err(error) => return Some(Err(error)),
            },
        };
        let mut reports = self.progress.subscribe(handle.progress_token.clone()).await;
        loop {
            tokio::select! {
                biased;
                answered = &mut handle.rx => return Some(answered.unwrap_or(Err(ServiceError::TransportClosed))),
                () = &mut stop => {
                    let _ = timeout(CLOSING, handle.cancel(Some("the call was cancelled".to_owned()))).await;
                    return None;
                }
                Some(report) = reports.next() => report_progress(progress, &report, &self.vault),
            }
        }
    }

    /// Closes the connection at once, even if calls are running.
    pub async fn close(&self) {
        let service = self.service.lock().take();
        if let Some(mut service) = service
            && let Err(error) = service.close_with_timeout(CLOSING).await
        {
            tracing::warn!(%error, "a connection to an MCP server failed");
        }
    }
}

/// Announcements of changes of a list of tools.
pub struct ListWatch {
    changes: watch::Receiver<u64>,
    subscription: Option<Subscription>,
}

impl ListWatch {
    /// Returns when a change was announced. If the announcements end, it never returns.
    pub async fn announced(&mut self) {
        loop {
            tokio::select! {
                changed = self.changes.changed() => match changed {
                    Ok(()) => return,
                    Err(_) => std::future::pending().await,
                },
                announced = next(&mut self.subscription) => {
                    if announced {
                        return;
                    }
                    self.subscription = None;
                }
            }
        }
    }
}

/// Whether there was an announcement; false at their end.
async fn next(subscription: &mut Option<Subscription>) -> bool {
    match subscription {
        Some(subscription) => matches!(subscription.next().await, Ok(Some(_))),
        None => std::future::pending().await,
    }
}

fn report_progress(progress: &dyn ProgressSink, report: &ProgressNotificationParam, vault: &Vault) {
    let fraction = report.total.filter(|total| *total > 0.0).map(|total| (report.progress / total).clamp(0.0, 1.0));
    let message = report.message.as_deref().map(|message| redacted_line(message, vault));
    let otherwise = || report.total.map_or_else(String::new, |total| format!("{} of {total}", report.progress));
    progress.report(fraction, &message.unwrap_or_else(otherwise));
}
