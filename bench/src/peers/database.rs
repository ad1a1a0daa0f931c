//! The Postgres that the queues run on: the one that RCRT embeds, with the same settings. It has
//! its own cluster, so that nothing else uses it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use rcrt_postgres::{DATABASE, Postgres, PostgresOptions, SUPERUSER};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

/// As many as the calls in flight in the bench's runs.
const CONNECTIONS: u32 = 32;

pub struct QueueDatabase {
    server: Postgres,
}

impl QueueDatabase {
    /// Starts a new cluster below `folder`, and makes sure that it is durable.
    pub async fn start(folder: &Path) -> anyhow::Result<Self> {
        let options = PostgresOptions {
            data_dir: folder.join("data"),
            cache_dir: rcrt_postgres::default_cache_dir(),
            durable: true,
        };
        let server =
            Box::pin(rcrt_postgres::start(options, &|_| ())).await.context("its Postgres cannot be started")?;
        let database = Self { server };
        let pool = database.connect(1).await?;
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let value: String = sqlx::query_scalar("SELECT current_setting($1)").bind(setting).fetch_one(&pool).await?;
            if value != "on" {
                bail!("{setting} is {value}; it must be on, or the peer is not durable");
            }
        }
        pool.close().await;
        Ok(database)
    }

    /// For Node's driver, which expects the socket's folder as the host.
    pub fn url(&self) -> String {
        self.server.url(SUPERUSER, DATABASE)
    }

    /// The client's connections, all of them open, as in a client that has run for a while.
    pub async fn clients(&self) -> anyhow::Result<PgPool> {
        self.connect(CONNECTIONS).await
    }

    async fn connect(&self, connections: u32) -> anyhow::Result<PgPool> {
        PgPoolOptions::new()
            .min_connections(connections)
            .max_connections(connections)
            .test_before_acquire(false)
            .acquire_timeout(Duration::from_secs(30))
            .connect(&self.url())
            .await
            .context("its Postgres cannot be reached")
    }

    pub async fn stop(self) {
        self.server.stop().await;
    }
}
