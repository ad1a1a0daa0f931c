//! The options of a store.

use std::time::Duration;

use rcrt_breadcrumb::TenantQuotas;

use crate::EmbeddingOptions;
use crate::SecretsKeys;

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
    /// The most connections, at least 2. Two more serve the event feeds of other processes.
    pub max_connections: u32,
    pub secrets_keys: SecretsKeys,
    /// Semantic search. `None` switches it off.
    pub embedding: Option<EmbeddingOptions>,
    /// Whether the store looks every second for lost runners, overdue requests, expired records and
    /// old events. Without it, this happens only if a method is called for it, or another store on
    /// the same database does it.
    pub sweeps: bool,
    /// How long entries of the egress log are stored. Default: 30 days.
    pub egress_retention: Duration,
    /// The default quotas of a tenant.
    pub quotas: TenantQuotas,
}

impl StoreOptions {
    pub const DEFAULT_MAX_CONNECTIONS: u32 = 16;
    pub const DEFAULT_EGRESS_RETENTION: Duration = Duration::from_hours(30 * 24);

    pub fn new(admin_url: impl Into<String>, secrets_keys: impl Into<SecretsKeys>) -> Self {
        Self {
            admin_url: admin_url.into(),
            app_url: None,
            max_connections: Self::DEFAULT_MAX_CONNECTIONS,
            secrets_keys: secrets_keys.into(),
            embedding: None,
            sweeps: true,
            egress_retention: Self::DEFAULT_EGRESS_RETENTION,
            quotas: TenantQuotas::default(),
        }
    }
}
