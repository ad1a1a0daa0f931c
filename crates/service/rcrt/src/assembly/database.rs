//! The database and its store: the private Postgres of the data folder, or an external one.

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::TenantQuotas;
use rcrt_nats::NatsCopy;
use rcrt_postgres::{DataLock, Postgres, PostgresOptions};
use rcrt_store::StoreOptions;

use super::agents::DEFAULT_TENANT;
use super::secrets_keys::check_secrets_keys;
use super::{EmbeddingArgs, Pruning, Stores};
use crate::keys::Keys;
use crate::progress::ConsoleProgress;

#[derive(Debug, Clone, Args)]
pub struct DatabaseOptions {
    /// A Postgres (15 or later, with pgvector) to use instead of the embedded one
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    pub database_url: Option<String>,

    /// A replica of the database, for lists, searches and event streams
    #[arg(long, env = "RCRT_READ_DATABASE_URL", hide_env_values = true, value_name = "URL", requires = "database_url")]
    pub read_database_url: Option<String>,

    /// A NATS server with JetStream that gets a copy of every event. Only servers copy
    #[arg(long, env = "RCRT_EVENTS_NATS", hide_env_values = true, value_name = "URL", value_parser = nats_address)]
    pub events_nats: Option<rcrt_nats::Address>,

    /// The stream for these copies; created if it does not exist
    #[arg(long, env = "RCRT_EVENTS_NATS_STREAM", value_name = "NAME", default_value = "RCRT", value_parser = stream_name)]
    pub events_nats_stream: String,

    /// Maximum number of connections to the database
    #[arg(long, env = "RCRT_DATABASE_CONNECTIONS", default_value_t = 20, value_name = "N",
        value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub database_connections: u32,

    /// The tenant in which this process acts; created if it does not exist
    #[arg(long, env = "RCRT_TENANT", default_value = DEFAULT_TENANT, value_name = "NAME")]
    pub tenant: String,

    /// Records that a tenant can keep, unless it has its own quota (PUT /tenants/{id})
    #[arg(long, env = "RCRT_TENANT_MAX_RECORDS", value_name = "N", value_parser = quota())]
    pub tenant_max_records: Option<u64>,

    /// Bytes of contexts that a tenant can keep, including old versions, unless it has its own
    /// quota
    #[arg(long, env = "RCRT_TENANT_MAX_BYTES", value_name = "BYTES", value_parser = quota())]
    pub tenant_max_bytes: Option<u64>,

    /// Tools that a tenant can have, unless it has its own quota
    #[arg(long, env = "RCRT_TENANT_MAX_TOOLS", value_name = "N", value_parser = quota())]
    pub tenant_max_tools: Option<u64>,

    /// Bytes of all tools of a tenant, unless it has its own quota
    #[arg(long, env = "RCRT_TENANT_MAX_TOOL_BYTES", value_name = "BYTES", value_parser = quota())]
    pub tenant_max_tool_bytes: Option<u64>,

    /// Tools that an agent can create in an hour, unless its tenant has its own quota
    #[arg(long, env = "RCRT_TENANT_MAX_TOOL_CREATIONS", value_name = "N", value_parser = quota())]
    pub tenant_max_tool_creations: Option<u64>,

    /// Queued calls of one agent; a request beyond them gets 429. The calls that its calls make do
    /// not count
    #[arg(long, env = "RCRT_MAX_QUEUED_CALLS", value_name = "N",
        default_value_t = StoreOptions::DEFAULT_MAX_QUEUED_CALLS,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_queued_calls: u32,

    #[command(flatten)]
    pub embedding: EmbeddingArgs,
}

impl DatabaseOptions {
    fn event_copy(&self) -> Option<Arc<NatsCopy>> {
        let address = self.events_nats.clone()?;
        Some(Arc::new(NatsCopy::new(address, self.events_nats_stream.clone())))
    }

    fn quotas(&self) -> TenantQuotas {
        TenantQuotas {
            max_records: self.tenant_max_records,
            max_bytes: self.tenant_max_bytes,
            max_tools: self.tenant_max_tools,
            max_tool_bytes: self.tenant_max_tool_bytes,
            max_tool_creations: self.tenant_max_tool_creations,
            // `--max-requests-per-tenant` of the server.
            max_requests: None,
        }
    }
}

/// The error does not repeat the address, which can contain a password.
fn nats_address(text: &str) -> Result<rcrt_nats::Address, String> {
    text.parse().map_err(|error: rcrt_nats::NatsError| error.to_string())
}

/// A stream's name is a part of subjects.
fn stream_name(text: &str) -> Result<String, String> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if text.is_empty() || text.len() > 100 || !text.bytes().all(is_valid) {
        return Err("must have 1 to 100 letters, digits, - and _".into());
    }
    Ok(text.to_owned())
}

fn quota() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..=TenantQuotas::MOST)
}

/// A database that exists in every cluster and has none of our tables.
pub const MAINTENANCE: &str = "postgres";
/// The role that row-level security restricts.
pub const APP_ROLE: &str = "rcrt_app";

