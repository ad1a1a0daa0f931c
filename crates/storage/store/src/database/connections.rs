//! Idle connections for the steps of calls. The pool tests a returned connection with a round trip;
//! this cache does not, so a caller must handle a dead connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};

use crate::database::failure::{Result, is_unreachable};
use crate::store::Inner;

/// A connection that was unused for this long goes back to the pool.
const KEPT_FOR: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct IdleConnections {
    free: Mutex<Vec<(Instant, PoolConnection<Postgres>)>>,
}

impl IdleConnections {
    fn take(&self) -> Option<PoolConnection<Postgres>> {
        self.free.lock().pop().map(|(_, connection)| connection)
    }

    fn put(&self, connection: PoolConnection<Postgres>, most: usize) {
        let mut free = self.free.lock();
        if free.len() < most {
            free.push((Instant::now(), connection));
        }
    }

    /// Returns connections to the pool that were not used for a while.
    pub(crate) fn release_unused(&self) {
        self.free.lock().retain(|(used, _)| used.elapsed() < KEPT_FOR);
    }

    pub(crate) fn release_all(&self) {
        self.free.lock().clear();
    }
}

/// A connection outside of a transaction. If it is dropped early, it goes back to the pool, which
/// tests it.
pub(crate) struct Connection {
    connection: PoolConnection<Postgres>,
    store: Arc<Inner>,
}

impl Connection {
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    fn give_back(self) {
        if !self.store.stop.is_cancelled() {
            self.store.idle_connections.put(self.connection, self.store.max_idle_connections());
        }
    }

    /// Call this after a statement that may have lost the connection.
    pub(crate) fn give_back_after<T>(mut self, result: &Result<T, sqlx::Error>) {
        if result.as_ref().is_err_and(is_unreachable) {
            self.connection.close_on_drop();
        } else {
            self.give_back();
        }
    }
}

impl Inner {
    /// At most half of the connections, so that other work has the rest.
    fn max_idle_connections(&self) -> usize {
        (self.pool.options().get_max_connections() as usize / 2).max(1)
    }

    /// Returns a connection that may be dead.
    pub(crate) async fn acquire(self: &Arc<Self>) -> Result<Connection> {
        match self.idle_connections.take() {
            Some(connection) => Ok(Connection { connection, store: self.clone() }),
            None => self.acquire_tested().await,
        }
    }

    /// Returns a connection that has just responded and is in no transaction.
    pub(crate) async fn acquire_tested(self: &Arc<Self>) -> Result<Connection> {
        let mut dead = 0;
        loop {
            let mut connection = Box::pin(self.pool.acquire()).await?;
            // A ping is not enough. If a future that sends a BEGIN is dropped before the reply,
            // sqlx does not record the transaction and the pool keeps it open. Statements on this
            // connection rely on autocommit, which has no effect in an open transaction.
            let ended = async { sqlx::Connection::begin(&mut *connection).await?.rollback().await }.await;
            match ended {
                Ok(()) => return Ok(Connection { connection, store: self.clone() }),
                Err(error) if is_unreachable(&error) && dead < self.pool.options().get_max_connections() => {
                    connection.close_on_drop();
                    dead += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
