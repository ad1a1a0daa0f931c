//! Follows the tasks that have not ended: looks at them in growing intervals, and writes what came
//! of them. Any number of followers can work on one tenant: the version of a task's record decides
//! who writes.
//!
//! A follower learns of new tasks by events, and reads all open ones at its start and every few
//! minutes. So a task continues when its runner, or the call that began it, has ended.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use rcrt_a2a_types::{ErrorKind, Task};
use rcrt_breadcrumb::{Host, Selector, StoreError, SubscribeOptions, SubscriptionItem};
use rcrt_egress::{NetRules, Origin};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use crate::A2a;
use crate::answer::{RemoteError, garbage};
use crate::directory::agents;
use crate::task::{Status, TASK_SCHEMA, TaskRecord, short_id};
use crate::task_records::{self, StoredTask};

/// Concurrent looks. A slow agent holds one for the time of a request, so that the others go on.
const WIDTH: usize = 32;
/// How often all open tasks are read, in addition to events.
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

/// The end of a look: the task, and the time to the next one, if there is one.
type Looked = (Uuid, Option<Duration>);

pub(crate) struct Follower {
    a2a: Arc<A2a>,
    plans: HashMap<Uuid, Plan>,
    /// The last notification about each open task.
    woken: HashMap<Uuid, DateTime<Utc>>,
}

impl Follower {
    pub fn new(a2a: Arc<A2a>) -> Self {
        Self { a2a, plans: HashMap::new(), woken: HashMap::new() }
    }