/// The open stores, and their Postgres if that is the embedded one.
pub struct Database {
    pub stores: Stores,
    postgres: Option<Postgres>,
    /// Held while the store is open, even with an external database: the keys are in the folder.
    _lock: Option<DataLock>,
}

impl Database {
    /// Starts the embedded Postgres if it is used, migrates the schema, and opens the store.
    pub async fn open(
        lock: DataLock,
        keys: &Keys,
        options: &DatabaseOptions,
        pruning: Pruning,
        progress: &ConsoleProgress,
    ) -> anyhow::Result<Self> {
        let say = |step: &str| progress.step(step);
        let (postgres, lock) = match &options.database_url {
            Some(_) => (None, Some(lock)),
            None => {
                let options = PostgresOptions {
                    data_dir: lock.data_dir().to_owned(),
                    cache_dir: rcrt_postgres::default_cache_dir(),
                    durable: true,
                };
                (Some(rcrt_postgres::start_locked(lock, options, &say).await?), None)
            }
        };
        let opened = match (&postgres, &options.database_url) {
            (Some(postgres), _) => open_embedded(postgres, keys, options, pruning, progress).await,
            (None, url) => {
                let url = url.clone().unwrap_or_default();
                open(url, None, keys, options, Some(pruning), progress).await
            }
        };
        match opened {
            Ok(stores) => Ok(Self { stores, postgres, _lock: lock }),
            Err(error) => {
                if let Some(postgres) = postgres {
                    postgres.stop().await;
                }
                Err(error)
            }
        }
    }

    /// The version of the embedded Postgres, such as `18.6`.
    pub fn postgres_version(&self) -> Option<&str> {
        self.postgres.as_ref().map(Postgres::version)
    }

    /// Returns when the embedded Postgres is permanently down. Never returns for an external one.
    pub async fn lost(&self) {
        match &self.postgres {
            Some(postgres) => {
                postgres.wait_exit().await;
            }
            None => std::future::pending().await,
        }
    }

    /// Closes the stores, then stops Postgres.
    pub async fn close(self) {
        self.stores.close().await;
        if let Some(postgres) = self.postgres {
            postgres.stop().await;
        }
    }
}

/// Opens the store on an external database for a runner, with the database's own users and
/// passwords. The store switches to its role after login. It deletes nothing: only the servers have
/// the options for that.
pub async fn open_runner_store(
    admin_url: String,
    keys: &Keys,
    options: &DatabaseOptions,
    progress: &ConsoleProgress,
) -> anyhow::Result<Stores> {
    open(admin_url, None, keys, options, None, progress).await
}

/// Opens the store on the embedded Postgres. It logs in as its role directly, so it cannot return
/// to another role.
async fn open_embedded(
    postgres: &Postgres,
    keys: &Keys,
    options: &DatabaseOptions,
    pruning: Pruning,
    progress: &ConsoleProgress,
) -> anyhow::Result<Stores> {
    let superuser_url = postgres.url(rcrt_postgres::SUPERUSER, MAINTENANCE);
    rcrt_store::create_app_role(&superuser_url, true).await.context("the role of the store cannot be set up")?;
    let admin_url = postgres.url(tables_owner(&superuser_url).await?, rcrt_postgres::DATABASE);
    let app_url = postgres.url(APP_ROLE, rcrt_postgres::DATABASE);
    open(admin_url, Some(app_url), keys, options, Some(pruning), progress).await
}

/// Returns the user that owns the tables in the embedded Postgres. After a restore that is an
/// ordinary user, because functions and triggers of a backup must never run as superuser.
/// `superuser_url` must name a database without content of a backup.
pub async fn tables_owner(superuser_url: &str) -> anyhow::Result<&'static str> {
    let was_restored = rcrt_store::has_restored_owner(superuser_url).await.context("the database cannot be reached")?;
    Ok(if was_restored { rcrt_store::RESTORED_OWNER } else { rcrt_postgres::SUPERUSER })
}

async fn open(
    admin_url: String,
    app_url: Option<String>,
    keys: &Keys,
    options: &DatabaseOptions,
    pruning: Option<Pruning>,
    progress: &ConsoleProgress,
) -> anyhow::Result<Stores> {
    // Before the store opens: a new key would hide that the right one is missing.
    Box::pin(check_secrets_keys(&admin_url, keys, None)).await?;
    keys.create_secrets_key()?;
    let secrets_keys = keys.secrets_keys()?;
    // A runner's store copies nothing: only the servers have the options for that.
    let copy = pruning.is_some().then(|| options.event_copy()).flatten();
    let options = StoreOptions {
        app_url,
        read_url: options.read_database_url.clone(),
        max_connections: options.database_connections,
        embedding: options.embedding.options()?,
        quotas: options.quotas(),
        max_queued_calls: options.max_queued_calls,
        prunes: pruning.is_some(),
        retention: pruning.as_ref().map(|pruning| pruning.retention).unwrap_or_default(),
        archive: pruning.and_then(|pruning| pruning.archive),
        ..StoreOptions::new(admin_url, secrets_keys)
    };
    let say = |step: &str| progress.step(step);
    Box::pin(Stores::open(options, copy, &say)).await
}
