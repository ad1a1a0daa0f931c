//! The operations of the protocol, for one caller.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use futures::StreamExt;
use futures::stream::BoxStream;
use rcrt_a2a_types::{A2aError, ErrorKind, Reply, StreamResponse, Task, TaskState};
use rcrt_breadcrumb::{Breadcrumbs, CallDetails, Catalog, Identity, PrivateHost, StoreError, Tenancy, hex};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::card::{Card, card};
use crate::error::from_store;
use crate::follow;
use crate::list;
use crate::params::{Configuration, Get, List, Send, present};
use crate::settings::CardSettings;
use crate::skill;
use crate::task::{self, Included};

/// How long a caller waits for a task that it did not ask to get at once. After that it gets the
/// task as it is, and reads or follows it.
const MAX_WAIT: Duration = Duration::from_mins(5);
/// How long a caller waits until a running call has ended by its cancellation.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// The updates of a task, from its present state to its end.
pub type Updates = BoxStream<'static, Result<StreamResponse, A2aError>>;

/// One caller's view of its tenant.
pub struct A2aAgent {
    pub identity: Identity,
    /// With the rights of the caller.
    pub store: Arc<dyn Breadcrumbs>,
    /// With the rights of a runner: reads all records of the tenant.
    pub tenant: Arc<dyn Breadcrumbs>,
    pub tenancy: Arc<dyn Tenancy>,
    /// Every caller is the operator.
    pub is_open: bool,
    /// The private hosts that the operator allows.
    pub allowed_private: Vec<PrivateHost>,
    /// Ends waits and streams.
    pub stop: CancellationToken,
}

impl A2aAgent {
    /// Makes a task of a message, and waits for its end unless the caller wants it at once.
    pub async fn send(&self, send: Send) -> Result<Reply, A2aError> {
        let configuration = send.configuration.as_ref();
        let history = configuration.map_or(Ok(true), Configuration::history)?;
        let is_at_once = configuration.and_then(|configuration| configuration.return_immediately) == Some(true);
        let id = self.start(&send).await?;
        if !is_at_once {
            self.ended(id, MAX_WAIT).await?;
        }
        let details = self.own(&id.to_string()).await?;
        Ok(Reply::Task(task::of_details(&details, Included { history, artifacts: true })))
    }

    /// The same, with each update.
    pub async fn stream(&self, send: Send) -> Result<Updates, A2aError> {
        let id = self.start(&send).await?;
        self.follow(id).await
    }

    pub async fn get(&self, get: &Get) -> Result<Task, A2aError> {
        let history = get.history()?;
        Ok(task::of_details(&self.own(&get.id).await?, Included { history, artifacts: true }))
    }

