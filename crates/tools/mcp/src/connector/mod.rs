//! Follows the records of servers. Each server has a task of its own, so that one that hangs or
//! fails affects no other.

mod follower;
mod summary;
mod sync;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{Event, EventKind, StoreError, schema_names};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::records::{self, ServerRecord, remove_server_records};
use crate::server::ServerConfig;
use crate::servers::Servers;
use follower::Follower;

/// Pauses between attempts to follow the events.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Keeps the tools of all MCP servers of a tenant registered. Any number of connectors can work on
/// one tenant. They must act as the same agent, because its idempotency keys prevent a tool from
/// being registered twice.
pub struct Connector {
    servers: Arc<Servers>,
}

/// The task of one version of a server's record.
struct Followed {
    record: ServerRecord,
    stop: CancellationToken,
    resync: Arc<Notify>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Followers(BTreeMap<Uuid, Followed>);

impl Connector {
    pub fn new(servers: Arc<Servers>) -> Self {
        Self { servers }
    }

    /// Runs until it is stopped, then closes all connections. If the store is unavailable, it
    /// waits.
    pub async fn run(self, stop: CancellationToken) {
        let mut followers = Followers::default();
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            let followed = tokio::select! {
                () = stop.cancelled() => break,
                followed = self.follow(&mut followers) => followed,
            };
            pause = if began.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            if let Err(error) = followed {
                tracing::warn!(%error, "MCP servers cannot be followed; retrying");
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        followers.stop().await;
        self.servers.close().await;
    }

    async fn follow(&self, followers: &mut Followers) -> Result<(), StoreError> {
        let store = &self.servers.store;
        let latest = store.latest_event().await?;
        let mut events = store.events(Some(latest)).await?;
        self.read_all(followers).await?;
        self.remove_orphans().await?;
        while let Some(event) = events.next().await {
            let event = event?;
            match event.schema_name.as_deref() {
                Some(schema_names::MCP_SERVER) => {
                    self.read_all(followers).await?;
                    if event.kind == EventKind::Deleted {
                        self.remove(&event).await?;
                    }
                }
                Some(schema_names::TOOL_V1 | schema_names::TOOL_RETIRED | schema_names::MCP_CHANGE) => {
                    followers.resync(&event.tags);
                }
                _ => {}
            }
        }
        Err(StoreError::Unavailable("the events ended".into()))
    }

    /// Starts and stops tasks, so that there is one for each server.
    async fn read_all(&self, followers: &mut Followers) -> Result<(), StoreError> {
        let records = records::servers(&*self.servers.store).await?;
        for gone in followers.stop_all_but(&records).await {
            self.servers.forget(gone);
        }
        for record in records {
            if followers.0.contains_key(&record.id) {
                continue;
            }
            let server = self.servers.insert(record.clone());
            let (stop, resync) = (CancellationToken::new(), Arc::new(Notify::new()));
            let follower = Follower { servers: self.servers.clone(), server, resync: resync.clone() };
            let task = tokio::spawn(follower.run(stop.clone()));
            followers.0.insert(record.id, Followed { record, stop, resync, task });
        }
        Ok(())
    }

    /// Deletes what was written for a deleted server, unless another one has its name.
    async fn remove(&self, event: &Event) -> Result<(), StoreError> {
        self.servers.forget(event.breadcrumb_id);
        let Ok(config) = ServerConfig::read(&event.context) else { return Ok(()) };
        let others = records::servers(&*self.servers.store).await?;
        if others.iter().any(|other| other.config.name == config.name) {
            return Ok(());
        }
        remove_server_records(&*self.servers.store, &config.name).await
    }

    /// The same for servers that were deleted while no runner was running.
    async fn remove_orphans(&self) -> Result<(), StoreError> {
        let store = &*self.servers.store;
        let records = records::servers(store).await?;
        for status in records::statuses(store).await?.into_values() {
            if !records.iter().any(|record| record.config.name == status.server) {
                remove_server_records(store, &status.server).await?;
            }
        }
        Ok(())
    }
}

impl Followers {
    /// Wakes the tasks of the servers with these tags.
    fn resync(&self, tags: &[String]) {
        for followed in self.0.values() {
            if tags.contains(&records::server_tag(&followed.record.config.name)) {
                followed.resync.notify_one();
            }
        }
    }

    /// Stops the tasks of other records and of other versions. Returns the records.
    async fn stop_all_but(&mut self, records: &[ServerRecord]) -> Vec<Uuid> {
        let is_old = |followed: &Followed| !records.contains(&followed.record);
        let stopped: Vec<Uuid> = self.0.iter().filter(|(_, followed)| is_old(followed)).map(|(id, _)| *id).collect();
        for id in &stopped {
            if let Some(followed) = self.0.remove(id) {
                followed.stop().await;
            }
        }
        stopped
    }

    async fn stop(&mut self) {
        for followed in std::mem::take(&mut self.0).into_values() {
            followed.stop().await;
        }
    }
}

impl Followed {
    async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the task of an MCP server failed");
        }
    }
}
