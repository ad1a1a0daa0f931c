//! The updates of a task, made of the events of its call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::unfold;
use rcrt_a2a_types::{A2aError, ArtifactUpdate, StatusUpdate, StreamResponse, Task, TaskState, TaskStatus};
use rcrt_breadcrumb::{
    Breadcrumbs, Event, Selector, SubscribeOptions, SubscriptionItem, SubscriptionStream, ToolResponse, schema_names,
};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::{A2aAgent, Updates};
use crate::error::from_store;
use crate::task;

/// How often the state of a queued call is read, since its start creates no event.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The task as it is now, then each update until it has ended.
pub(crate) async fn follow(agent: &A2aAgent, request: Uuid) -> Result<Updates, A2aError> {
    let request_id = agent.own(&request.to_string()).await?.summary.request_id;
    let filter = Selector { all_tags: vec![ToolResponse::tag(&request_id)], ..Selector::default() };
    let options = SubscribeOptions { after: None, filters: vec![filter], by_selectors: false };
    let events = agent.store.subscribe(options).await.map_err(from_store)?;
    // Read after the subscription began, so that no change is missed.
    let task = task::of_details(&agent.own(&request.to_string()).await?, task::ALL);
    let mut looks = interval(LOOK_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let follower = Follower {
        store: agent.store.clone(),
        stop: agent.stop.clone(),
        request,
        events,
        looks,
        shown: task.status.state,
        updates: VecDeque::from([StreamResponse::Task(task.clone())]),
        task,
    };
    let updates = unfold(Some(follower), |follower| async {
        let mut follower = follower?;
        match follower.next().await? {
            Ok(update) => Some((Ok(update), Some(follower))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(updates.boxed())
}

struct Follower {
    store: Arc<dyn Breadcrumbs>,
    stop: CancellationToken,
    request: Uuid,
    events: SubscriptionStream,
    looks: Interval,
    /// As it was at first: for its ids.
    task: Task,
    /// The state that the caller knows.
    shown: TaskState,
    /// What the caller gets next.
    updates: VecDeque<StreamResponse>,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<StreamResponse, A2aError>> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                return Some(Ok(update));
            }
            if self.shown.is_terminal() {
                return None;
            }
            let looked = tokio::select! {
                () = self.stop.cancelled() => return None,
                item = self.events.next() => match item? {
                    Ok(SubscriptionItem::Event(event)) => self.take(&event).await,
                    Ok(SubscriptionItem::Skipped(_)) => Ok(()),
                    Ok(SubscriptionItem::Missed { .. }) => self.look().await,
                    Err(error) => Err(from_store(error)),
                },
                _ = self.looks.tick(), if self.shown == TaskState::Submitted => self.look().await,
            };
            if let Err(error) = looked {
                return Some(Err(error));
            }
        }
    }

    async fn take(&mut self, event: &Event) -> Result<(), A2aError> {
        match event.schema_name.as_deref() {
            Some(schema_names::TOOL_PROGRESS) => {
                if let Some(update) = task::progress(&event.context, &self.task.id, &self.task.context_id) {
                    self.status(update.status);
                }
            }
            Some(schema_names::TOOL_RESPONSE) => self.look().await?,
            _ => {}
        }
        Ok(())
    }

    /// Shows the state of the call, if the caller does not know it.
    async fn look(&mut self) -> Result<(), A2aError> {
        let details = self.store.call_details(self.request).await.map_err(from_store)?;
        if task::state(&details.summary) == self.shown {
            return Ok(());
        }
        if let Some(artifact) = task::artifact(&details) {
            let Task { id: task_id, context_id, .. } = self.task.clone();
            let update = ArtifactUpdate { task_id, context_id, artifact, append: false, last_chunk: true };
            self.updates.push_back(StreamResponse::ArtifactUpdate(update));
        }
        self.status(task::of_details(&details, task::ALL).status);
        Ok(())
    }

    fn status(&mut self, status: TaskStatus) {
        self.shown = status.state;
        let Task { id: task_id, context_id, .. } = self.task.clone();
        self.updates.push_back(StreamResponse::StatusUpdate(StatusUpdate { task_id, context_id, status }));
    }
}
