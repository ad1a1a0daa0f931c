//! The same create again: first answers, kept for a day.

use breadcrumb::{StoreError, Violations};
use uuid::Uuid;

use crate::failure::Done;
use crate::transaction::TenantTransaction;

pub(crate) enum Standing {
    /// Nobody used the key; it is taken now, if this transaction commits.
    First,
    /// The record that the first create made.
    Answered(Uuid),
}

pub(crate) fn check(key: &str) -> Result<(), Violations> {
    if (1..=255).contains(&key.chars().count()) && !key.contains('\0') {
        Ok(())
    } else {
        Err(Violations::one("Idempotency-Key", "must have 1 to 255 characters, none of them NUL"))
    }
}

/// Waits for another transaction that is just taking the same key.
pub(crate) async fn take(
    tx: &mut TenantTransaction,
    agent: Uuid,
    key: &str,
    fingerprint: &str,
    id: Uuid,
) -> Done<Standing> {
    let owner_id = tx.owner_id;
    let taken: Option<Uuid> = sqlx::query_scalar(
        "INSERT INTO idempotency_keys AS k (owner_id, agent_id, key, fingerprint, breadcrumb_id)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (owner_id, agent_id, key) DO UPDATE
         SET fingerprint = EXCLUDED.fingerprint, breadcrumb_id = EXCLUDED.breadcrumb_id, created_at = now()
         WHERE k.created_at < now() - interval '24 hours'
         RETURNING breadcrumb_id",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(key)
    .bind(fingerprint)
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    if taken.is_some() {
        return Ok(Standing::First);
    }
    let (first_fingerprint, first_id): (String, Uuid) = sqlx::query_as(
        "SELECT fingerprint, breadcrumb_id FROM idempotency_keys WHERE owner_id = $1 AND agent_id = $2 AND key = $3",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(key)
    .fetch_one(tx.connection())
    .await?;
    if first_fingerprint == fingerprint {
        Ok(Standing::Answered(first_id))
    } else {
        Err(StoreError::IdempotencyMismatch.into())
    }
}
