//! Wakes the feeds of other server processes on the same database with NOTIFY. NOTIFY takes a lock
//! for the whole cluster at commit, so it never runs in a writing transaction. It runs on a
//! separate connection, and one message covers many changes. A message has a tenant and the sending
//! process. A third field, `selectors`, means that an agent's selectors changed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Connection, PgConnection};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::database::commit::{Commit, CommitListener};
use crate::events::EventStreams;

const CHANNEL: &str = "rcrt_events";
/// Changes within this time are announced together.
const BATCH_DELAY: Duration = Duration::from_millis(5);
const RETRY: Duration = Duration::from_secs(1);

/// The tenants whose changes are not announced yet.
pub(crate) struct Announcer {
    /// The id of this process, so that it ignores its own messages.
    name: Uuid,
    pending: Mutex<HashSet<(Uuid, Topic)>>,
    ring: Notify,
    /// Notified when another process changed selectors.
    selectors: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Topic {
    Events,
    Selectors,
}

impl Default for Announcer {
    fn default() -> Self {
        Self { name: Uuid::new_v4(), pending: Mutex::default(), ring: Notify::new(), selectors: Notify::new() }
    }
}

impl Announcer {
    pub(crate) fn announce(&self, owner_id: Uuid) {
        self.enqueue(owner_id, Topic::Events);
    }

    pub(crate) fn announce_selectors(&self, owner_id: Uuid) {
        self.enqueue(owner_id, Topic::Selectors);
    }

    fn enqueue(&self, owner_id: Uuid, what: Topic) {
        self.pending.lock().insert((owner_id, what));
        self.ring.notify_one();
    }

    /// Returns when another process announced a change of selectors, or may have done so.
    pub(crate) async fn selectors_changed(&self) {
        self.selectors.notified().await;
    }

    /// The tenant and the topic of another process's message. `None` for a message of this process.
    fn parse_foreign(&self, payload: &str) -> Option<(Uuid, Topic)> {
        let mut words = payload.split(' ');
        let (owner_id, name) = (words.next()?.parse().ok()?, words.next()?);
        let what = match words.next() {
            None => Topic::Events,
            Some("selectors") => Topic::Selectors,
            // Sent by a newer version.
            Some(_) => return None,
        };
        (name.parse() != Ok(self.name)).then_some((owner_id, what))
    }

    fn take(&self) -> Vec<String> {
        let mut pending = self.pending.lock();
        let name = self.name;
        let text = |(owner_id, what)| match what {
            Topic::Events => format!("{owner_id} {name}"),
            Topic::Selectors => format!("{owner_id} {name} selectors"),
        };
        pending.drain().map(text).collect()
    }
}

impl CommitListener for Announcer {
    fn committed(&self, commit: &Commit) {
        if commit.has_events {
            self.announce(commit.owner_id);
        }
    }
}

/// Announces changes to the other processes until the store is closed. A message that cannot be
/// sent is dropped, because they poll as well.
pub(crate) async fn announce(streams: Arc<EventStreams>, options: PgConnectOptions) {
    let mut connection: Option<PgConnection> = None;
    loop {
        tokio::select! {
            () = streams.database.stop.cancelled() => break,
            () = streams.announcer.ring.notified() => {}
        }
        tokio::select! {
            () = streams.database.stop.cancelled() => break,
            () = tokio::time::sleep(BATCH_DELAY) => {}
        }
        let owners = streams.announcer.take();
        if owners.is_empty() {
            continue;
        }
        let notified = tokio::select! {
            () = streams.database.stop.cancelled() => break,
            notified = notify(&mut connection, &options, owners) => notified,
        };
        if let Err(error) = notified {
            tracing::debug!(%error, "other servers could not be notified");
            connection = None;
            tokio::select! {
                () = streams.database.stop.cancelled() => break,
                () = tokio::time::sleep(RETRY) => {}
            }
        }
    }
    if let Some(connection) = connection {
        // It can only fail if the connection is already gone.
        let _ = connection.close().await;
    }
}

async fn notify(
    connection: &mut Option<PgConnection>,
    options: &PgConnectOptions,
    owners: Vec<String>,
) -> Result<(), sqlx::Error> {
    let connection = match connection {
        Some(connection) => connection,
        none => {
            let mut new = PgConnection::connect_with(options).await?;
            sqlx::query("SET synchronous_commit = off").execute(&mut new).await?;
            none.insert(new)
        }
    };
    sqlx::query("SELECT pg_notify($1, owner) FROM unnest($2::text[]) owner")
        .bind(CHANNEL)
        .bind(owners)
        .execute(connection)
        .await?;
    Ok(())
}

/// Listens to the other processes until the store is closed.
pub(crate) async fn listen(streams: Arc<EventStreams>, options: PgConnectOptions) {
    // A separate pool, so that listening takes no connection from other work.
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    loop {
        let ended = tokio::select! {
            () = streams.database.stop.cancelled() => break,
            ended = receive(&streams, &pool) => ended,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "cannot listen to other servers; polling instead");
        }
        tokio::select! {
            () = streams.database.stop.cancelled() => break,
            () = tokio::time::sleep(RETRY) => {}
        }
    }
    pool.close().await;
}

async fn receive(streams: &EventStreams, pool: &sqlx::PgPool) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    loop {
        match listener.try_recv().await? {
            Some(notification) => match streams.announcer.parse_foreign(notification.payload()) {
                Some((owner_id, Topic::Events)) => streams.feeds.wake(owner_id),
                Some((_, Topic::Selectors)) => streams.announcer.selectors.notify_one(),
                None => {}
            },
            // The connection was lost, and so were announcements in the meantime.
            None => {
                streams.feeds.wake_all();
                streams.announcer.selectors.notify_one();
            }
        }
    }
}
