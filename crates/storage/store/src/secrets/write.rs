//! Creates, changes and deletes secrets. The caller has validated the input.

use rcrt_breadcrumb::{NewSecret, SecretChanges, SecretInfo, StoreError, Violations, check_opaque_length};
use uuid::Uuid;

use super::encryption::{EnvelopeCipher, OVERHEAD, SecretRef};
use super::{get, unknown};
use crate::database::failure::{Failure, Result};
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rights::audit::{self, AuditLine};

/// `hosts`: the secret's hosts, normalized.
pub(crate) async fn create(
    mut tx: TenantTransaction,
    agent: Uuid,
    cipher: &EnvelopeCipher,
    secret: &NewSecret,
    hosts: &[String],
) -> Result<SecretInfo> {
    let id = Uuid::now_v7();
    let owner_id = tx.owner_id;
    let sealed = cipher.seal(SecretRef { owner_id, id, version: 1 }, secret.value.as_bytes())?;
    sqlx::query(
        "INSERT INTO secrets (id, owner_id, name, version, key_id, wrapped_key, sealed_value, hosts, readable,
            scope_type, scope_id, created_at, updated_at)
         VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, now(), now())",
    )
    .bind(id)
    .bind(owner_id)
    .bind(&secret.name)
    .bind(sealed.key_id)
    .bind(sealed.wrapped_key)
    .bind(sealed.value)
    .bind(hosts)
    .bind(secret.readable)
    .bind(secret.scope_type.as_deref())
    .bind(secret.scope_id)
    .execute(tx.connection())
    .await
    .map_err(|error| {
        let failure = Failure::from(error);
        if failure.violates("secrets_owner_id_name_key") {
            Violations::one(
                "name",
                "is the name of another secret of this tenant; change that secret, or choose another name",
            )
            .into()
        } else if failure.violates("secrets_owner_id_fkey") {
            StoreError::NotFound { what: "tenant", id: owner_id }.into()
        } else {
            failure
        }
    })?;
    let line = |action| AuditLine::by(agent, action).on(id, &secret.name);
    audit::write(&mut tx, line("secret.created")).await?;
    if !hosts.is_empty() {
        audit::write(&mut tx, line("secret.bound").because(&bound_to(hosts))).await?;
    }
    if secret.readable {
        audit::write(&mut tx, line("secret.made_readable")).await?;
    }
    let secret = get(&mut tx, id).await?;
    tx.commit().await?;
    Ok(secret)
}

from_row! {
    struct CurrentRow {
        name: String,
        version: i64,
        hosts: Vec<String>,
        readable: bool,
        sealed_bytes: i32,
        /// To the tool that renews the value.
        is_granted: bool,
    }
}

/// A new value overwrites the ciphertext of the old one. `hosts`: normalized, if they change.
pub(crate) async fn update(
    mut tx: TenantTransaction,
    agent: Uuid,
    cipher: &EnvelopeCipher,
    id: Uuid,
    changes: &SecretChanges,
    hosts: Option<&[String]>,
) -> Result<SecretInfo> {
    let old: Option<CurrentRow> = sqlx::query_as(
        "SELECT name, version, hosts, readable, octet_length(sealed_value) AS sealed_bytes, EXISTS (
            SELECT FROM secret_grants g JOIN breadcrumbs b ON b.owner_id = g.owner_id AND b.id = g.tool_id
            WHERE g.owner_id = s.owner_id AND g.secret_id = s.id AND g.tool_id = $2 AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
         ) AS is_granted FROM secrets s WHERE id = $1 FOR UPDATE OF s",
    )
    .bind(id)
    .bind(changes.tool_id)
    .fetch_optional(tx.connection())
    .await?;
    let old = old.ok_or_else(|| unknown(id))?;
    let line = |action| {
        let line = AuditLine::by(agent, action).on(id, &old.name);
        changes.tool_id.map_or(line, |tool| line.for_tool(tool))
    };
    if let Some(tool) = changes.tool_id
        && !old.is_granted
    {
        audit::write(&mut tx, line("secret.refused")).await?;
        tx.commit().await?;
        let why = format!("the secret {} is not granted to the tool with the record {tool}", old.name);
        return Err(StoreError::Forbidden(why).into());
    }
    if let Some(expected) = changes.version.filter(|expected| *expected != old.version) {
        return Err(StoreError::VersionConflict { expected, actual: old.version }.into());
    }
    let readable = changes.readable.unwrap_or(old.readable);
    if !readable {
        // Also checked for an unchanged value, which may be older than this rule.
        let stored_length = usize::try_from(old.sealed_bytes).unwrap_or_default().saturating_sub(OVERHEAD);
        check_opaque_length(changes.value.as_ref().map_or(stored_length, String::len), "value")?;
    }
    let version = old.version + i64::from(changes.value.is_some());
    let secret_ref = SecretRef { owner_id: tx.owner_id, id, version };
    let sealed = changes.value.as_ref().map(|value| cipher.seal(secret_ref, value.as_bytes())).transpose()?;
    let (key_id, wrapped_key, value) =
        sealed.map_or((None, None, None), |sealed| (Some(sealed.key_id), Some(sealed.wrapped_key), Some(sealed.value)));
    sqlx::query(
        "UPDATE secrets SET version = $2, key_id = coalesce($3, key_id), wrapped_key = coalesce($4, wrapped_key),
            sealed_value = coalesce($5, sealed_value), hosts = coalesce($6, hosts), readable = $7, updated_at = now()
         WHERE id = $1",
    )
    .bind(id)
    .bind(version)
    .bind(key_id)
    .bind(wrapped_key)
    .bind(value)
    .bind(hosts)
    .bind(readable)
    .execute(tx.connection())
    .await?;
    if changes.value.is_some() {
        audit::write(&mut tx, line("secret.rotated")).await?;
    }
    if let Some(hosts) = hosts.filter(|hosts| *hosts != old.hosts) {
        audit::write(&mut tx, line("secret.bound").because(&bound_to(hosts))).await?;
    }
    if readable != old.readable {
        let action = if readable { "secret.made_readable" } else { "secret.made_opaque" };
        audit::write(&mut tx, line(action)).await?;
    }
    let secret = get(&mut tx, id).await?;
    tx.commit().await?;
    Ok(secret)
}

pub(crate) async fn delete(mut tx: TenantTransaction, agent: Uuid, id: Uuid) -> Result<()> {
    let name: Option<String> = sqlx::query_scalar("DELETE FROM secrets WHERE id = $1 RETURNING name")
        .bind(id)
        .fetch_optional(tx.connection())
        .await?;
    let name = name.ok_or_else(|| unknown(id))?;
    audit::write(&mut tx, AuditLine::by(agent, "secret.deleted").on(id, &name)).await?;
    tx.commit().await
}

fn bound_to(hosts: &[String]) -> String {
    if hosts.is_empty() { "to no host".into() } else { format!("to {}", hosts.join(", ")) }
}
