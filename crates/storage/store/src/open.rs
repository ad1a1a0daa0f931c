//! Opens a store from a URL: migrations, the pool, the role, the background tasks.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, PgPool};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::StoreOptions;
use crate::database::connections::IdleConnections;
use crate::database::failure;
use crate::database::migrating::{self, MIGRATOR};
use crate::events::following;
use crate::events::selectors::{self, OpenSelectors};
use crate::events::{self, Announcer, Feeds};
use crate::housekeeping;
use crate::records::context_reads::ContextReads;
use crate::records::purge;
use crate::rights::role_cache::RoleCache;
use crate::rights::shares::Shares;
use crate::rows::quotas::Quotas;
use crate::search::semantic::{self, EmbeddingFollower, SemanticSearch};
use crate::secrets::EnvelopeCipher;
use crate::store::{Inner, Store};
use crate::webhooks::WebhookFollower;
use crate::writing::QueueNotifier;
use crate::writing::WriteQueue;

/// How long a caller waits for a free connection until it gets `Unavailable`.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a store did not open. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the database URL is invalid: {0}")]
    Url(#[source] sqlx::Error),
    #[error("the database cannot be reached: {0}")]
    Unreachable(#[source] sqlx::Error),
    #[error("this database server is Postgres {0}; 15 or later is needed")]
    TooOld(String),
    #[error(
        "this database server has no pgvector: install the extension \"vector\" there (Debian: \
         postgresql-<version>-pgvector)"
    )]
    NoPgvector,
    #[error("the database user cannot {what}: {source}")]
    NoRight { what: &'static str, source: sqlx::Error },
    #[error(
        "the database has migration {0}, which this program does not know: it was migrated by a newer version, or \
         created by a development version from before the first release. Such a database must be created again"
    )]
    Newer(i64),
    #[error("migration {version} failed: {source}")]
    Migration { version: i64, source: sqlx::Error },
    #[error("migration {version} did not get the locks it needs, because a long transaction holds them: {source}")]
    HeldUp { version: i64, source: sqlx::Error },
    #[error("the migrations cannot be applied: {0}")]
    Migrations(#[source] MigrateError),
    #[error(
        "the role rcrt_app and the user of the app URL must not be superusers, have BYPASSRLS or own tables: row-level \
         security would have no effect"
    )]
    RoleTooStrong,
    #[error("the database refused a statement while opening: {0}")]
    Database(#[source] sqlx::Error),
}

impl Store {
    /// Applies the migrations, connects and starts the background tasks. `progress` receives a
    /// sentence before each step that can take longer.
    pub async fn open(options: StoreOptions, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<Arc<Self>, OpenError> {
        // Boxed, because the future is too large for the caller's stack.
        Box::pin(Self::open_here(options, progress)).await
    }

    async fn open_here(options: StoreOptions, progress: &(dyn Fn(&str) + Send + Sync)) -> Result<Arc<Self>, OpenError> {
        let admin = connect_options(&options.admin_url)?;
        let app = match &options.app_url {
            Some(url) => connect_options(url)?,
            None => admin.clone(),
        };
        migrating::migrate(&admin, &MIGRATOR, progress).await?;
        let pool = pool(app.clone(), options.max_connections.max(2)).await?;
        check_role(&pool, options.app_url.is_some()).await?;

        let inner = Arc::new(Inner {
            pool,
            context_reads: ContextReads::new(options.max_connections.max(2)),
            idle_connections: IdleConnections::default(),
            write_queue: WriteQueue::default(),
            queue_notifier: QueueNotifier::default(),
            shares: Shares::default(),
            role_cache: RoleCache::default(),
            cipher: EnvelopeCipher::new(options.secrets_keys.clone()),
            feeds: Feeds::default(),
            announcer: Announcer::default(),
            selectors: OpenSelectors::default(),
            deliveries_queued: Notify::new(),
            quotas: Quotas::new(options.quotas),
            semantic_search: options.embedding.map(|options| Arc::new(SemanticSearch::new(options))),
            egress_kept: options.egress_kept,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        inner.tasks.spawn(housekeeping::run(inner.clone(), options.sweeps));
        inner.tasks.spawn(purge::run(inner.clone()));
        inner.tasks.spawn(selectors::renew(inner.clone()));
        let webhook_follower = WebhookFollower(Arc::downgrade(&inner));
        inner.tasks.spawn(following::run(inner.clone(), Arc::new(webhook_follower)));
        inner.tasks.spawn(events::announce(inner.clone(), app.clone()));
        inner.tasks.spawn(events::listen(inner.clone(), app));
        if let Some(semantic_search) = &inner.semantic_search {
            let follower = Arc::new(EmbeddingFollower::new(semantic_search.clone()));
            inner.tasks.spawn(following::run(inner.clone(), follower));
            inner.tasks.spawn(semantic::run(inner.clone(), semantic_search.clone(), admin));
        }
        Ok(Arc::new(Self { inner }))
    }
}

fn connect_options(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url).map_err(OpenError::Url)?.application_name("rcrt").options([
        // Compiling short statements costs more than it saves.
        ("jit", "off"),
        // A hung transaction would hold back new events from every subscriber.
        ("idle_in_transaction_session_timeout", "30s"),
        ("statement_timeout", "60s"),
    ]);
    Ok(options.log_statements(tracing::log::LevelFilter::Off))
}

async fn pool(app: PgConnectOptions, max_connections: u32) -> Result<PgPool, OpenError> {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .idle_timeout(Duration::from_mins(10))
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move {
                sqlx::query("SET ROLE rcrt_app").execute(connection).await?;
                Ok(())
            })
        })
        .connect_with(app)
        .await
        .map_err(|source| match failure::code(&source).as_deref() {
            Some("42501") => OpenError::NoRight { what: "take the role rcrt_app (GRANT rcrt_app TO the user)", source },
            _ => OpenError::Unreachable(source),
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
    .map_err(OpenError::Database)?;
    if is_ordinary { Ok(()) } else { Err(OpenError::RoleTooStrong) }
}
