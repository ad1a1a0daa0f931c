//! Repeated creates: the first result of each idempotency key, stored for a day.

use rcrt_breadcrumb::{StoreError, Violations};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

pub(crate) fn check(key: &str) -> Result<(), Violations> {
    if (1..=255).contains(&key.chars().count()) && !key.contains('\0') {
        Ok(())
    } else {
        Err(Violations::one("Idempotency-Key", "must have 1 to 255 characters, none of them NUL"))
    }
}

/// The record that the first create with this key wrote, if it had the same content.
pub(crate) async fn first_result(
    tx: &mut TenantTransaction,
    agent: Uuid,
    key: &str,
    fingerprint: &str,
) -> Result<Uuid> {
    let first: Option<(String, Uuid)> = sqlx::query_as(
        "SELECT fingerprint, breadcrumb_id FROM idempotency_keys
         WHERE owner_id = current_tenant() AND agent_id = $1 AND key = $2",
    )
    .bind(agent)
    .bind(key)
    .fetch_optional(tx.connection())
    .await?;
    match first {
        Some((first, id)) if first == fingerprint => Ok(id),
        Some(_) => Err(StoreError::IdempotencyMismatch.into()),
        None => Err(StoreError::Busy("the idempotency key has just expired; send the request again".into()).into()),
    }
}