    /// Never ends by itself. If the store is unavailable, it waits.
    pub async fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            if let Err(error) = self.follow().await {
                tracing::warn!(%error, "the tasks of other agents cannot be followed; retrying");
            }
            pause = if began.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow(&mut self) -> Result<(), StoreError> {
        let filter = Selector { schema_name: Some(TASK_SCHEMA.into()), ..Selector::default() };
        let options = SubscribeOptions { after: None, filters: vec![filter], by_selectors: false };
        let mut events = self.a2a.store.subscribe(options).await?;
        let mut read_all = Instant::now();
        let mut looks: FuturesUnordered<BoxFuture<'static, Looked>> = FuturesUnordered::new();
        let mut looked_at: HashSet<Uuid> = HashSet::new();
        loop {
            let now = Instant::now();
            if now >= read_all {
                for id in task_records::open(&*self.a2a.store).await? {
                    self.plans.entry(id).or_insert(Plan { at: now, pause: self.a2a.settings.first_poll });
                }
                read_all = now + READ_ALL;
            }
            for (id, pause) in self.due(&looked_at, WIDTH - looks.len()) {
                self.plans.remove(&id);
                looked_at.insert(id);
                looks.push(Box::pin(look(self.a2a.clone(), id, pause)));
            }
            let waiting = self.plans.iter().filter(|(id, _)| !looked_at.contains(*id)).map(|(_, plan)| plan.at).min();
            // With all looks in use, the next one begins when one of them ends.
            let next = waiting.filter(|_| looks.len() < WIDTH).unwrap_or(read_all).min(read_all);
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
                Some((id, pause)) = looks.next(), if !looks.is_empty() => {
                    looked_at.remove(&id);
                    // An event of the meantime has planned it already.
                    if let Some(pause) = pause {
                        self.plans.entry(id).or_insert(Plan { at: Instant::now() + pause, pause });
                    }
                }
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Tasks to look at now, this many at most.
    fn due(&self, looked_at: &HashSet<Uuid>, most: usize) -> Vec<(Uuid, Duration)> {
        let now = Instant::now();
        let due = self.plans.iter().filter(|(id, plan)| plan.at <= now && !looked_at.contains(*id));
        due.map(|(id, plan)| (*id, plan.pause)).take(most).collect()
    }

    /// Plans the first look at a task that was written or changed. After a push notification it is
    /// looked at at once, and no notification puts a look off.
    fn plan(&mut self, id: Uuid, task: &TaskRecord) {
        if !task.is_open() {
            self.plans.remove(&id);
            self.woken.remove(&id);
            return;
        }
        let settings = &self.a2a.settings;
        let is_own = task.runner == self.a2a.runner;
        let now = Instant::now();
        if let Some(at) = task.woken_at
            && self.woken.insert(id, at) != Some(at)
        {
            // The runner that began it first: its result ends the plans of the others.
            let soon = if is_own { now } else { now + settings.first_poll };
            let plan = self.plans.entry(id).or_insert(Plan { at: soon, pause: settings.first_poll });
            plan.at = plan.at.min(soon);
            return;
        }
        let pause = match task.status {
            Status::TimedOut => settings.late_poll,
            _ if is_own => settings.first_poll,
            _ => settings.help_after,
        };
        self.plans.insert(id, Plan { at: now + pause, pause });
    }
}

/// Looks at one task.
async fn look(a2a: Arc<A2a>, id: Uuid, pause: Duration) -> Looked {
    let settings = &a2a.settings;
    let longer = (pause * 2).min(settings.longest_poll.max(pause));
    let next = match try_look(&a2a, id).await {
        Ok(task) if !task.is_open() => None,
        Ok(task) if task.status == Status::TimedOut => Some(settings.late_poll),
        Ok(_) => Some(longer),
        Err(StoreError::NotFound { .. }) => None,
        Err(error) => {
            tracing::warn!(task = %id, %error, "a task of another agent cannot be followed; retrying");
            Some(longer)
        }
    };
    (id, next)
}

async fn try_look(a2a: &A2a, id: Uuid) -> Result<TaskRecord, StoreError> {
    let stored = task_records::get(&*a2a.store, id).await?;
    let now = Utc::now();
    let stored = match (stored.task.status, &stored.task.remote_task_id) {
        (Status::Working | Status::TimedOut, Some(remote_id)) if stored.task.is_open() => {
            let remote_id = remote_id.clone();
            ask(a2a, stored, &remote_id).await?
        }
        (Status::Sending, _) if now > stored.task.sent_at + SENDING_TIME => {
            let lost = |task: &mut TaskRecord| {
                let is_lost = task.status == Status::Sending;
                if is_lost {
                    let why = "the runner was lost while it sent the message; the agent may have received it or not";
                    task.end(Status::Failed, Some(why.into()), now);
                }
                is_lost
            };
            task_records::change(a2a, stored, lost).await?
        }
        _ => stored,
    };
    let settings = &a2a.settings;
    let ends = |task: &mut TaskRecord| task.time_out(now) | task.give_up(now, settings);
    Ok(task_records::change(a2a, stored, ends).await?.task)
}

/// Asks the agent for the task's state. What cannot be known now is asked again later.
async fn ask(a2a: &A2a, stored: StoredTask, remote_id: &str) -> Result<StoredTask, StoreError> {
    let found = match state(a2a, &stored, remote_id).await {
        Ok(found) => found,
        Err(RemoteError::Agent(error)) if error.kind == ErrorKind::TaskNotFound => {
            let gone = |task: &mut TaskRecord| {
                let is_open = task.is_open();
                if is_open {
                    task.end(Status::Failed, Some("the agent no longer knows the task".into()), Utc::now());
                }
                is_open
            };
            return task_records::change(a2a, stored, gone).await;
        }
        Err(error) => {
            let agent = &stored.task.agent;
            tracing::info!(task = %stored.id, agent, %error, "an agent does not tell a task's state");
            return Ok(stored);
        }
    };
    task_records::change(a2a, stored, |task| task.take(&found, Utc::now(), &a2a.settings)).await
}

async fn state(a2a: &A2a, stored: &StoredTask, remote_id: &str) -> Result<Task, RemoteError> {
    let task = &stored.task;
    let known = agents(&*a2a.store).await.map_err(|error| RemoteError::Network(error.to_string()))?;
    let known = known.into_iter().find(|known| known.has_name(&task.agent));
    let agent = known.ok_or_else(|| RemoteError::Refused("the agent is not registered any more".into()))?.agent;
    let url = Url::parse(&task.interface.url).ok();
    let (host, port) = url
        .as_ref()
        .and_then(|url| Host::of(url).zip(url.port_or_known_default()))
        .ok_or_else(|| RemoteError::Refused("the agent's interface has no URL with a host".into()))?;
    let (owner_id, agent_id) = (stored.owner_id, task.asked_by);
    let origin = Origin { owner_id, agent_id, tool_id: Some(task.tool_id), call: Some(task.call) };
    let remote = a2a.remote(&agent, NetRules::only(host, port), task.tool_id, origin).await;
    let remote = remote.map_err(|failure| RemoteError::Refused(failure.message))?;
    let found = remote.task(&task.interface, remote_id).await?;
    if short_id(&found.id) == remote_id { Ok(found) } else { Err(garbage("is about another task")) }
}
