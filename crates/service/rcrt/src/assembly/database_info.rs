//! Which Postgres the store uses, in a file of the data folder for other processes. The file has no
//! password.

use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgConnectOptions;
use url::Url;

use crate::exit::Failure;

const FILE: &str = "database.json";

/// The Postgres that the last start on a data folder used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseInfo {
    /// `db:5432/rcrt` for an external one; absent for the embedded one.
    pub place: Option<String>,
    /// Such as `18.6`.
    pub version: String,
    /// pgvector's version, if it was queried.
    pub vector: Option<String>,
}

impl DatabaseInfo {
    pub fn embedded(version: &str) -> Self {
        Self { place: None, version: version.to_owned(), vector: None }
    }

    /// Queries the Postgres at this URL.
    pub async fn external(url: &str) -> anyhow::Result<Self> {
        let (version, vector) =
            rcrt_store::server_version(url).await.context("the version of Postgres cannot be queried")?;
        Ok(Self { place: Some(database_address(url)), version, vector })
    }

    /// Reads what the last start on this data folder wrote.
    pub fn read(data: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(data.join(FILE)).ok()?).ok()
    }

    pub fn write(&self, data: &Path) -> anyhow::Result<()> {
        let file = data.join(FILE);
        crate::keys::replace_private(&file, &serde_json::to_vec(self)?)
            .with_context(|| format!("{} cannot be written", file.display()))
    }
}

/// Returns host, port and database of a URL, without user and password.
pub fn database_address(url: &str) -> String {
    let Ok(options) = url.parse::<PgConnectOptions>() else { return "an invalid URL".into() };
    let host = options.get_socket().map_or_else(|| options.get_host().to_owned(), |path| path.display().to_string());
    format!("{host}:{}/{}", options.get_port(), options.get_database().unwrap_or_default())
}

/// Checks that the URL is one of a Postgres. The error does not repeat the URL, which can contain a
/// password.
pub fn check_url(url: Option<&String>) -> Result<(), Failure> {
    check_url_of("--database-url", url)
}

/// The same for the URL of another option.
pub fn check_url_of(option: &str, url: Option<&String>) -> Result<(), Failure> {
    let Some(url) = url else { return Ok(()) };
    let problem = match Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "postgres" | "postgresql") => return Ok(()),
        Ok(url) => format!("{}:// is not a Postgres URL", url.scheme()),
        Err(error) => format!("is not a valid URL ({error})"),
    };
    Err(Failure::Usage(format!("{option}: {problem}; expected postgres://user@host:5432/database")))
}