    /// The caller's tasks, newest first.
    pub async fn list(&self, list: &List) -> Result<Value, A2aError> {
        list::list(self, list).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Task, A2aError> {
        let details = self.own(id).await?;
        let refused = || A2aError::new(ErrorKind::TaskNotCancelable, format!("the task {id:.100} has already ended"));
        if task::state(&details.summary).is_terminal() {
            return Err(refused());
        }
        let request = details.summary.call.request;
        self.store.cancel(request).await.map_err(from_store)?;
        self.ended(request, CANCEL_WAIT).await?;
        let task = task::of_details(&self.own(id).await?, task::ALL);
        match task.status.state {
            TaskState::Completed | TaskState::Failed | TaskState::Rejected => Err(refused()),
            _ => Ok(task),
        }
    }

    /// The updates of a task that has not ended.
    pub async fn subscribe(&self, id: &str) -> Result<Updates, A2aError> {
        let details = self.own(id).await?;
        if task::state(&details.summary).is_terminal() {
            let why = format!("the task {id:.100} has ended, so it has no updates; read it instead");
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why));
        }
        self.follow(details.summary.call.request).await
    }

    /// The card with the skills that this caller can use. `url`: of the interface.
    pub async fn extended_card(&self, url: &str) -> Result<Value, A2aError> {
        let settings = self.settings().await?;
        let catalog = Catalog::read(&*self.tenant).await.map_err(from_store)?;
        let catalog = self.callable(catalog).await.map_err(from_store)?;
        Ok(card(&Card { settings: &settings, catalog: &catalog, url }))
    }

    async fn settings(&self) -> Result<CardSettings, A2aError> {
        let settings = CardSettings::of(&*self.tenancy, self.identity.owner_id, &self.tenant, self.is_open).await;
        settings.map_err(from_store)
    }

    /// The tools that the caller can call.
    async fn callable(&self, catalog: Option<Catalog>) -> Result<Catalog, StoreError> {
        let catalog = catalog.unwrap_or_default();
        let catalog = match self.store.allowed_tools().await? {
            Some(allowed) => catalog.for_allowed(&allowed),
            None => catalog,
        };
        Ok(catalog.for_profile(self.identity.profile).without_removed(Utc::now()))
    }

    /// Writes the request that a message asks for, and returns its id.
    async fn start(&self, send: &Send) -> Result<Uuid, A2aError> {
        skill::check(send)?;
        let message = &send.message;
        let push =
            send.configuration.as_ref().and_then(|configuration| configuration.task_push_notification_config.as_ref());
        if let Some(push) = push {
            self.check_push(push)?;
        }
        if let Some(id) = present(message.task_id.as_ref()) {
            let own = self.own(id).await?;
            let context_id = task::context_id(&own.summary);
            if present(message.context_id.as_ref()).is_some_and(|given| given != context_id) {
                return Err(A2aError::invalid("message.contextId", "is not the context of the task in message.taskId"));
            }
            let why = "a task takes no second message; leave taskId out, and send the same contextId to continue the \
                       conversation";
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, why));
        }
        let settings = self.settings().await?;
        let tool = skill::chosen(send, &settings)?;
        let is_text = message.parts.iter().all(|part| part.text.is_some());
        let catalog = if is_text {
            let catalog = Catalog::read_with(&*self.tenant, tool).await.map_err(from_store)?;
            self.callable(catalog).await.map_err(from_store)?
        } else {
            Catalog::default()
        };
        let input = skill::input(message, catalog.find(tool).map(|tool| &tool.parameters))?;
        // The same for each repetition of the message, so that it gets the same task.
        let digest = hex(&Sha256::digest(json!([self.identity.agent_id, message]).to_string()));
        let context_id = present(message.context_id.as_ref()).unwrap_or(&digest[..32]);
        let record = skill::request(tool, input, message, context_id);
        let key = format!("a2a:{}", record.fingerprint());
        let id = self.store.create(record, Some(&key)).await.map_err(from_store)?.id;
        // The caller reads the task after this, so it misses no update.
        if let Some(push) = push {
            self.create_push(&push.of_task(id)).await?;
        }
        Ok(id)
    }

    /// The call behind a task. A call of another agent does not exist for the caller.
    pub(crate) async fn own(&self, id: &str) -> Result<CallDetails, A2aError> {
        let request: Uuid = id.parse().map_err(|_| A2aError::task_not_found(id))?;
        let details = self.store.call_details(request).await.map_err(from_store)?;
        if details.summary.agent_id != Some(self.identity.agent_id) {
            return Err(A2aError::task_not_found(id));
        }
        Ok(details)
    }

    async fn follow(&self, request: Uuid) -> Result<Updates, A2aError> {
        follow::follow(self, request).await
    }

    /// Waits until the task has ended, for this time at most.
    async fn ended(&self, request: Uuid, most: Duration) -> Result<(), A2aError> {
        let mut updates = self.follow(request).await?;
        let end = async {
            while let Some(update) = updates.next().await {
                update?;
            }
            Ok(())
        };
        timeout(most, end).await.unwrap_or(Ok(()))
    }
}
