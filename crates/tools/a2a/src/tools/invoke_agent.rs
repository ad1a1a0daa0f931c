//! `invoke_agent`: asks another agent to do something, or answers its question.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{TimeDelta, Utc};
use futures::StreamExt;
use rcrt_a2a_types::Reply;
use rcrt_breadcrumb::{Selector, StoreError, SubscribeOptions, SubscriptionItem, SubscriptionStream, ToolFailure};
use rcrt_egress::Origin;
use rcrt_executors::{NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use url::Url;
use uuid::Uuid;

use crate::A2a;
use crate::directory::{Known, rules_of};
use crate::failures::{failed, from_store, invalid, read_input};
use crate::remote::{Remote, RemoteError};
use crate::task::{Status, TASK_SCHEMA, TaskRecord};
use crate::task_records::{self, StoredTask, call_tag};

pub(crate) struct InvokeAgent(pub Arc<A2a>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    agent_name: String,
    #[serde(default)]
    skill: Option<String>,
    message: String,
    #[serde(default)]
    data: Option<Value>,
    #[serde(default = "five")]
    timeout_minutes: u32,
    #[serde(default = "thirty")]
    wait_seconds: u32,
    /// Answers the question of this task.
    #[serde(default)]
    task_id: Option<Uuid>,
}

fn five() -> u32 {
    5
}

fn thirty() -> u32 {
    30
}

#[async_trait]
impl NativeTool for InvokeAgent {
    fn name(&self) -> &'static str {
        "invoke_agent"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let input: Input = read_input(call)?;
        let known = self.0.find(call, &input.agent_name).await?;
        self.refuse_self(&known)?;
        let filter = Selector {
            all_tags: vec!["a2a:task".into()],
            schema_name: Some(TASK_SCHEMA.into()),
            ..Selector::default()
        };
        // Before the message is sent, so that no change is missed.
        let options = SubscribeOptions { after: None, filters: vec![filter], by_selectors: false };
        let changes = call.breadcrumbs.subscribe(options).await.map_err(from_store)?;
        let until = Instant::now() + Duration::from_secs(input.wait_seconds.into());
        let stored = match input.task_id {
            None => self.begin(call, &known, &input).await?,
            Some(id) => self.answer(call, &known, &input, id).await?,
        };
        let stored = wait(call, stored, changes, until).await.map_err(from_store)?;
        outcome(&stored)
    }
}

impl InvokeAgent {
    fn refuse_self(&self, known: &Known) -> Result<(), ToolFailure> {
        let origin = Url::parse(&known.agent.card.interface.url).map(|url| url.origin().ascii_serialization());
        let is_own = |own: &String| Url::parse(own).map(|url| url.origin().ascii_serialization()) == origin;
        if self.0.settings.own_origins.iter().any(is_own) {
            let why = "is this installation itself; call the tool directly instead";
            return Err(invalid("agent_name", why));
        }
        Ok(())
    }

    /// Writes the task, then sends its message. A repeated attempt of the same call sends nothing
    /// again.
    async fn begin(&self, call: &ToolCall, known: &Known, input: &Input) -> Result<StoredTask, ToolFailure> {
        let agent = &known.agent;
        let skill = match &input.skill {
            None => None,
            Some(id) => {
                let ids: Vec<&str> = agent.card.skills.iter().map(|skill| skill.id.as_str()).collect();
                let found = agent.skill(id).ok_or_else(|| {
                    invalid(
                        "skill",
                        format!("{:?} is no skill of {}; its skills are: {}", id, agent.name, ids.join(", ")),
                    )
                })?;
                Some(found.id.clone())
            }
        };
        let now = Utc::now();
        let task = TaskRecord {
            agent: agent.name.clone(),
            skill,
            message: input.message.clone(),
            status: Status::Sending,
            result: None,
            error: None,
            question: None,
            remote_task_id: None,
            context_id: None,
            interface: agent.card.interface.clone(),
            rounds: 0,
            same: 0,
            question_id: None,
            late: false,
            asked_by: call.request.agent_id,
            call: call.request.id,
            tool_id: call.tool_id,
            runner: self.0.runner,
            began_at: now,
            deadline_at: now + TimeDelta::minutes(input.timeout_minutes.into()),
            ended_at: None,
        };
        if let Some(begun) = self.begun(call).await? {
            return Ok(begun);
        }
        let created = call.breadcrumbs.create(task_records::new(&task), None).await.map_err(from_store)?;
        let (id, version, owner_id) = (created.id, created.version, call.owner_id);
        let stored = StoredTask { id, owner_id, version, task };
        let message = stored.task.next_message(id.to_string(), &input.message, input.data.as_ref());
        self.send(call, known, stored, message).await
    }

    /// The task that an earlier attempt of this call began.
    async fn begun(&self, call: &ToolCall) -> Result<Option<StoredTask>, ToolFailure> {
        let query = rcrt_breadcrumb::BreadcrumbQuery::tagged(call_tag(call.request.id));
        let rows = call.breadcrumbs.list(&query).await.map_err(from_store)?;
        let Some(row) = rows.iter().find(|row| row.schema_name.as_deref() == Some(TASK_SCHEMA)) else {
            return Ok(None);
        };
        task_records::get(&*call.breadcrumbs, row.id).await.map(Some).map_err(from_store)
    }

