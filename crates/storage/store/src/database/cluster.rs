//! The Postgres server around the store's database: what it is, and the store's role on it.

use sqlx::{Connection as _, PgConnection};

use super::from_row::from_row;

/// Returns the version of Postgres, and of pgvector if it is installed or can be installed in the
/// database.
pub async fn server_version(url: &str) -> Result<(String, Option<String>), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let version: String = sqlx::query_scalar("SHOW server_version").fetch_one(&mut connection).await?;
    let vector = sqlx::query_scalar(
        "SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'),
                         (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'))",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    // Packagers add text after the number.
    Ok((version.split_whitespace().next().unwrap_or_default().to_owned(), vector))
}

/// Creates the store's role if needed, which the migrations have not done in a new cluster. With
/// `can_log_in` it logs in without a password: only for a server whose socket only the owner can
/// reach.
pub async fn create_app_role(admin_url: &str, can_log_in: bool) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(admin_url).await?;
    sqlx::raw_sql(
        "DO $$
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rcrt_app') THEN
                CREATE ROLE rcrt_app NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
            END IF;
        END
        $$",
    )
    .execute(&mut connection)
    .await?;
    if can_log_in {
        sqlx::raw_sql("ALTER ROLE rcrt_app LOGIN").execute(&mut connection).await?;
    }
    connection.close().await
}

from_row! {
    /// How much of a kind is stored.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredSize {
        pub kind: String,
        pub entries: i64,
        pub bytes: i64,
        /// Whether the bytes are those on disk, with indexes. Otherwise they are those of contexts.
        pub is_on_disk: bool,
    }
}

/// What is stored in a database of the store.
pub async fn stored_sizes(url: &str) -> Result<Vec<StoredSize>, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let sizes = sqlx::query_as("SELECT * FROM public.stored_sizes()").fetch_all(&mut connection).await;
    let _ = connection.close().await;
    sizes
}
