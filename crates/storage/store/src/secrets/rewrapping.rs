//! Key rotation: wraps the data keys under the newest key-encryption key. The encrypted values do
//! not change.

use rcrt_breadcrumb::StoreError;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::SecretsKeys;
use super::encryption::{SecretRef, rewrap};
use super::keys::KeyRing;
use crate::database::failure::Result;
use crate::database::from_row::from_row;

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
    pub unreadable: Vec<Uuid>,
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
                result.unreadable.push(row.id);
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
