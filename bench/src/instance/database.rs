//! The database of an instance, as its operator reaches it: for baselines, and for filling a store.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

/// The embedded Postgres of a data folder. It trusts everybody who can enter its socket's folder.
#[derive(Debug, Clone)]
pub struct Database {
    cluster: PathBuf,
}

impl Database {
    pub fn of(data: &Path) -> Self {
        Self { cluster: data.join("postgres") }
    }

    /// A line of `postmaster.pid`: 0 is the process id, 4 the folder of the socket.
    fn line(&self, number: usize) -> anyhow::Result<String> {
        let path = self.cluster.join("postmaster.pid");
        let text = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let line = text.lines().nth(number).unwrap_or_default().trim();
        if line.is_empty() {
            bail!("{} has no line {number}", path.display());
        }
        Ok(line.to_owned())
    }

    pub fn socket_dir(&self) -> anyhow::Result<PathBuf> {
        Ok(self.line(4)?.into())
    }

    /// A program that came with this Postgres.
    pub fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let server = std::fs::read_link(format!("/proc/{}/exe", self.line(0)?)).context("the server's program")?;
        let path = server.with_file_name(name);
        if !path.is_file() {
            bail!("this Postgres came without {name} ({})", path.display());
        }
        Ok(path)
    }

    /// Connections to one of its databases as superuser.
    pub async fn connect(&self, database: &str, connections: u32) -> anyhow::Result<PgPool> {
        let options = PgConnectOptions::new_without_pgpass()
            .socket(self.socket_dir()?)
            .username(rcrt_postgres::SUPERUSER)
            .database(database);
        PgPoolOptions::new()
            .max_connections(connections)
            .connect_with(options)
            .await
            .with_context(|| format!("the database {database} cannot be reached"))
    }
}
