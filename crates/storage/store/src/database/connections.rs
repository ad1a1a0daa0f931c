//! Idle connections for the steps of calls. The pool tests a returned connection with a round trip;
//! this cache does not, so a caller must handle a dead connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio_util::sync::CancellationToken;

use crate::database::failure::{Result, is_unreachable};

/// A connection that was unused for this long goes back to the pool.
const KEPT_FOR: Duration = Duration::from_secs(10);

pub(super) struct IdleConnections {
    free: Mutex<Vec<(Instant, PoolConnection<Postgres>)>>,
    most: usize,
    /// The database is closing.
    stop: CancellationToken,
}

impl IdleConnections {
    /// Keeps at most half of the connections, so that other work has the rest.
    pub(super) fn new(max_connections: u32, stop: CancellationToken) -> Self {
        Self { free: Mutex::default(), most: (max_connections as usize / 2).max(1), stop }
    }

    pub(super) fn take(&self) -> Option<PoolConnection<Postgres>> {
        self.free.lock().pop().map(|(_, connection)| connection)
    }

    fn put(&self, connection: PoolConnection<Postgres>) {
        if self.stop.is_cancelled() {
            return;
        }
        let mut free = self.free.lock();
        if free.len() < self.most {
            free.push((Instant::now(), connection));
        }
    }

    /// Returns connections to the pool that were not used for a while.
    pub(super) fn release_unused(&self) {
        self.free.lock().retain(|(used, _)| used.elapsed() < KEPT_FOR);
    }

    pub(super) fn release_all(&self) {
        self.free.lock().clear();
    }
}

/// A connection outside of a transaction. If it is dropped early, it goes back to the pool, which
/// tests it.
pub(crate) struct Connection {
    pub(super) connection: PoolConnection<Postgres>,
    pub(super) idle_connections: Arc<IdleConnections>,
}

impl Connection {
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Call this after a statement that may have lost the connection.
    pub(crate) fn return_after<T>(mut self, result: &Result<T, sqlx::Error>) {
        if result.as_ref().is_err_and(is_unreachable) {
            self.connection.close_on_drop();
        } else {
            self.idle_connections.put(self.connection);
        }
    }
}
