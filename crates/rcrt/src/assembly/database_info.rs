//! Which Postgres the store uses, for other processes, in a file of the data folder. It has no
//! password.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use url::Url;

use crate::exit::Failure;

const FILE: &str = "database.json";

/// The Postgres of the last start on a data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseInfo {
    /// `db:5432/rcrt` for one that somebody else runs; absent for the embedded one.
    pub place: Option<String>,
    /// `18.6`.
    pub version: String,
    /// pgvector's version, where that was asked.
    pub vector: Option<String>,
}

impl DatabaseInfo {
    pub fn embedded(version: &str) -> Self {
        Self { place: None, version: version.to_owned(), vector: None }
    }

    /// Asks the one at this URL.
    pub async fn external(url: &str) -> anyhow::Result<Self> {
        let (version, vector) = ask(url).await.context("Postgres does not tell its version")?;
        Ok(Self { place: Some(place(url)), version, vector })
    }

    /// What the last start on this data folder wrote.
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(data.join(FILE)).ok()?).ok()
    }

    pub fn write(&self, data: &Path) -> anyhow::Result<()> {
        let file = data.join(FILE);
        crate::keys::replace_private(&file, &serde_json::to_vec(self)?)
            .with_context(|| format!("{} cannot be written", file.display()))
    }
}

/// The version, and the version of the pgvector that the database has or can have.
pub async fn ask(url: &str) -> Result<(String, Option<String>), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let version: String = sqlx::query_scalar("SHOW server_version").fetch_one(&mut connection).await?;
    let vector = sqlx::query_scalar(
        "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),
                         (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    // Packagers put their own words behind the number.
    Ok((version.split_whitespace().next().unwrap_or_default().to_owned(), vector))
}

/// Host, port and database of a URL, without who logs in how.
pub fn place(url: &str) -> String {
    let Ok(options) = url.parse::<PgConnectOptions>() else { return "an address that is no URL".into() };
    let host = options.get_socket().map_or_else(|| options.get_host().to_owned(), |path| path.display().to_string());
    format!("{host}:{}/{}", options.get_port(), options.get_database().unwrap_or_default())
}

/// Refuses what is no address of a Postgres. The URL itself is not repeated: it may hold a password.
pub fn check_url(url: Option<&String>) -> Result<(), Failure> {
    let Some(url) = url else { return Ok(()) };
    let told = match Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "postgres" | "postgresql") => return Ok(()),
        Ok(url) => format!("{}:// is another kind of database", url.scheme()),
        Err(error) => format!("this is no URL ({error})"),
    };
    Err(Failure::Usage(format!("--database-url: {told}; write postgres://user@host:5432/database")))
}
