//! `invoke_agent`: asks another agent to do something, or answers its question.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{TimeDelta, Utc};
use futures::StreamExt;
use rcrt_a2a_types::{Message, Reply, Task, TaskState};
use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{
    BreadcrumbQuery, Breadcrumbs, PushToken, Selector, StoreError, SubscribeOptions, SubscriptionItem,
    SubscriptionStream, ToolFailure, push_path,
};
use rcrt_egress::Origin;
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::A2a;
use crate::agent::AgentRecord;
use crate::answer::RemoteError;
use crate::delivery::{Sent, deliver};
use crate::directory::KnownAgent;
use crate::failures::{denied, failed, invalid, store_failed};
use crate::remote::{Remote, rules_of};
use crate::task::{Status, TASK_SCHEMA, TaskRecord, text_of};
use crate::task_records::{self, StoredTask, call_tag};
use crate::updates::{self, Updates};

pub(crate) struct InvokeAgent(pub Arc<A2a>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    agent_name: String,
    skill: Option<String>,
    message: String,
    data: Option<Value>,
    #[serde(default = "five")]
    timeout_minutes: u32,
    #[serde(default = "thirty")]
    wait_seconds: u32,
    /// Answers the question of this task.
    task_id: Option<Uuid>,
}

fn five() -> u32 {
    5
}

fn thirty() -> u32 {
    30
}

#[async_trait]
impl InputTool for InvokeAgent {
    const NAME: &'static str = "invoke_agent";
    type Input = Input;

    async fn run(&self, input: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let known = self.0.find(call, &input.agent_name).await?;
        if self.0.is_own(&known.agent.card.interface) {
            return Err(invalid("agent_name", "is this installation itself; call the tool directly instead"));
        }
        let filter = Selector {
            all_tags: vec!["a2a:task".into()],
            schema_name: Some(TASK_SCHEMA.into()),
            ..Selector::default()
        };
        // Before the message is sent, so that no change is missed.
        let options = SubscribeOptions { after: None, filters: vec![filter], by_selectors: false };
        let changes = self.0.store.subscribe(options).await.map_err(store_failed)?;
        let until = Instant::now() + Duration::from_secs(input.wait_seconds.into());
        let stored = match input.task_id {
            None => self.begin(call, &known, &input, until).await?,
            Some(id) => self.answer(call, &known, &input, id, until).await?,
        };
        let stored = wait(&*self.0.store, stored, changes, until).await.map_err(store_failed)?;
        outcome(&stored)
    }
}

