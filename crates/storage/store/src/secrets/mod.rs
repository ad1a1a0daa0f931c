//! Secrets: stored encrypted, granted to tools' records, decrypted one at a time with an audit
//! entry.

mod decrypt;
mod encryption;
mod grants;
mod keys;
mod rewrapping;
mod write;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{GrantedTool, SecretInfo, StoreError};
use uuid::Uuid;

pub(crate) use self::decrypt::{check_reason, decrypt};
pub(crate) use self::encryption::{EnvelopeCipher, Sealed, SecretRef};
pub(crate) use self::grants::{end_with_records, grant, refuse_change_by_others, revoke};
pub use self::keys::{SecretsKey, SecretsKeys};
pub use self::rewrapping::{
    Rewrapped, UnreadableSecret, rewrap_secrets, secrets_by_key, secrets_under_other_keys, used_secrets_keys,
};
pub(crate) use self::write::{create, delete, update};
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

from_row! {
    struct SecretRow {
        id: Uuid,
        name: String,
        version: i64,
        hosts: Vec<String>,
        readable: bool,
        scope_type: Option<String>,
        scope_id: Option<Uuid>,
        created_at: DateTime<Utc>,
        updated_at: DateTime<Utc>,
    }
}

impl SecretRow {
    fn with(self, tools: Vec<GrantedTool>) -> SecretInfo {
        SecretInfo {
            id: self.id,
            name: self.name,
            version: self.version,
            hosts: self.hosts,
            readable: self.readable,
            scope_type: self.scope_type,
            scope_id: self.scope_id,
            tools,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

fn unknown(id: Uuid) -> StoreError {
    StoreError::NotFound { what: "secret", id }
}

/// By name.
pub(crate) async fn list(tx: &mut TenantTransaction) -> Result<Vec<SecretInfo>> {
    let rows: Vec<SecretRow> = sqlx::query_as(
        "SELECT id, name, version, hosts, readable, scope_type, scope_id, created_at, updated_at FROM secrets
         ORDER BY name COLLATE \"C\"",
    )
    .fetch_all(tx.connection())
    .await?;
    let mut grants = grants::of(tx, None).await?;
    let with_tools = |row: SecretRow| {
        let tools = grants.remove(&row.id).unwrap_or_default();
        row.with(tools)
    };
    Ok(rows.into_iter().map(with_tools).collect())
}

/// One secret, as this transaction sees it.
async fn get(tx: &mut TenantTransaction, id: Uuid) -> Result<SecretInfo> {
    let row: Option<SecretRow> =
        sqlx::query_as("SELECT id, name, version, hosts, readable, scope_type, scope_id, created_at, updated_at FROM secrets WHERE id = $1")
            .bind(id)
            .fetch_optional(tx.connection())
            .await?;
    let row = row.ok_or_else(|| unknown(id))?;
    let tools = grants::of(tx, Some(id)).await?.remove(&id).unwrap_or_default();
    Ok(row.with(tools))
}
