//! The methods of the protocol. Each request has its own principal, even in a session.

use std::sync::Arc;

use http::request::Parts;
use rcrt_breadcrumb::Registration;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskMethod, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ConstString, DiscoverResult, Extensions, GetPromptRequestParams, GetPromptResponse, GetTaskMethod,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskMethod, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::SessionRestoreMarker;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::Principal;
use crate::changes::{self, Sink, Subscribed};
use crate::errors::of_store;
use crate::principal::Served;
use crate::{completion, prompts, resources, sessions, tasks, tools};

/// The resources that one client can subscribe to.
const MAX_SUBSCRIBED: usize = 1_000;
/// How long the capabilities can be cached, in milliseconds.
const DISCOVERY_TTL_MS: u64 = 300_000;
const INSTRUCTIONS: &str = "The prompts are guides to families of tools; read the one for a tool that you do not know. \
                            A result that is too large is an index with links to its parts: read a part as a resource, \
                            or search it with the tool result_search.";

/// The service of one session, or of one request without a session.
#[derive(Clone, Default)]
pub(crate) struct Handler {
    /// The principal of requests that have none of their own.
    principal: Option<Arc<dyn Principal>>,
    /// The tool that the request names in a header, with the name that it uses.
    named: Option<(String, Registration)>,
    subscribed: Subscribed,
}

impl Handler {
    /// For requests that carry their principals.
    pub fn for_request(named: Option<(String, Registration)>) -> Self {
        Self { named, ..Self::default() }
    }

    /// For a connection with one principal.
    pub fn of(principal: Arc<dyn Principal>) -> Self {
        Self { principal: Some(principal), ..Self::default() }
    }

    fn principal(&self, extensions: &Extensions) -> Result<Arc<dyn Principal>, ErrorData> {
        let of_request = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Served>());
        let principal = of_request.map(|served| &served.0).or(self.principal.as_ref());
        principal.cloned().ok_or_else(|| ErrorData::internal_error("the request has no principal", None))
    }

    /// The principal of a request about a task. Earlier revisions do not have these methods.
    fn principal_of_task<M: ConstString>(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<dyn Principal>, ErrorData> {
        if sessions::is_sessionless(context) {
            self.principal(&context.extensions)
        } else {
            Err(ErrorData::method_not_found::<M>())
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let server = Implementation::new("rcrt", env!("CARGO_PKG_VERSION")).with_title("RCRT tool runtime");
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    /// Earlier revisions have no extensions, such as tasks.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut result = self.negotiate_initialize(&request)?;
        result.capabilities.extensions = None;
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let result = DiscoverResult::from_server_info(versions, self.get_info());
        Ok(result.with_ttl_ms(DISCOVERY_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list(&*self.principal(&context.extensions)?, request).await
    }

    /// Only for the check of the headers that repeat a tool's arguments.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let (_, tool) = self.named.as_ref().filter(|(named, _)| named == name)?;
        tools::described(tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal(&context.extensions)?;
        let tool = match &self.named {
            Some((name, tool)) if *name == request.name => tool.clone(),
            _ => tools::find(&*principal, &request.name).await?,
        };
        tools::call::call(&principal, &tool, request, &context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        prompts::list(&*self.principal(&context.extensions)?, request).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&self.principal(&context.extensions)?, request, &context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&*self.principal(&context.extensions)?, request).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        resources::templates(&*self.principal(&context.extensions)?, request).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.principal(&context.extensions)?, request, &context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        completion::complete(&*self.principal(&context.extensions)?, request).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| uri.starts_with(resources::RECORD));
            uris.truncate(MAX_SUBSCRIBED);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let principal = self.principal(&context.request_context().extensions)?;
        let sink = Sink::Stream(context.sink().clone());
        tokio::select! {
            () = context.cancelled() => {}
            () = changes::follow(&*principal, &sink, false) => {}
        }
        Ok(())
    }

    #[allow(deprecated)] // Clients of earlier revisions.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        {
            let mut subscribed = self.subscribed.lock();
            if subscribed.len() >= MAX_SUBSCRIBED {
                let message =
                    format!("a session can subscribe to {MAX_SUBSCRIBED} resources; unsubscribe from one first");
                return Err(ErrorData::invalid_request(message, None));
            }
            subscribed.insert(request.uri.clone());
        }
        let principal = self.principal(&context.extensions)?;
        let kept = sessions::keep_subscribed(&*principal, &context.extensions, |kept| {
            kept.insert(request.uri);
        });
        kept.await.map_err(of_store)
    }

    #[allow(deprecated)] // Clients of earlier revisions.
    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().remove(&request.uri);
        let principal = self.principal(&context.extensions)?;
        let kept = sessions::keep_subscribed(&*principal, &context.extensions, |kept| {
            kept.remove(&request.uri);
        });
        kept.await.map_err(of_store)
    }

    /// A session of an earlier revision gets notifications until it ends.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok(principal) = self.principal(&context.extensions) else { return };
        // Another process began the session, and its client may have missed something since.
        let resumed = context.extensions.get::<SessionRestoreMarker>().map(|marker| marker.id.clone());
        if let Some(id) = &resumed {
            match sessions::subscribed(&*principal, id).await {
                Ok(kept) => self.subscribed.lock().extend(kept),
                Err(error) => tracing::warn!(%error, "the subscriptions of a session cannot be read"),
            }
        }
        let sink = Sink::Session(context.peer, self.subscribed.clone());
        changes::follow(&*principal, &sink, resumed.is_some()).await;
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(&self.principal_of_task::<GetTaskMethod>(&context)?, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let principal = self.principal_of_task::<UpdateTaskMethod>(&context)?;
        tasks::update(&principal, &request.task_id, request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(&self.principal_of_task::<CancelTaskMethod>(&context)?, &request.task_id).await
    }
}