impl InvokeAgent {
    /// Writes the task, then sends its message. A repeated attempt of the same call sends nothing
    /// again.
    async fn begin(
        &self,
        call: &ToolCall,
        known: &KnownAgent,
        input: &Input,
        until: Instant,
    ) -> Result<StoredTask, ToolFailure> {
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
        let push = self.push_token(agent);
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
            given_up: false,
            push_hash: push.as_ref().map(PushToken::hash),
            woken_at: None,
            asked_by: call.request.agent_id,
            begun_by: call.request.id,
            call: call.request.id,
            tool_id: call.tool_id,
            runner: self.0.runner,
            began_at: now,
            sent_at: now,
            deadline_at: now + TimeDelta::minutes(input.timeout_minutes.into()),
            ended_at: None,
        };
        if let Some(begun) = self.begun(call).await? {
            return Ok(begun);
        }
        // As the caller, so that the caller sees it.
        let created = call.breadcrumbs.create(task_records::new(&task), None).await.map_err(store_failed)?;
        let (id, version, owner_id) = (created.id, created.version, call.owner_id);
        let stored = StoredTask { id, owner_id, version, task };
        let message = stored.task.next_message(id.to_string(), &input.message, input.data.as_ref());
        self.send(call, known, stored, Outgoing { message, push }, until).await
    }

    /// The token of the notifications about a new message, if the agent can send them to here.
    fn push_token(&self, agent: &AgentRecord) -> Option<PushToken> {
        (agent.card.push && self.0.settings.public_url.is_some()).then(PushToken::random)
    }

    /// The push configuration with this token.
    fn push_config(&self, stored: &StoredTask, token: &PushToken) -> Option<Value> {
        let base = self.0.settings.public_url.as_ref()?;
        let (url, token) = (format!("{base}{}", push_path(stored.owner_id, stored.id)), token.as_str());
        // Agents differ in which of the two they send.
        let authentication = json!({"scheme": "Bearer", "credentials": token});
        Some(json!({"id": stored.id, "url": url, "token": token, "authentication": authentication}))
    }

    /// The task that an earlier attempt of this call began.
    async fn begun(&self, call: &ToolCall) -> Result<Option<StoredTask>, ToolFailure> {
        let query = BreadcrumbQuery::tagged(call_tag(call.request.id));
        let rows = self.0.store.list(&query).await.map_err(store_failed)?;
        let Some(row) = rows.iter().find(|row| row.schema_name.as_deref() == Some(TASK_SCHEMA)) else {
            return Ok(None);
        };
        task_records::get(&*self.0.store, row.id).await.map(Some).map_err(store_failed)
    }

    /// Answers the question of a task of the same agent that asked it.
    async fn answer(
        &self,
        call: &ToolCall,
        known: &KnownAgent,
        input: &Input,
        id: Uuid,
        until: Instant,
    ) -> Result<StoredTask, ToolFailure> {
        let unknown = || invalid("task_id", format!("there is no task {id} of this caller"));
        let stored = match task_records::get(&*self.0.store, id).await {
            Ok(stored) if stored.task.asked_by == call.request.agent_id => stored,
            Ok(_) | Err(StoreError::NotFound { .. }) => return Err(unknown()),
            Err(error) => return Err(store_failed(error)),
        };
        if !known.has_name(&stored.task.agent) {
            return Err(invalid("agent_name", format!("the task is one of the agent {}", stored.task.agent)));
        }
        let this = call.request.id;
        if stored.task.call == this {
            // A repeated attempt of the same call.
            return Ok(stored);
        }
        let refused = |is: Status| {
            invalid("task_id", format!("the task does not wait for an answer; its status is {}", status(is)))
        };
        if stored.task.status != Status::InputRequired {
            return Err(refused(stored.task.status));
        }
        let now = Utc::now();
        let deadline = now + TimeDelta::minutes(input.timeout_minutes.into());
        let push = self.push_token(&known.agent);
        let hash = push.as_ref().map(PushToken::hash);
        let take = |task: &mut TaskRecord| {
            let takes = task.take_answer(this, now, deadline);
            if takes {
                task.push_hash.clone_from(&hash);
            }
            takes
        };
        let stored = task_records::change(&self.0, stored, take).await.map_err(store_failed)?;
        if stored.task.call != this {
            // Another call answered first.
            return Err(refused(stored.task.status));
        }
        let message_id = format!("{id}-{}", stored.task.rounds);
        let message = stored.task.next_message(message_id, &input.message, input.data.as_ref());
        self.send(call, known, stored, Outgoing { message, push }, until).await
    }

    /// Sends a message, and writes what came back. While the agent sends updates, follows them.
    async fn send(
        &self,
        call: &ToolCall,
        known: &KnownAgent,
        stored: StoredTask,
        outgoing: Outgoing,
        until: Instant,
    ) -> Result<StoredTask, ToolFailure> {
        call.progress.report(None, &format!("asking {}", known.agent.name));
        let settings = &self.0.settings;
        let remote = match self.way(call, known).await {
            Ok(remote) => remote,
            Err(failure) => {
                let take_back = |task: &mut TaskRecord| task.take_back(&failure.message, Utc::now(), settings);
                self.write(stored, take_back).await?;
                return Err(failure);
            }
        };
        let interface = stored.task.interface.clone();
        let is_streamed = known.agent.card.streaming && until > Instant::now();
        let push = outgoing.push.and_then(|token| self.push_config(&stored, &token));
        let message = Sent { interface: &interface, message: &outgoing.message, is_streamed };
        let (reply, updates) = match deliver(&remote, &message, push.as_ref()).await {
            Ok(delivered) => delivered,
            Err(error) => return self.fail(known, stored, &error).await,
        };
        let mut stored = self.write(stored, |task| task.take_reply(&reply, Utc::now(), settings)).await?;
        let mut is_asking = matches!(&reply, Reply::Task(task) if task.status.state.is_interrupted());
        if let (Reply::Task(task), Some(updates)) = (reply, updates) {
            (stored, is_asking) = self.follow(call, stored, task, updates, until).await?;
        }
        // It asked too often, so nobody answers.
        if let Some(id) = stored.task.remote_task_id.as_ref().filter(|_| is_asking && stored.task.status.is_final())
            && let Err(error) = remote.cancel(&interface, id).await
        {
            tracing::info!(agent = known.agent.name, %error, "an agent does not cancel a task");
        }
        Ok(stored)
    }

    /// Takes updates until the task needs its caller, the stream ends, or the time is up. The
    /// runner's follower continues from there. Also returns whether the agent asks something.
    async fn follow(
        &self,
        call: &ToolCall,
        mut stored: StoredTask,
        mut task: Task,
        mut updates: Updates,
        until: Instant,
    ) -> Result<(StoredTask, bool), ToolFailure> {
        while stored.task.status == Status::Working {
            let update = match timeout_at(until, updates.next()).await {
                Ok(Some(Ok(update))) => update,
                Ok(Some(Err(error))) => {
                    tracing::info!(task = %stored.id, %error, "the updates of an agent ended; it is asked instead");
                    break;
                }
                Ok(None) | Err(_) => break,
            };
            updates::add(&mut task, update);
            if task.status.state == TaskState::Working
                && let Some(said) = task.status.message.take()
            {
                call.progress.report(None, &line(&text_of(&said.parts), 200));
            }
            let take = |record: &mut TaskRecord| record.take(&task, Utc::now(), &self.0.settings);
            stored = task_records::change(&self.0, stored, take).await.map_err(store_failed)?;
        }
        Ok((stored, task.status.state.is_interrupted()))
    }

    /// Writes that a message was not accepted, or that this is not known.
    async fn fail(
        &self,
        known: &KnownAgent,
        stored: StoredTask,
        error: &RemoteError,
    ) -> Result<StoredTask, ToolFailure> {
        let doubt = if error.is_refusal() { "" } else { "; the agent may have received the message or not" };
        let message = format!("the agent {} cannot be asked: {error}{doubt}", known.agent.name);
        let settings = &self.0.settings;
        let is_unsent = matches!(error, RemoteError::Refused(_));
        let end = |task: &mut TaskRecord| {
            if is_unsent {
                task.take_back(&message, Utc::now(), settings);
            } else {
                task.end(Status::Failed, Some(message.clone()), Utc::now());
            }
        };
        self.write(stored, end).await?;
        Err(if is_unsent { denied(message) } else { failed(message) })
    }

    async fn way(&self, call: &ToolCall, known: &KnownAgent) -> Result<Remote<'_>, ToolFailure> {
        self.0.remote(&known.agent, rules_of(call)?, call.tool_id, Origin::from(call)).await
    }

    async fn write(
        &self,
        stored: StoredTask,
        change: impl Fn(&mut TaskRecord) + Send,
    ) -> Result<StoredTask, ToolFailure> {
        let change = move |task: &mut TaskRecord| {
            change(task);
            true
        };
        task_records::change(&self.0, stored, change).await.map_err(store_failed)
    }
}

/// A message that is not sent yet, and the token of the notifications about it.
struct Outgoing {
    message: Message,
    push: Option<PushToken>,
}

/// Waits until the task needs its caller, or the time is up.
async fn wait(
    store: &dyn Breadcrumbs,
    mut stored: StoredTask,
    mut changes: SubscriptionStream,
    until: Instant,
) -> Result<StoredTask, StoreError> {
    while matches!(stored.task.status, Status::Sending | Status::Working) {
        match timeout_at(until, changes.next()).await {
            Ok(Some(Ok(SubscriptionItem::Event(event)))) if event.breadcrumb_id == stored.id => {
                stored = task_records::get(store, stored.id).await?;
            }
            Ok(Some(Ok(SubscriptionItem::Missed { .. }))) => {
                stored = task_records::get(store, stored.id).await?;
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
