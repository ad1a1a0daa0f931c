//! The options of a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{EventSink, TenantQuotas};

use crate::EmbeddingOptions;
use crate::SecretsKeys;
use crate::database::ACQUIRE_TIMEOUT;
use crate::records::context_reads::ContextReadLimits;

/// How to reach the database, and which keys encrypt secrets.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// A Postgres URL of a user that can run migrations: it owns the database, or can create
    /// tables, the extension `vector` and the role `rcrt_app` in it.
    pub admin_url: String,
    /// A Postgres URL of an unprivileged member of the role `rcrt_app`, or of that role itself, for
    /// all work. Without it the store connects by `admin_url` and sets the role on every
    /// connection, which holds as long as no statement resets it.
    pub app_url: Option<String>,
    /// A Postgres URL of a replica, for lists, searches and event streams. Its user must be a
    /// member of the role `rcrt_app`, or that role. A read that the replica cannot serve yet is
    /// served by the primary.
    pub read_url: Option<String>,
    /// The most connections to each of them, at least 2. Two more serve the event feeds of other
    /// processes.
    pub max_connections: u32,
    /// How long a caller waits for a free connection until it gets `Unavailable`. Default: 5
    /// seconds.
    pub acquire_timeout: Duration,
    pub secrets_keys: SecretsKeys,
    /// Semantic search. `None` switches it off.
    pub embedding: Option<EmbeddingOptions>,
    /// Where a copy of all events goes.
    pub event_copy: Option<Arc<dyn EventSink>>,
    /// Whether the store looks every second for lost runners, overdue requests, expired records and
    /// old events. Without it, this happens only if a method is called for it, or another store on
    /// the same database does it.
    pub sweeps: bool,
    /// How long what the tenants no longer use is stored.
    pub retention: Retention,
    /// The folder for archives: calls and events are written there before they are deleted, in
    /// whole days (UTC). All stores on a database that delete need the same one.
    pub archive: Option<PathBuf>,
    /// Whether the sweeps also delete what is past its retention, in all tenants. Off for a store
    /// that does not have the options of the database's servers, such as a runner's. Default: true.
    pub prunes: bool,
    /// The default quotas of a tenant.
    pub quotas: TenantQuotas,
    /// How many calls of one agent can be queued; those that its calls make do not count. Default:
    /// 20,000.
    pub max_queued_calls: u32,
    /// How long one statement with conditions on the context can take.
    pub context_reads: ContextReadLimits,
}

impl StoreOptions {
    pub const DEFAULT_MAX_CONNECTIONS: u32 = 16;
    pub const DEFAULT_MAX_QUEUED_CALLS: u32 = 20_000;

    pub fn new(admin_url: impl Into<String>, secrets_keys: impl Into<SecretsKeys>) -> Self {
        Self {
            admin_url: admin_url.into(),
            app_url: None,
            read_url: None,
            max_connections: Self::DEFAULT_MAX_CONNECTIONS,
            acquire_timeout: ACQUIRE_TIMEOUT,
            secrets_keys: secrets_keys.into(),
            embedding: None,
            event_copy: None,
            sweeps: true,
            retention: Retention::default(),
            archive: None,
            prunes: true,
            quotas: TenantQuotas::default(),
            max_queued_calls: Self::DEFAULT_MAX_QUEUED_CALLS,
            context_reads: ContextReadLimits::default(),
        }
    }
}

/// How long the store keeps what it could keep without end. `None` keeps it forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Requests and responses, counted from the end of the call. The requests of open calls stay.
    /// Default: 30 days.
    pub calls: Option<Duration>,
    /// Old versions of records, counted from when they were replaced; at least as long as events.
    /// Default: 90 days.
    pub versions: Option<Duration>,
    /// Events: how long a subscriber can be away and still receive everything. Default: 7 days.
    pub events: Duration,
    /// Entries of the egress log. Default: 30 days.
    pub egress: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let days = |days: u64| Duration::from_hours(days * 24);
        Self { calls: Some(days(30)), versions: Some(days(90)), events: days(7), egress: days(30) }
    }
}
