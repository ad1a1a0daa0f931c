//! The secrets that sign deliveries: one for each agent, encrypted like the values of secrets.

use rcrt_breadcrumb::StoreError;
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rights::audit::{self, AuditLine};
use crate::secrets::{EnvelopeCipher, Sealed, SecretRef};

from_row! {
    struct SealedRow {
        version: i64,
        key_id: String,
        wrapped_key: Vec<u8>,
        sealed_value: Vec<u8>,
    }
}

pub(super) async fn set(
    mut tx: TenantTransaction,
    cipher: &EnvelopeCipher,
    agent: Uuid,
    by: Uuid,
    secret: &str,
) -> Result<()> {
    // The version is part of the encrypted value, so it must not change meanwhile.
    tx.lock(agent).await?;
    seal(&mut tx, cipher, agent, secret).await?;
    audit::write(&mut tx, AuditLine::by(by, "webhook.secret_set").on(agent, "")).await?;
    tx.commit().await
}

/// Stores an agent's secret, or the header fields of the webhook of a call.
pub(super) async fn seal(tx: &mut TenantTransaction, cipher: &EnvelopeCipher, agent: Uuid, secret: &str) -> Result<()> {
    let owner_id = tx.owner_id;
    let version: Option<i64> =
        sqlx::query_scalar("SELECT version FROM webhook_secrets WHERE owner_id = $1 AND agent_id = $2")
            .bind(owner_id)
            .bind(agent)
            .fetch_optional(tx.connection())
            .await?;
    let version = version.unwrap_or_default() + 1;
    let sealed = cipher.seal(SecretRef { owner_id, id: agent, version }, secret.as_bytes())?;
    sqlx::query(
        "INSERT INTO webhook_secrets (owner_id, agent_id, version, key_id, wrapped_key, sealed_value)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (owner_id, agent_id) DO UPDATE SET version = EXCLUDED.version, key_id = EXCLUDED.key_id,
            wrapped_key = EXCLUDED.wrapped_key, sealed_value = EXCLUDED.sealed_value, updated_at = now()",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(version)
    .bind(sealed.key_id)
    .bind(sealed.wrapped_key)
    .bind(sealed.value)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The agent's secret, for a delivery. Not in the audit log, where an entry for each delivery would
/// hide the others.
pub(super) async fn open(tx: &mut TenantTransaction, cipher: &EnvelopeCipher, agent: Uuid) -> Result<Option<String>> {
    let owner_id = tx.owner_id;
    let row: Option<SealedRow> = sqlx::query_as(
        "SELECT version, key_id, wrapped_key, sealed_value FROM webhook_secrets WHERE owner_id = $1 AND agent_id = $2",
    )
    .bind(owner_id)
    .bind(agent)
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let sealed = Sealed { key_id: row.key_id, wrapped_key: row.wrapped_key, value: row.sealed_value };
    let value = cipher.open(SecretRef { owner_id, id: agent, version: row.version }, &sealed)?;
    let text = String::from_utf8(value);
    Ok(Some(text.map_err(|_| StoreError::Internal(format!("the signing secret of {agent} is not UTF-8 text")))?))
}
