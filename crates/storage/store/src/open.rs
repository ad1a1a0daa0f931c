//! Opens a store from a URL: migrations, the pool, the role, the background tasks.

use std::sync::Arc;

use rcrt_breadcrumb::StoreError;
use sqlx::postgres::PgConnectOptions;

use crate::StoreOptions;
use crate::calls::applied_changes::AppliedChanges;
use crate::database::migrating::{self, MIGRATOR};
use crate::database::open_error::OpenError;
use crate::database::{Database, connect_options};
use crate::events::copying::EventCopier;
use crate::events::selectors;
use crate::events::{self, Announcer, EventStreams, Feeds, following};
use crate::housekeeping::{self, Sweeps};
use crate::records::context_reads::ContextReads;
use crate::records::purge;
use crate::retention;
use crate::rights::role_cache::RoleCache;
use crate::rights::shares::Shares;
use crate::rows::queue_limit::QueueLimit;
use crate::rows::quotas::Quotas;
use crate::search::semantic::{self, EmbeddingFollower, SemanticSearch};
use crate::secrets::EnvelopeCipher;
use crate::store::{Inner, Store};
use crate::webhooks::{WebhookFollower, WebhookStore};
use crate::writing::Writer;

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
        let quotas = Arc::new(Quotas::new(options.quotas));
        let (feeds, announcer) = (Arc::new(Feeds::default()), Arc::new(Announcer::default()));
        let replica = options.read_url.as_deref().map(connect_options).transpose()?;
        let database = Box::pin(Database::connect(
            app.clone(),
            replica,
            options.max_connections.max(2),
            options.acquire_timeout,
            options.app_url.is_some(),
            vec![quotas.clone(), feeds.clone(), announcer.clone()],
        ))
        .await?;
        let cipher = Arc::new(EnvelopeCipher::new(options.secrets_keys));
        let queue_limit = QueueLimit::new(options.max_queued_calls);
        let inner = Arc::new(Inner {
            shares: Shares::default(),
            role_cache: RoleCache::default(),
            streams: Arc::new(EventStreams::new(database.clone(), feeds.clone(), announcer.clone())),
            writer: Arc::new(Writer::new(database.clone(), quotas.clone(), queue_limit, feeds, announcer)),
            context_reads: ContextReads::new(database.clone(), options.context_reads),
            applied_changes: AppliedChanges::default(),
            semantic_search: options.embedding.map(|options| Arc::new(SemanticSearch::new(options))),
            webhooks: Arc::new(WebhookStore::new(database.clone(), cipher.clone())),
            retention: options.retention,
            archive: options.archive,
            database,
            quotas,
            cipher,
        });
        if let Some(sink) = options.event_copy {
            let follower = Arc::new(EventCopier::new(inner.database.clone(), sink));
            inner.database.tasks.spawn(following::run(inner.streams.clone(), follower));
        }
        let prunes = options.sweeps && options.prunes;
        if prunes
            && let Err(failure) = retention::record(&inner.database, inner.retention, inner.archive.is_some()).await
        {
            tracing::warn!(error = %StoreError::from(failure), "the retention options cannot be recorded");
        }
        start_tasks(&inner, Sweeps { is_on: options.sweeps, prunes }, admin, app);
        Ok(Arc::new(Self { inner }))
    }
}

fn start_tasks(inner: &Arc<Inner>, sweeps: Sweeps, admin: PgConnectOptions, app: PgConnectOptions) {
    let (database, streams) = (&inner.database, &inner.streams);
    let tasks = &database.tasks;
    tasks.spawn(housekeeping::run(inner.clone(), sweeps));
    tasks.spawn(purge::run(database.clone()));
    tasks.spawn(selectors::renew(streams.clone()));
    tasks.spawn(following::run(streams.clone(), Arc::new(WebhookFollower(inner.webhooks.clone()))));
    tasks.spawn(events::announce(streams.clone(), app.clone()));
    tasks.spawn(events::listen(streams.clone(), app));
    if let Some(semantic_search) = &inner.semantic_search {
        let follower = Arc::new(EmbeddingFollower::new(semantic_search.clone()));
        tasks.spawn(following::run(streams.clone(), follower));
        tasks.spawn(semantic::run(database.clone(), semantic_search.clone(), admin));
    }
}
