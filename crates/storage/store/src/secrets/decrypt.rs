//! Decrypts one secret and writes the audit entry.

use rcrt_breadcrumb::{StoreError, Violations};
use uuid::Uuid;

use super::encryption::{EnvelopeCipher, Sealed, SecretRef};
use super::unknown;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rights::audit::{self, AuditLine};

pub(crate) fn check_reason(reason: &str) -> Result<(), Violations> {
    if reason.trim().is_empty() || reason.chars().count() > 1000 || reason.contains('\0') {
        return Err(Violations::one(
            "reason",
            "must say why the secret is read, in 1 to 1000 characters, none of them NUL",
        ));
    }
    Ok(())
}

from_row! {
    struct SealedRow {
        name: String,
        version: i64,
        key_id: String,
        wrapped_key: Vec<u8>,
        sealed_value: Vec<u8>,
        /// Read in the same statement as the value, so that a grant that expired before has no
        /// effect.
        is_granted: bool,
    }
}

/// Returns the value once the audit entry is on disk. A tool needs a grant. The caller has checked
/// whether the agent can decrypt without a tool.
pub(crate) async fn decrypt(
    mut tx: TenantTransaction,
    agent: Uuid,
    cipher: &EnvelopeCipher,
    id: Uuid,
    reason: &str,
    for_tool: Option<Uuid>,
) -> Result<String> {
    let row: Option<SealedRow> = sqlx::query_as(
        "SELECT name, version, key_id, wrapped_key, sealed_value, EXISTS (
            SELECT FROM secret_grants g JOIN breadcrumbs b ON b.owner_id = g.owner_id AND b.id = g.tool_id
            WHERE g.owner_id = s.owner_id AND g.secret_id = s.id AND g.tool_id = $2 AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
         ) AS is_granted FROM secrets s WHERE id = $1",
    )
    .bind(id)
    .bind(for_tool)
    .fetch_optional(tx.connection())
    .await?;
    let row = row.ok_or_else(|| unknown(id))?;
    let line = |action| {
        let line = AuditLine::by(agent, action).on(id, &row.name).because(reason);
        for_tool.map_or(line, |tool| line.for_tool(tool))
    };
    if let Some(tool) = for_tool
        && !row.is_granted
    {
        audit::write(&mut tx, line("secret.refused")).await?;
        tx.commit().await?;
        let why = format!("the secret {} is not granted to the tool with the record {tool}", row.name);
        return Err(StoreError::Forbidden(why).into());
    }
    audit::write(&mut tx, line("secret.decrypted")).await?;
    let secret_ref = SecretRef { owner_id: tx.owner_id, id, version: row.version };
    let sealed = Sealed { key_id: row.key_id, wrapped_key: row.wrapped_key, value: row.sealed_value };
    let value = cipher.open(secret_ref, &sealed)?;
    tx.commit().await?;
    String::from_utf8(value).map_err(|_| StoreError::Internal(format!("secret {id} is not UTF-8 text")).into())
}