    /// Answers the question of a task of the same agent that asked it.
    async fn answer(&self, call: &ToolCall, known: &Known, input: &Input, id: Uuid) -> Result<StoredTask, ToolFailure> {
        let unknown = || invalid("task_id", format!("there is no task {id} of this caller"));
        let stored = match task_records::get(&*call.breadcrumbs, id).await {
            Ok(stored) if stored.task.asked_by == call.request.agent_id => stored,
            Ok(_) | Err(StoreError::NotFound { .. }) => return Err(unknown()),
            Err(error) => return Err(from_store(error)),
        };
        if !stored.task.agent.eq_ignore_ascii_case(&known.agent.name) {
            return Err(invalid("agent_name", format!("the task is one of the agent {}", stored.task.agent)));
        }
        if stored.task.status != Status::InputRequired {
            let why = format!("the task does not wait for an answer; its status is {}", status(stored.task.status));
            return Err(invalid("task_id", why));
        }
        let deadline = Utc::now() + TimeDelta::minutes(input.timeout_minutes.into());
        let take = |task: &mut TaskRecord| {
            let is_waiting = task.status == Status::InputRequired;
            if is_waiting {
                (task.status, task.deadline_at) = (Status::Sending, deadline);
            }
            is_waiting
        };
        let stored =
            task_records::change(&*call.breadcrumbs, stored, &self.0.settings, take).await.map_err(from_store)?;
        let message_id = format!("{id}-{}", stored.task.rounds);
        let message = stored.task.next_message(message_id, &input.message, input.data.as_ref());
        self.send(call, known, stored, message).await
    }

    /// Sends a message, and writes what came back.
    async fn send(
        &self,
        call: &ToolCall,
        known: &Known,
        stored: StoredTask,
        message: rcrt_a2a_types::Message,
    ) -> Result<StoredTask, ToolFailure> {
        call.progress.report(None, &format!("asking {}", known.agent.name));
        let settings = &self.0.settings;
        let remote = match self.way(call, known).await {
            Ok(remote) => remote,
            Err(failure) => {
                let message = failure.message.clone();
                self.give_up(call, stored, message).await?;
                return Err(failure);
            }
        };
        let sent = remote.send(&stored.task.interface, &message).await;
        let now = Utc::now();
        match sent {
            Ok(reply) => {
                let take = |task: &mut TaskRecord| {
                    task.take_reply(&reply, now, settings);
                    true
                };
                let changed = task_records::change(&*call.breadcrumbs, stored, settings, take).await;
                let stored = changed.map_err(from_store)?;
                let is_asking = matches!(&reply, Reply::Task(task) if task.status.state.is_interrupted());
                // It asked too often, so nobody answers.
                if let Some(id) =
                    stored.task.remote_task_id.as_ref().filter(|_| is_asking && stored.task.status.is_final())
                    && let Err(error) = remote.cancel(&stored.task.interface, id).await
                {
                    tracing::info!(agent = known.agent.name, %error, "an agent does not cancel a task");
                }
                Ok(stored)
            }
            Err(error) => {
                let doubt = if error.is_refusal() { "" } else { "; the agent may have received the message or not" };
                let message = format!("the agent {} cannot be asked: {error}{doubt}", known.agent.name);
                self.give_up(call, stored, message.clone()).await?;
                Err(match error {
                    RemoteError::Refused(_) => crate::failures::denied(message),
                    _ => failed(message),
                })
            }
        }
    }

    async fn way(&self, call: &ToolCall, known: &Known) -> Result<Remote<'_>, ToolFailure> {
        let rules = rules_of(call)?;
        self.0.remote(&*call.breadcrumbs, &known.agent, rules, call.tool_id, Origin::from(call)).await
    }

    async fn give_up(&self, call: &ToolCall, stored: StoredTask, why: String) -> Result<(), ToolFailure> {
        let end = |task: &mut TaskRecord| {
            task.end(Status::Failed, Some(why.clone()), Utc::now());
            true
        };
        task_records::change(&*call.breadcrumbs, stored, &self.0.settings, end).await.map_err(from_store)?;
        Ok(())
    }
}

/// Waits until the task needs its caller, or the time is up.
async fn wait(
    call: &ToolCall,
    stored: StoredTask,
    mut changes: SubscriptionStream,
    until: Instant,
) -> Result<StoredTask, StoreError> {
    let mut stored = stored;
    while matches!(stored.task.status, Status::Sending | Status::Working) {
        match timeout_at(until, changes.next()).await {
            Ok(Some(Ok(SubscriptionItem::Event(event)))) if event.breadcrumb_id == stored.id => {
                stored = task_records::get(&*call.breadcrumbs, stored.id).await?;
            }
            Ok(Some(Ok(SubscriptionItem::Missed { .. }))) => {
                stored = task_records::get(&*call.breadcrumbs, stored.id).await?;
            }
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => return Err(error),
            Ok(None) | Err(_) => break,
        }
    }
    Ok(stored)
}

fn status(status: Status) -> String {
    json!(status).as_str().unwrap_or_default().to_owned()
}

fn outcome(stored: &StoredTask) -> Result<Value, ToolFailure> {
    let task = &stored.task;
    let mut shown = json!({"task_id": stored.id, "agent": task.agent, "status": status(task.status)});
    match task.status {
        Status::Failed | Status::Canceled | Status::Rejected | Status::TimedOut => {
            let why = task.error.as_deref().unwrap_or("without a reason");
            let message = format!("the agent {} did not do it ({}): {why}", task.agent, status(task.status));
            return Err(failed(message).with_details(shown));
        }
        Status::Completed => shown["result"] = json!(task.result),
        Status::InputRequired => {
            shown["question"] = json!(task.question);
            shown["hint"] = "call invoke_agent with this task_id and the answer as message".into();
        }
        Status::Sending | Status::Working => {
            let hint = "the agent works on it; the record a2a.task.v1 with the id task_id gets the result";
            shown["hint"] = hint.into();
        }
    }
    Ok(shown)
}
