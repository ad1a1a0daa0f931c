//! Secrets: kept sealed, opened one at a time and on the record.

mod envelope;

use breadcrumb::{NewSecret, SecretInfo, StoreError, Violations};
use chrono::{DateTime, Utc};
use uuid::Uuid;

pub(crate) use self::envelope::Envelope;
use self::envelope::{Place, Sealed};
use crate::audit;
use crate::failure::{Done, Failure};
use crate::transaction::TenantTransaction;

#[derive(sqlx::FromRow)]
struct SecretRow {
    id: Uuid,
    name: String,
    version: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<SecretRow> for SecretInfo {
    fn from(row: SecretRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

fn unknown(id: Uuid) -> StoreError {
    StoreError::NotFound { what: "secret", id }
}

pub(crate) async fn create(
    mut tx: TenantTransaction,
    agent: Uuid,
    envelope: &Envelope,
    secret: &NewSecret,
) -> Done<SecretInfo> {
    let id = Uuid::now_v7();
    let owner_id = tx.owner_id;
    let sealed = envelope.seal(Place { owner_id, id, version: 1 }, secret.value.as_bytes())?;
    let row: SecretRow = sqlx::query_as(
        "INSERT INTO secrets (id, owner_id, name, version, key_id, wrapped_key, sealed_value, created_at, updated_at)
         VALUES ($1, $2, $3, 1, $4, $5, $6, now(), now())
         RETURNING id, name, version, created_at, updated_at",
    )
    .bind(id)
    .bind(owner_id)
    .bind(&secret.name)
    .bind(sealed.key_id)
    .bind(sealed.wrapped_key)
    .bind(sealed.value)
    .fetch_one(tx.connection())
    .await
    .map_err(|error| {
        let failure = Failure::from(error);
        if failure.violates("secrets_owner_id_name_key") {
            Violations::one("name", "is the name of another secret of this tenant; rotate that one").into()
        } else if failure.violates("secrets_owner_id_fkey") {
            StoreError::NotFound { what: "tenant", id: owner_id }.into()
        } else {
            failure
        }
    })?;
    audit::write(&mut tx, Some(agent), "secret.created", id, &row.name, None).await?;
    tx.commit().await?;
    Ok(row.into())
}

pub(crate) async fn list(tx: &mut TenantTransaction) -> Done<Vec<SecretInfo>> {
    let rows: Vec<SecretRow> =
        sqlx::query_as("SELECT id, name, version, created_at, updated_at FROM secrets ORDER BY name COLLATE \"C\"")
            .fetch_all(tx.connection())
            .await?;
    Ok(rows.into_iter().map(SecretInfo::from).collect())
}

/// The old value is gone with its ciphertext.
pub(crate) async fn rotate(
    mut tx: TenantTransaction,
    agent: Uuid,
    envelope: &Envelope,
    id: Uuid,
    value: &str,
) -> Done<SecretInfo> {
    let version: Option<i64> = sqlx::query_scalar("SELECT version FROM secrets WHERE id = $1 FOR UPDATE")
        .bind(id)
        .fetch_optional(tx.connection())
        .await?;
    let version = version.ok_or_else(|| unknown(id))? + 1;
    let sealed = envelope.seal(Place { owner_id: tx.owner_id, id, version }, value.as_bytes())?;
    let row: SecretRow = sqlx::query_as(
        "UPDATE secrets SET version = $2, key_id = $3, wrapped_key = $4, sealed_value = $5, updated_at = now()
         WHERE id = $1 RETURNING id, name, version, created_at, updated_at",
    )
    .bind(id)
    .bind(version)
    .bind(sealed.key_id)
    .bind(sealed.wrapped_key)
    .bind(sealed.value)
    .fetch_one(tx.connection())
    .await?;
    audit::write(&mut tx, Some(agent), "secret.rotated", id, &row.name, None).await?;
    tx.commit().await?;
    Ok(row.into())
}

pub(crate) async fn delete(mut tx: TenantTransaction, agent: Uuid, id: Uuid) -> Done<()> {
    let name: Option<String> = sqlx::query_scalar("DELETE FROM secrets WHERE id = $1 RETURNING name")
        .bind(id)
        .fetch_optional(tx.connection())
        .await?;
    let name = name.ok_or_else(|| unknown(id))?;
    audit::write(&mut tx, Some(agent), "secret.deleted", id, &name, None).await?;
    tx.commit().await
}

pub(crate) fn check_reason(reason: &str) -> Result<(), Violations> {
    if reason.trim().is_empty() || reason.chars().count() > 1000 || reason.contains('\0') {
        return Err(Violations::one("reason", "must have 1 to 1000 characters, none of them NUL: why it is read"));
    }
    Ok(())
}

#[derive(sqlx::FromRow)]
struct SealedRow {
    name: String,
    version: i64,
    key_id: String,
    wrapped_key: Vec<u8>,
    sealed_value: Vec<u8>,
}

/// The value, once the line in the audit log is on disk.
pub(crate) async fn decrypt(
    mut tx: TenantTransaction,
    agent: Uuid,
    envelope: &Envelope,
    id: Uuid,
    reason: &str,
) -> Done<String> {
    let row: Option<SealedRow> =
        sqlx::query_as("SELECT name, version, key_id, wrapped_key, sealed_value FROM secrets WHERE id = $1")
            .bind(id)
            .fetch_optional(tx.connection())
            .await?;
    let row = row.ok_or_else(|| unknown(id))?;
    audit::write(&mut tx, Some(agent), "secret.decrypted", id, &row.name, Some(reason)).await?;
    let place = Place { owner_id: tx.owner_id, id, version: row.version };
    let sealed = Sealed { key_id: row.key_id, wrapped_key: row.wrapped_key, value: row.sealed_value };
    let value = envelope.open(place, &sealed)?;
    tx.commit().await?;
    String::from_utf8(value).map_err(|_| StoreError::Internal(format!("secret {id} is no text")).into())
}
