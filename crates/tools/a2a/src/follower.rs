//! Follows the tasks that have not ended: looks at them in growing intervals, and writes what came
//! of them. Any number of followers can work on one tenant: the version of a task's record decides
//! who writes.
//!
//! A follower learns of new tasks by events, and reads all unfinished ones at its start and every
//! few minutes. So a task continues when its runner, or the call that began it, has ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use futures::StreamExt;
use futures::stream;
use rcrt_a2a_types::ErrorKind;
use rcrt_breadcrumb::{Breadcrumbs, Host, Selector, StoreError, SubscribeOptions, SubscriptionItem};
use rcrt_egress::{NetRules, Origin};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use crate::A2a;
use crate::directory;
use crate::remote::RemoteError;
use crate::task::{Status, TASK_SCHEMA, TaskRecord};
use crate::task_records::{self, StoredTask};

/// Concurrent looks.
const WIDTH: usize = 8;
/// How often all unfinished tasks are read, in addition to events.
const READ_ALL: Duration = Duration::from_mins(5);
/// Pauses between attempts to follow the events.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a message can be on its way before its sender counts as lost.
const SENDING_TIME: Duration = Duration::from_mins(2);

/// When a task is looked at next, and the interval after that.
#[derive(Debug, Clone, Copy)]
struct Plan {
    at: Instant,
    pause: Duration,
}

pub struct Follower {
    a2a: Arc<A2a>,
    store: Arc<dyn Breadcrumbs>,
    plans: HashMap<Uuid, Plan>,
}

impl Follower {
    pub(crate) fn new(a2a: Arc<A2a>, store: Arc<dyn Breadcrumbs>) -> Self {
        Self { a2a, store, plans: HashMap::new() }
    }

