//! The life of one pod: created, followed until it ends, read, and deleted in any case. A task does
//! all of it, so that a call that is cancelled leaves nothing behind.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::kubernetes::{ApiError, Cluster, Pod};
use crate::order::Order;
use crate::report::MAX_LOG;
use crate::settings::Settings;
use crate::spec::{self, INSTALLER, PROGRAM};

/// How long the log of a pod that ended is asked for, and how long a pod is tried to be deleted.
/// The sweep deletes what is left.
const READING: Duration = Duration::from_secs(15);
const DELETING: Duration = Duration::from_mins(1);

/// Runs pods, a limited number at the same time.
pub struct PodRuns {
    pub cluster: Cluster,
    pub settings: Settings,
    /// Identifies this process in the labels of its pods.
    pub id: Uuid,
    pub tasks: TaskTracker,
    limit: Semaphore,
    live: Mutex<HashSet<String>>,
}

/// A pod that ended.
pub struct Ended {
    pub pod: Pod,
    /// It was still running at the end of its time.
    pub is_late: bool,
    /// The log of the program, or of the installation if that failed.
    pub log: Vec<u8>,
    pub is_installer: bool,
}

impl PodRuns {
    pub fn new(settings: Settings) -> Result<Self, ApiError> {
        Ok(Self {
            cluster: Cluster::new(settings.access.clone())?,
            id: Uuid::new_v4(),
            tasks: TaskTracker::new(),
            limit: Semaphore::new(settings.max_pods),
            live: Mutex::default(),
            settings,
        })
    }

    /// Whether a task of this process takes care of the pod.
    pub fn is_live(&self, name: &str) -> bool {
        self.live.lock().contains(name)
    }

    /// Runs a pod to its end. If the future is dropped, the pod is deleted.
    pub async fn run(self: &Arc<Self>, order: Order) -> Result<Ended, ToolFailure> {
        let cancelled = CancellationToken::new();
        let _on_drop = cancelled.clone().drop_guard();
        let (tell, told) = oneshot::channel();
        let runs = self.clone();
        self.tasks.spawn(async move {
            let place = tokio::select! {
                place = runs.limit.acquire() => place,
                () = cancelled.cancelled() => return,
            };
            runs.live.lock().insert(order.name.clone());
            let ended = runs.lead(&order, &cancelled).await;
            // The result does not wait until the pod is deleted. The place does.
            let _ = tell.send(ended);
            runs.delete(&order.name).await;
            runs.live.lock().remove(&order.name);
            drop(place);
        });
        told.await.unwrap_or_else(|_| Err(failure("the pod was not followed: internal error".to_owned())))
    }

    async fn lead(&self, order: &Order, cancelled: &CancellationToken) -> Result<Ended, ToolFailure> {
        let until = Instant::now() + self.settings.start;
        let not_created = |error: ApiError| failure(format!("the pod cannot be created: {error}"));
        // Not cancelled: a request on its way would create the pod after it was deleted.
        let pod = self.cluster.create_pod(&order.pod, until).await.map_err(not_created)?;
        for (name, key, text) in &order.secrets {
            let secret = spec::secret(name, key, text, &pod);
            self.cluster.create_secret(&secret, until).await.map_err(not_created)?;
        }
        tokio::select! {
            ended = self.follow(order, until) => ended,
            () = cancelled.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "the call is over")),
        }
    }

    async fn follow(&self, order: &Order, until: Instant) -> Result<Ended, ToolFailure> {
        let mut waits_for = String::new();
        let begins = self.cluster.until(&order.name, |pod| {
            waits_for = pod.waits_for();
            if pod.has_begun() { Some(Ok(())) } else { pod.hopeless().map(Err) }
        });
        let begun = timeout_at(until, begins).await;
        match begun {
            Ok(begun) => {
                begun.map_err(|error| lost(&error))?.map_err(|why| failure(format!("the pod cannot start: {why}")))?;
            }
            Err(_) => {
                let seconds = self.settings.start.as_secs();
                return Err(failure(format!("the pod did not start within {seconds} s: {waits_for}")));
            }
        }
        let over = self.cluster.until(&order.name, |pod| pod.is_over().then(|| pod.clone()));
        let (pod, is_late) = match timeout(order.time, over).await {
            Ok(pod) => (pod.map_err(|error| lost(&error))?, false),
            Err(_) => (Pod::default(), true),
        };
        let is_installer = pod.terminated(INSTALLER).is_some_and(|end| end.exit_code != 0 || end.reason == "OOMKilled");
        let container = if is_installer { INSTALLER } else { PROGRAM };
        let log = match self.cluster.log(&order.name, container, MAX_LOG, Instant::now() + READING).await {
            Ok(log) => log,
            // A node that evicted the pod may have no log of it.
            Err(error) if pod.terminated(container).is_none_or(|end| end.exit_code != 0) => {
                tracing::debug!(%error, pod = order.name, "a pod left no log");
                Vec::new()
            }
            Err(error) => return Err(failure(format!("the output of the pod cannot be read: {error}"))),
        };
        Ok(Ended { pod, is_late, log, is_installer })
    }

    /// Deletes a pod; its secrets are deleted with it.
    pub async fn delete(&self, name: &str) {
        if let Err(error) = self.cluster.delete_pod(name, Instant::now() + DELETING).await {
            tracing::warn!(%error, pod = name, "a pod cannot be deleted; it is tried again later");
        }
    }
}

/// The failure of a pod that is no fault of the program. The next attempt may succeed.
pub fn failure(message: String) -> ToolFailure {
    ToolFailure::new(ErrorCode::ExecutionFailed, message).retryable(true)
}

fn lost(error: &ApiError) -> ToolFailure {
    if error.is_not_found() {
        return failure("the pod was deleted while it ran, for example because its node was drained".to_owned());
    }
    failure(format!("the pod cannot be followed: {error}"))
}
