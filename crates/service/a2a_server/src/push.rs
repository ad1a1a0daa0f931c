//! Push notifications: where the updates of one task are posted, and what is posted. The webhooks
//! of the tenant deliver them.

use std::sync::Arc;

use rcrt_a2a_types::{A2aError, ErrorKind, StreamResponse, TOKEN_HEADER};
use rcrt_breadcrumb::{CallWebhook, Event, EventKind, Webhooks, check_webhook_host, schema_names};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::A2aAgent;
use crate::error::from_store;
use crate::params::{Authentication, PushConfig, PushName, present};
use crate::task;

impl PushConfig {
    pub(crate) fn of_task(&self, task: Uuid) -> Self {
        Self { task_id: task.to_string(), ..self.clone() }
    }

    fn headers(&self) -> Result<Vec<(String, String)>, A2aError> {
        let mut headers = Vec::new();
        if let Some(token) = present(self.token.as_ref()) {
            headers.push((TOKEN_HEADER.to_owned(), token.to_owned()));
        }
        if let Some(Authentication { scheme, credentials }) = &self.authentication {
            let is_name = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            if !is_name {
                return Err(A2aError::invalid("authentication.scheme", "must be the name of a scheme, such as Bearer"));
            }
            let Some(credentials) = present(credentials.as_ref()) else {
                return Err(A2aError::invalid(
                    "authentication.credentials",
                    "must be given, because the server cannot ask for it",
                ));
            };
            headers.push(("authorization".to_owned(), format!("{scheme} {credentials}")));
        }
        Ok(headers)
    }
}

impl A2aAgent {
    fn webhooks(&self) -> Arc<dyn Webhooks> {
        self.tenancy.webhooks()
    }

    /// Adds a configuration to a task, or replaces the one with its name. That of an ended task is
    /// kept for minutes, and gets nothing.
    pub async fn create_push(&self, config: &PushConfig) -> Result<Value, A2aError> {
        self.check_push(config)?;
        let details = self.own(&config.task_id).await?;
        let name = present(config.id.as_ref()).map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        let webhook = CallWebhook {
            request: details.summary.call.request,
            request_id: details.summary.request_id.clone(),
            name,
            url: config.url.clone(),
            context_id: task::context_id(&details.summary),
            headers: config.headers()?,
        };
        let shown = shown(&webhook);
        let (owner_id, agent_id) = (self.identity.owner_id, self.identity.agent_id);
        self.webhooks().create_call_webhook(owner_id, agent_id, webhook).await.map_err(from_store)?;
        Ok(shown)
    }

    /// Checks a configuration, whether or not there is a task.
    pub(crate) fn check_push(&self, config: &PushConfig) -> Result<(), A2aError> {
        let nil = Uuid::nil();
        let webhook = CallWebhook {
            request: nil,
            request_id: String::new(),
            name: present(config.id.as_ref()).unwrap_or("new").to_owned(),
            url: config.url.clone(),
            context_id: String::new(),
            headers: config.headers()?,
        };
        let checked = webhook.check().and_then(|()| check_webhook_host(&self.allowed_private, &webhook.url));
        checked.map_err(|found| from_store(found.into()))
    }

    pub async fn get_push(&self, name: &PushName) -> Result<Value, A2aError> {
        let found = self.pushes(&name.task_id).await?.into_iter().find(|webhook| webhook.name == name.id);
        found.as_ref().map(shown).ok_or_else(|| unknown(name))
    }

    /// All configurations of a task, in one page.
    pub async fn list_push(&self, name: &PushName) -> Result<Value, A2aError> {
        let configs: Vec<Value> = self.pushes(&name.task_id).await?.iter().map(shown).collect();
        Ok(json!({"configs": configs, "nextPageToken": ""}))
    }

    /// Also succeeds if the configuration does not exist, as the protocol requires.
    pub async fn delete_push(&self, name: &PushName) -> Result<Value, A2aError> {
        let request = self.own(&name.task_id).await?.summary.call.request;
        let (owner_id, agent_id) = (self.identity.owner_id, self.identity.agent_id);
        self.webhooks().delete_call_webhook(owner_id, agent_id, request, &name.id).await.map_err(from_store)?;
        Ok(json!({}))
    }

    async fn pushes(&self, task: &str) -> Result<Vec<CallWebhook>, A2aError> {
        let request = self.own(task).await?.summary.call.request;
        let (owner_id, agent_id) = (self.identity.owner_id, self.identity.agent_id);
        self.webhooks().call_webhooks(owner_id, agent_id, request).await.map_err(from_store)
    }
}

/// Never its token or credentials.
fn shown(webhook: &CallWebhook) -> Value {
    json!({"id": webhook.name, "taskId": webhook.request, "url": webhook.url})
}

fn unknown(name: &PushName) -> A2aError {
    let (id, task) = (&name.id, &name.task_id);
    A2aError::new(
        ErrorKind::TaskNotFound,
        format!("there is no push configuration {id:.100?} of the task {task:.100?}"),
    )
}

/// What is posted for an event of a call, the JSON text of an [`Event`]. `None`: the event is no
/// update of the task.
pub fn notification(event: &str, request: Uuid, context_id: &str) -> Option<Value> {
    let event: Event = serde_json::from_str(event).ok().filter(|event: &Event| event.kind == EventKind::Created)?;
    let update = match event.schema_name.as_deref()? {
        schema_names::TOOL_PROGRESS => {
            StreamResponse::StatusUpdate(task::progress(&event.context, &request.to_string(), context_id)?)
        }
        schema_names::TOOL_RESPONSE => StreamResponse::Task(task::of_response(&event, request, context_id.to_owned())?),
        _ => return None,
    };
    Some(json!(update))
}
