//! One server: connects to it, keeps its tools registered, and writes its state.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, OptionFuture};
use rcrt_breadcrumb::StoreError;
use rcrt_breadcrumb::foreign_text::lines;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::summary::{Source, summarize};
use super::sync::{Synced, sync};
use crate::connection::{Connection, ToolList};
use crate::failure::McpError;
use crate::records::{ServerState, Status, Summary, write_status};
use crate::servers::{Server, Servers};
use crate::text::redacted;

/// The most characters of a server's instructions.
const MAX_INSTRUCTIONS: usize = 4000;

pub(super) struct Follower {
    pub servers: Arc<Servers>,
    pub server: Arc<Server>,
    /// Notified when another agent changed the records of the server's tools.
    pub resync: Arc<Notify>,
}

/// Why the tools of a connected server are checked again.
enum Reason {
    /// Its list may have changed.
    List,
    /// The records may have changed.
    Records,
    Ended,
    /// The working folder of its program holds more than it may.
    Filled(McpError),
}

impl Follower {
    /// Runs until it is stopped.
    pub async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&self) {
        if !self.server.record.config.enabled {
            self.write(ServerState::Disabled, None, None, self.sync(None).await).await;
            return std::future::pending().await;
        }
        let settings = &self.servers.settings;
        let mut pause = settings.first_pause;
        loop {
            let began = Instant::now();
            let error = match self.servers.connection(&self.server).await {
                Ok(connection) => {
                    let why = self.keep(&connection).await;
                    // Its running calls continue.
                    connection.give_up();
                    if connection.has_expired() {
                        continue;
                    }
                    why
                }
                Err(error) => error.to_string(),
            };
            // The tools stay: a call tries to connect too, and says what is wrong.
            self.write(ServerState::Error, Some(error), None, self.known().await).await;
            if began.elapsed() > settings.longest_pause {
                pause = settings.first_pause;
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = self.resync.notified() => {}
            }
            pause = (pause * 2).min(settings.longest_pause);
        }
    }

    /// Keeps the tools of a connected server registered. Returns why the connection ended.
    async fn keep(&self, connection: &Connection) -> String {
        let mut watch = connection.watch().await;
        let mut lists = connection.lists();
        let mut refreshed = Instant::now();
        if let Err(error) = connection.refresh().await {
            return error.to_string();
        }
        let first_pause = self.servers.settings.first_pause;
        let mut filled = std::pin::pin!(self.servers.folder_filled(&self.server.record.config));
        let mut summary = self.known().await.ok().and_then(|known| known.summary);
        // The hash of what a summary was last asked for, and the model's call.
        let mut asked = None;
        let mut asking: OptionFuture<BoxFuture<'_, Option<Summary>>> = OptionFuture::default();
        loop {
            let list = lists.borrow_and_update().clone();
            let mut synced = self.sync(Some(&list)).await;
            let mut source = None;
            if let Ok(synced) = &mut synced {
                source = self.undescribed(connection, &list, synced);
                summary = summary.filter(|known| source.as_ref().is_some_and(|source| source.hash == known.of));
                synced.summary.clone_from(&summary);
            }
            if let (Some(source), Some(tool)) = (source, &self.servers.settings.summary_tool)
                && summary.is_none()
                && asked.as_ref() != Some(&source.hash)
            {
                asked = Some(source.hash.clone());
                let server = self.server.record.id;
                asking = Some(summarize(&*self.servers.store, tool, server, source).boxed()).into();
            }
            let failed = synced.is_err();
            self.write(ServerState::Connected, None, Some(connection), synced).await;
            let valid = self.valid(&list);
            let reason = tokio::select! {
                () = watch.announced() => Reason::List,
                () = sleep(valid) => Reason::List,
                // A call listed the tools, and they have changed.
                Ok(()) = lists.changed() => Reason::Records,
                () = sleep(first_pause), if failed => Reason::Records,
                Some(made) = &mut asking => {
                    (summary, asking) = (made, OptionFuture::default());
                    Reason::Records
                }
                () = self.resync.notified() => Reason::Records,
                () = connection.ended() => Reason::Ended,
                error = &mut filled => Reason::Filled(error),
            };
            match reason {
                Reason::Ended => return connection.why_ended(),
                Reason::Filled(error) => {
                    // Also the running calls: the program must not write any more.
                    connection.close().await;
                    return error.to_string();
                }
                Reason::Records => {}
                Reason::List => {
                    // A server can announce changes without end.
                    sleep_until(refreshed + first_pause).await;
                    refreshed = Instant::now();
                    if let Err(error) = connection.refresh().await {
                        return error.to_string();
                    }
                }
            }
        }
    }

    /// How long the list is used if the server announces no change.
    fn valid(&self, list: &ToolList) -> Duration {
        let settings = &self.servers.settings;
        // Zero only means that the list must not be cached.
        let ttl = list.ttl.filter(|ttl| !ttl.is_zero()).unwrap_or(settings.refresh_every);
        ttl.max(settings.shortest_refresh).min(settings.refresh_every)
    }

    /// What a model would be told, if neither the record nor the server says what it is for.
    fn undescribed(&self, connection: &Connection, list: &ToolList, synced: &Synced) -> Option<Source> {
        let config = &self.server.record.config;
        let info = connection.info();
        let instructions = info.as_deref().and_then(|info| info.instructions.as_deref());
        let mut said = [config.description.as_deref(), instructions].into_iter().flatten();
        let is_wanted = self.servers.settings.summary_tool.is_some() && said.all(|text| text.trim().is_empty());
        is_wanted.then(|| Source::of(&config.name, list, synced)).flatten()
    }

    async fn sync(&self, list: Option<&ToolList>) -> Result<Synced, StoreError> {
        sync(&*self.servers.store, &self.server.record, list).await
    }

    /// The tools as they were registered before.
    async fn known(&self) -> Result<Synced, StoreError> {
        let name = self.server.record.config.name.to_lowercase();
        let status = crate::records::statuses(&*self.servers.store).await?.remove(&name);
        Ok(status.map_or_else(Synced::default, |status| Synced {
            tools: status.tools,
            waiting: status.waiting,
            refused: status.refused,
            summary: status.summary,
        }))
    }

    async fn write(
        &self,
        state: ServerState,
        error: Option<String>,
        connection: Option<&Connection>,
        synced: Result<Synced, StoreError>,
    ) {
        let record = &self.server.record;
        let synced = match synced {
            Ok(synced) => synced,
            Err(error) => {
                tracing::warn!(server = record.config.name, %error, "the tools of an MCP server cannot be registered");
                return;
            }
        };
        let vault = connection.map(|connection| connection.vault.clone()).unwrap_or_default();
        let text = |text: &str, most: usize| redacted(text, most, &vault);
        let info = connection.and_then(Connection::info);
        let info = info.as_deref();
        let implementation = info.and_then(|info| info.server_info.as_ref());
        let status = Status {
            server: record.config.name.clone(),
            server_id: record.id,
            state,
            error: error.map(|error| lines(&error, 2000)),
            protocol_version: info.map(|info| text(info.protocol_version.as_str(), 50)),
            implementation: implementation.map(|own| text(&format!("{} {}", own.name, own.version), 200)),
            instructions: info.and_then(|info| info.instructions.as_deref()).map(|own| text(own, MAX_INSTRUCTIONS)),
            summary: synced.summary,
            tools: synced.tools,
            waiting: synced.waiting,
            refused: synced.refused,
        };
        match (write_status(&*self.servers.store, &status).await, &status.error) {
            (Ok(true), Some(error)) => {
                tracing::warn!(server = status.server, error, "an MCP server cannot be used; it is tried again");
            }
            (Ok(_), _) => {}
            (Err(error), _) => {
                tracing::warn!(server = status.server, %error, "the state of an MCP server cannot be written");
            }
        }
    }
}
