//! Key rotation: wraps the data keys under the newest key-encryption key. The encrypted values do
//! not change.

use std::fmt;

use rcrt_breadcrumb::StoreError;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use uuid::Uuid;

use super::SecretsKeys;
use super::encryption::{SecretRef, rewrap};
use super::keys::KeyRing;
use crate::database::connect_options;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::open_error::OpenError;

/// How many secrets are locked at once.
const BATCH: i64 = 100;

/// The tables with encrypted values: the secrets, and the signing secrets of webhooks.
const ENCRYPTED_TABLES: [EncryptedTable; 2] = [
    EncryptedTable {
        next: "SELECT id, owner_id, name, version, key_id, wrapped_key FROM secrets
            WHERE (owner_id, id) > ($4, $1) AND key_id <> $2 ORDER BY owner_id, id LIMIT $3 FOR UPDATE",
        wrap: "WITH wrapped AS (UPDATE secrets SET key_id = $2, wrapped_key = $3 WHERE owner_id = $4 AND id = $1)
            INSERT INTO audit (owner_id, action, subject, subject_name) VALUES ($4, 'secret.rewrapped', $1, $5)",
    },
    EncryptedTable {
        next: "SELECT agent_id AS id, owner_id, '' AS name, version, key_id, wrapped_key FROM webhook_secrets
            WHERE (owner_id, agent_id) > ($4, $1) AND key_id <> $2 ORDER BY owner_id, agent_id LIMIT $3 FOR UPDATE",
        wrap:
            "WITH wrapped AS (
                UPDATE webhook_secrets SET key_id = $2, wrapped_key = $3 WHERE owner_id = $4 AND agent_id = $1)
            INSERT INTO audit (owner_id, action, subject, subject_name) VALUES ($4, 'webhook.secret_rewrapped', $1, $5)",
    },
];

struct EncryptedTable {
    /// Locks and returns the next rows after this id and tenant that are not under the newest key.
    /// An agent's id may occur in two tenants (open auth).
    next: &'static str,
    /// Wraps one row under the newest key.
    wrap: &'static str,
}

/// The result of a rotation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewrapped {
    pub done: usize,
    /// Secrets whose key is not available, or whose row was tampered with.
    pub unreadable: Vec<UnreadableSecret>,
}

from_row! {
    /// A secret that the available keys cannot decrypt.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UnreadableSecret {
        /// For the signing secret of webhooks, the id of their agent.
        pub id: Uuid,
        /// Empty for the signing secret of webhooks.
        pub name: String,
        /// The key under which it is encrypted.
        pub key_id: String,
    }
}

impl fmt::Display for UnreadableSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            return write!(f, "the signing secret of the webhooks of agent {}", self.id);
        }
        write!(f, "the secret {}", self.name)
    }
}

from_row! {
    struct WrappedRow {
        id: Uuid,
        owner_id: Uuid,
        name: String,
        version: i64,
        key_id: String,
        wrapped_key: Vec<u8>,
    }
}

/// Wraps every secret of all tenants under the newest key, in batches, while servers run. It can be
/// interrupted and restarted at any time. `admin_url`: of the tables' owner, who sees every tenant.
pub async fn rewrap_secrets(admin_url: &str, keys: &SecretsKeys) -> Result<Rewrapped, StoreError> {
    Ok(all(admin_url, keys).await?)
}

/// How many secrets are encrypted under each key, by the key's id.
pub async fn secrets_by_key(admin_url: &str) -> Result<Vec<(String, i64)>, StoreError> {
    let counted = async {
        let mut connection = PgConnection::connect(admin_url).await?;
        let counts = sqlx::query_as(
            "SELECT key_id, count(*) FROM (SELECT key_id FROM secrets UNION ALL SELECT key_id FROM webhook_secrets) sealed
             GROUP BY key_id ORDER BY key_id",
        )
            .fetch_all(&mut connection)
            .await?;
        let _ = connection.close().await;
        Ok::<_, crate::database::failure::Failure>(counts)
    };
    Ok(counted.await?)
}

/// The secrets of all tenants that are encrypted under other keys than these. None if the database
/// has no tables yet. `admin_url`: of the tables' owner.
pub async fn secrets_under_other_keys(admin_url: &str, key_ids: &[String]) -> Result<Vec<UnreadableSecret>, OpenError> {
    let options = connect_options(admin_url)?;
    let mut connection = options.connect().await.map_err(|error| OpenError::connecting(&options, &error))?;
    let found = async {
        let has_tables: bool = sqlx::query_scalar(
            "SELECT to_regclass('public.secrets') IS NOT NULL AND to_regclass('public.webhook_secrets') IS NOT NULL",
        )
        .fetch_one(&mut connection)
        .await?;
        if !has_tables {
            return Ok(Vec::new());
        }
        let rows: Vec<UnreadableSecret> = sqlx::query_as(
            "SELECT id, name, key_id FROM public.secrets WHERE key_id <> ALL ($1)
             UNION ALL SELECT agent_id, '', key_id FROM public.webhook_secrets WHERE key_id <> ALL ($1)
             ORDER BY key_id, name, id",
        )
        .bind(key_ids)
        .fetch_all(&mut connection)
        .await?;
        Ok::<_, sqlx::Error>(rows)
    };
    let found = found.await.map_err(|error| OpenError::refused(&error));
    // It can only fail if the connection is already gone.
    let _ = connection.close().await;
    found
}

/// The ids of the keys that encrypt secrets. Also for the role of the store, at `url`.
pub async fn used_secrets_keys(url: &str) -> Result<Vec<String>, sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let used = sqlx::query_scalar("SELECT public.used_secrets_keys()").fetch_all(&mut connection).await;
    let _ = connection.close().await;
    used
}

async fn all(admin_url: &str, keys: &SecretsKeys) -> Result<Rewrapped> {
    let mut connection = PgConnection::connect(admin_url).await?;
    let ring = keys.renewed();
    let mut result = Rewrapped::default();
    for sealed in ENCRYPTED_TABLES {
        rewrap_all(&mut connection, &ring, &sealed, &mut result).await?;
    }
    // It can only fail if the connection is already gone.
    let _ = connection.close().await;
    Ok(result)
}

async fn rewrap_all(
    connection: &mut PgConnection,
    ring: &KeyRing,
    sealed: &EncryptedTable,
    result: &mut Rewrapped,
) -> Result<()> {
    let mut after = (Uuid::nil(), Uuid::nil());
    loop {
        let mut tx = connection.begin().await?;
        let rows: Vec<WrappedRow> = sqlx::query_as(sealed.next)
            .bind(after.0)
            .bind(&ring.newest.0)
            .bind(BATCH)
            .bind(after.1)
            .fetch_all(&mut *tx)
            .await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = (last.id, last.owner_id);
        for row in rows {
            let secret_ref = SecretRef { owner_id: row.owner_id, id: row.id, version: row.version };
            let wrapped =
                ring.find(&row.key_id).and_then(|old| rewrap(secret_ref, old, &ring.newest.1, &row.wrapped_key));
            let Some(wrapped) = wrapped else {
                let WrappedRow { id, name, key_id, .. } = row;
                result.unreadable.push(UnreadableSecret { id, name, key_id });
                continue;
            };
            sqlx::query(sealed.wrap)
                .bind(row.id)
                .bind(&ring.newest.0)
                .bind(wrapped)
                .bind(row.owner_id)
                .bind(row.name)
                .execute(&mut *tx)
                .await?;
            result.done += 1;
        }
        tx.commit().await?;
    }
}
