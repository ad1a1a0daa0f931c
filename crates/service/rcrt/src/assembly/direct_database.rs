//! Direct access to the database, for commands that work with or without a running server.

use std::path::PathBuf;

use anyhow::Context;
use rcrt_postgres::{DataLock, Postgres, PostgresError, PostgresOptions};

use super::DatabaseInfo;
use super::database::{MAINTENANCE, tables_owner};
use crate::config::Config;
use crate::exit::fail;
use crate::progress::ConsoleProgress;

/// The URLs of the database.
pub struct DirectDatabase {
    pub admin_url: String,
    /// A user that can replace the whole database: the superuser of the embedded Postgres, else the
    /// owner of the tables.
    pub restorer_url: String,
    /// Whether it is the embedded Postgres of the data folder.
    pub is_embedded: bool,
    postgres: Option<Postgres>,
}

impl DirectDatabase {
    /// Opens the database at this URL, else the one of the data folder. Uses the Postgres of a
    /// running server, or starts it for this command.
    pub async fn open(config: &Config, url: Option<&String>, progress: &ConsoleProgress) -> anyhow::Result<Self> {
        if let Some(url) = url {
            let (admin_url, restorer_url) = (url.clone(), url.clone());
            return Ok(Self { admin_url, restorer_url, is_embedded: false, postgres: None });
        }
        let data = &config.data;
        let place = DatabaseInfo::read(data).and_then(|used| used.place);
        if let Some(place) = place.filter(|_| !data.join("postgres").is_dir()) {
            fail!(Usage, "the database of {} is at {place}; name it with --database-url", data.display());
        }
        if !data.join("postgres").is_dir() {
            fail!(NotFound, "{} has no database; name its folder with --data", data.display());
        }
        match DataLock::acquire(data) {
            Ok(lock) => Self::start(lock, progress).await,
            Err(PostgresError::Held { .. }) => {
                let url = |user: &str, database: &str| rcrt_postgres::url_beside(data, user, database);
                let owner = tables_owner(&url(rcrt_postgres::SUPERUSER, MAINTENANCE)?).await?;
                let admin_url = url(owner, rcrt_postgres::DATABASE)?;
                let restorer_url = url(rcrt_postgres::SUPERUSER, rcrt_postgres::DATABASE)?;
                Ok(Self { admin_url, restorer_url, is_embedded: true, postgres: None })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Starts the Postgres of a locked data folder, and creates it if needed.
    pub async fn start(lock: DataLock, progress: &ConsoleProgress) -> anyhow::Result<Self> {
        let options = PostgresOptions {
            data_dir: lock.data_dir().to_owned(),
            cache_dir: rcrt_postgres::default_cache_dir(),
            durable: true,
        };
        let started = rcrt_postgres::start_locked(lock, options, &|step| progress.step(step)).await?;
        let owner = tables_owner(&started.url(rcrt_postgres::SUPERUSER, MAINTENANCE)).await?;
        let admin_url = started.url(owner, rcrt_postgres::DATABASE);
        let restorer_url = started.url(rcrt_postgres::SUPERUSER, rcrt_postgres::DATABASE);
        Ok(Self { admin_url, restorer_url, is_embedded: true, postgres: Some(started) })
    }

    /// The folder of `pg_dump` and `pg_restore`.
    pub async fn programs(&self, config: &Config, progress: &ConsoleProgress) -> anyhow::Result<PathBuf> {
        if let Some(postgres) = &self.postgres {
            return Ok(postgres.bin_dir().to_owned());
        }
        let cache = rcrt_postgres::default_cache_dir();
        rcrt_postgres::programs(&config.data, &cache, &|step| progress.step(step))
            .await
            .context("pg_dump cannot be installed")
    }

    /// Stops Postgres if this command started it.
    pub async fn close(self) {
        if let Some(postgres) = self.postgres {
            postgres.stop().await;
        }
    }
}
