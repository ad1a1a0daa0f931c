//! The database as all work of the store shares it: its connections, the tasks that use them, and
//! who is notified of a commit.

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, PgPool, Postgres, Transaction};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::commit::CommitListener;
use super::connections::{Connection, IdleConnections};
use super::failure::{self, Result, is_unreachable};
use super::open_error::{DatabaseRight, OpenError};

/// The default of [`StoreOptions::acquire_timeout`](crate::StoreOptions).
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a caller waits for a connection to the replica. Then it uses the primary.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(1);

const CLOSING: Duration = Duration::from_secs(10);

pub(crate) struct Database {
    pool: PgPool,
    idle_connections: Arc<IdleConnections>,
    pub(super) commit_listeners: Vec<Arc<dyn CommitListener>>,
    /// All tasks of the store. They end when [`Self::stop`] is cancelled.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// For reads, if the operator named one.
    pub(super) replica: Option<Replica>,
}

/// A replica of the database, which may be behind or away. `replica.rs` reads there.
pub(super) struct Replica {
    pub(super) database: Arc<Database>,
    pub(super) rests: Mutex<Rests>,
}

/// Until when the primary serves all reads.
#[derive(Default)]
pub(super) struct Rests {
    pub(super) until: Option<Instant>,
    /// Whether the log says that it failed. A replica that is away for a while causes one line.
    pub(super) is_reported: bool,
}

impl Database {
    /// Connects as the role `rcrt_app`. `is_login_checked`: the login must be unprivileged too.
    pub(crate) async fn connect(
        app: PgConnectOptions,
        replica: Option<PgConnectOptions>,
        max_connections: u32,
        acquire_timeout: Duration,
        is_login_checked: bool,
        commit_listeners: Vec<Arc<dyn CommitListener>>,
    ) -> Result<Arc<Self>, OpenError> {
        let pool = connected(app, pool_options(max_connections, acquire_timeout)).await?;
        check_role(&pool, is_login_checked).await?;
        let mut database = Self::over(pool, TaskTracker::new(), CancellationToken::new());
        database.commit_listeners = commit_listeners;
        database.replica = replica.map(|options| database.replica_at(options, max_connections));
        Ok(Arc::new(database))
    }

    /// A replica of this database, with the same tasks. It connects when it is used, so that a
    /// server starts without it.
    fn replica_at(&self, options: PgConnectOptions, max_connections: u32) -> Replica {
        let pool = pool_options(max_connections, REPLICA_TIMEOUT).connect_lazy_with(options);
        let database = Self::over(pool, self.tasks.clone(), self.stop.clone());
        Replica { database: Arc::new(database), rests: Mutex::default() }
    }

    fn over(pool: PgPool, tasks: TaskTracker, stop: CancellationToken) -> Self {
        let idle_connections = Arc::new(IdleConnections::new(pool.options().get_max_connections(), stop.clone()));
        Self { pool, idle_connections, commit_listeners: Vec::new(), tasks, stop, replica: None }
    }

    /// Begins a transaction with this statement. Connections are not tested before use, because
    /// that would cost a round trip each time. After the database was restarted, each pooled
    /// connection fails once here and is discarded.
    pub(crate) async fn begin(&self, statement: &str) -> Result<Transaction<'static, Postgres>> {
        let mut dead = 0;
        loop {
            match self.pool.begin_with(AssertSqlSafe(statement)).await {
                Err(error)
                    if is_unreachable(&error)
                        && !matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed)
                        && dead < self.pool.options().get_max_connections() =>
                {
                    dead += 1;
                }
                other => return Ok(other?),
            }
        }
    }

    pub(crate) fn max_connections(&self) -> u32 {
        self.pool.options().get_max_connections()
    }

    /// Returns a connection that may be dead.
    pub(crate) async fn acquire(&self) -> Result<Connection> {
        match self.idle_connections.take() {
            Some(connection) => Ok(self.connection(connection)),
            None => self.acquire_tested().await,
        }
    }

    fn connection(&self, connection: PoolConnection<Postgres>) -> Connection {
        Connection { connection, idle_connections: self.idle_connections.clone() }
    }

    /// Returns a connection that has just responded and is in no transaction.
    pub(crate) async fn acquire_tested(&self) -> Result<Connection> {
        let mut dead = 0;
        loop {
            let mut connection = Box::pin(self.pool.acquire()).await?;
            // A ping is not enough. If a future that sends a BEGIN is dropped before the reply,
            // sqlx does not record the transaction and the pool keeps it open. Statements on this
            // connection rely on autocommit, which has no effect in an open transaction.
            let ended = async { sqlx::Connection::begin(&mut *connection).await?.rollback().await }.await;
            match ended {
                Ok(()) => return Ok(self.connection(connection)),
                Err(error) if is_unreachable(&error) && dead < self.max_connections() => {
                    connection.close_on_drop();
                    dead += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns connections to the pool that were not used for a while.
    pub(crate) fn release_unused(&self) {
        self.idle_connections.release_unused();
        if let Some(replica) = &self.replica {
            replica.database.idle_connections.release_unused();
        }
    }

    pub(crate) fn release_all(&self) {
        self.idle_connections.release_all();
        if let Some(replica) = &self.replica {
            replica.database.idle_connections.release_all();
        }
    }

    /// Stops the tasks, then closes the connections as they become free. Waits up to 10 seconds for
    /// the tasks, and up to 10 more for the connections. What is left then ends with the process.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("closed the store while its tasks were running");
        }
        self.release_all();
        let closing = async {
            self.pool.close().await;
            if let Some(replica) = &self.replica {
                replica.database.pool.close().await;
            }
        };
        if timeout(CLOSING, closing).await.is_err() {
            tracing::warn!("closed the store while its connections were in use");
        }
    }
}

pub(crate) fn connect_options(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(OpenError::Url)?.application_name("rcrt").options([
        // Compiling short statements costs more than it saves.
        ("jit", "off"),
        // A hung transaction would hold back new events from every subscriber.
        ("idle_in_transaction_session_timeout", "30s"),
        ("statement_timeout", "60s"),
    ]);
    Ok(options.log_statements(tracing::log::LevelFilter::Off))
}

fn pool_options(max_connections: u32, acquire_timeout: Duration) -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(acquire_timeout)
        .idle_timeout(Duration::from_mins(10))
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::query("SET ROLE rcrt_app").execute(connection).await?;
                Ok(())
            })
        })
}

async fn connected(app: PgConnectOptions, options: PgPoolOptions) -> Result<PgPool, OpenError> {
    options.connect_with(app.clone()).await.map_err(|source| match failure::code(&source).as_deref() {
        Some("42501") => OpenError::MissingPrivilege { right: DatabaseRight::Role, problem: failure::text(&source) },
        _ => OpenError::connecting(&app, &source),
    })
}

/// A connection can return to the role that it logged in as. If the operator named that role, it
/// must be unprivileged too.
async fn check_role(pool: &PgPool, also_the_login: bool) -> Result<(), OpenError> {
    let is_ordinary: bool = sqlx::query_scalar(
        "SELECT bool_and(NOT (r.rolsuper OR r.rolbypassrls)
            AND NOT EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid AND c.relkind IN ('r', 'p')))
         FROM pg_roles r WHERE r.rolname = current_user OR ($1 AND r.rolname = session_user)",
    )
    .bind(also_the_login)
    .fetch_one(pool)
    .await
    .map_err(|error| OpenError::refused(&error))?;
    if is_ordinary { Ok(()) } else { Err(OpenError::RoleTooStrong) }
}