    /// Runs until it is stopped. If the store is unavailable, it waits.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let ended = tokio::select! {
                () = stop.cancelled() => return,
                ended = self.follow() => ended,
            };
            if let Err(error) = ended {
                tracing::warn!(%error, "the tasks of other agents cannot be followed; retrying");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    async fn follow(&mut self) -> Result<(), StoreError> {
        let filter = Selector { schema_name: Some(TASK_SCHEMA.into()), ..Selector::default() };
        let options = SubscribeOptions { after: None, filters: vec![filter], by_selectors: false };
        let mut events = self.store.subscribe(options).await?;
        let mut read_all = Instant::now();
        loop {
            if Instant::now() >= read_all {
                for id in task_records::unfinished(&*self.store).await? {
                    self.plans.entry(id).or_insert(Plan { at: Instant::now(), pause: self.a2a.settings.first_poll });
                }
                read_all = Instant::now() + READ_ALL;
            }
            let next = self.plans.values().map(|plan| plan.at).min().unwrap_or(read_all).min(read_all);
            tokio::select! {
                item = events.next() => match item {
                    Some(Ok(SubscriptionItem::Event(event))) => {
                        if let Ok(task) = TaskRecord::read(&event.context) {
                            self.plan(event.breadcrumb_id, &task);
                        }
                    }
                    Some(Ok(SubscriptionItem::Skipped(_))) => {}
                    Some(Ok(SubscriptionItem::Missed { .. })) => read_all = Instant::now(),
                    Some(Err(error)) => return Err(error),
                    None => return Err(StoreError::Unavailable("the events ended".into())),
                },
                () = tokio::time::sleep_until(next) => self.look_at_due().await,
            }
        }
    }

    /// Plans the first look at a task that was written or changed.
    fn plan(&mut self, id: Uuid, task: &TaskRecord) {
        if task.status.is_final() {
            self.plans.remove(&id);
            return;
        }
        let settings = &self.a2a.settings;
        let pause = if task.runner == self.a2a.runner { settings.first_poll } else { settings.help_after };
        self.plans.insert(id, Plan { at: Instant::now() + pause, pause });
    }

    async fn look_at_due(&mut self) {
        let now = Instant::now();
        let due: Vec<(Uuid, Duration)> =
            self.plans.iter().filter(|(_, plan)| plan.at <= now).map(|(id, plan)| (*id, plan.pause)).collect();
        let looker = &*self;
        let looked: Vec<(Uuid, Option<Duration>)> = stream::iter(due)
            .map(async |(id, pause)| (id, looker.look(id, pause).await))
            .buffer_unordered(WIDTH)
            .collect()
            .await;
        for (id, pause) in looked {
            match pause {
                Some(pause) => self.plans.insert(id, Plan { at: Instant::now() + pause, pause }),
                None => self.plans.remove(&id),
            };
        }
    }

    /// Looks at one task. Returns the time to the next look; `None` if there is none.
    async fn look(&self, id: Uuid, pause: Duration) -> Option<Duration> {
        let settings = &self.a2a.settings;
        let longer = (pause * 2).min(settings.longest_poll.max(pause));
        match self.try_look(id).await {
            Ok(task) if task.status.is_final() => None,
            Ok(task) if task.status == Status::TimedOut => {
                let left = task.deadline_at + settings.keep_late - Utc::now();
                (task.remote_task_id.is_some() && left > chrono::TimeDelta::zero()).then_some(settings.late_poll)
            }
            Ok(_) => Some(longer),
            Err(StoreError::NotFound { .. }) => None,
            Err(error) => {
                tracing::warn!(task = %id, %error, "a task of another agent cannot be followed; retrying");
                Some(longer)
            }
        }
    }

    async fn try_look(&self, id: Uuid) -> Result<TaskRecord, StoreError> {
        let stored = task_records::get(&*self.store, id).await?;
        let now = Utc::now();
        let stored = match (stored.task.status, &stored.task.remote_task_id) {
            (Status::Working | Status::TimedOut, Some(remote_id)) => {
                let remote_id = remote_id.clone();
                self.ask(stored, &remote_id).await?
            }
            (Status::Sending, _) if now > stored.task.began_at + SENDING_TIME => {
                let lost = |task: &mut TaskRecord| {
                    let is_lost = task.status == Status::Sending;
                    if is_lost {
                        let why =
                            "the runner was lost while it sent the message; the agent may have received it or not";
                        task.end(Status::Failed, Some(why.into()), now);
                    }
                    is_lost
                };
                task_records::change(&*self.store, stored, &self.a2a.settings, lost).await?
            }
            _ => stored,
        };
        let stored = task_records::change(&*self.store, stored, &self.a2a.settings, |task| task.time_out(now)).await?;
        Ok(stored.task)
    }

    /// Asks the agent for the task's state. What cannot be known now is asked again later.
    async fn ask(&self, stored: StoredTask, remote_id: &str) -> Result<StoredTask, StoreError> {
        let found = match self.state(&stored, remote_id).await {
            Ok(found) => found,
            Err(RemoteError::Agent(error)) if error.kind == ErrorKind::TaskNotFound => {
                let gone = |task: &mut TaskRecord| {
                    let is_open = !task.status.is_final();
                    if is_open {
                        task.end(Status::Failed, Some("the agent no longer knows the task".into()), Utc::now());
                    }
                    is_open
                };
                return task_records::change(&*self.store, stored, &self.a2a.settings, gone).await;
            }
            Err(error) => {
                tracing::info!(task = %stored.id, agent = stored.task.agent, %error, "an agent does not tell a task's state");
                return Ok(stored);
            }
        };
        let settings = &self.a2a.settings;
        task_records::change(&*self.store, stored, settings, |task| task.take(&found, Utc::now(), settings)).await
    }

    async fn state(&self, stored: &StoredTask, remote_id: &str) -> Result<rcrt_a2a_types::Task, RemoteError> {
        let task = &stored.task;
        let known = directory::all(&*self.store).await.map_err(|error| RemoteError::Network(error.to_string()))?;
        let known = known.into_iter().find(|known| known.agent.name.eq_ignore_ascii_case(&task.agent));
        let agent = known.ok_or_else(|| RemoteError::Refused("the agent is not registered any more".into()))?.agent;
        let url = Url::parse(&task.interface.url).ok();
        let (host, port) = url
            .as_ref()
            .and_then(|url| Host::of(url).zip(url.port_or_known_default()))
            .ok_or_else(|| RemoteError::Refused("the agent's interface has no URL with a host".into()))?;
        let (owner_id, agent_id) = (stored.owner_id, task.asked_by);
        let origin = Origin { owner_id, agent_id, tool_id: Some(task.tool_id), call: Some(task.call) };
        let remote = self.a2a.remote(&*self.store, &agent, NetRules::only(host, port), task.tool_id, origin).await;
        let remote = remote.map_err(|failure| RemoteError::Refused(failure.message))?;
        remote.task(&task.interface, remote_id).await
    }
}
