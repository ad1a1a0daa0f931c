//! The secrets of a call: decides which secrets its tool receives, and fetches their values.

use std::sync::{Arc, LazyLock};

use rcrt_breadcrumb::{
    ErrorCode, HostEntry, SecretInfo, SecretUnavailable, Secrets, StoreError, ToolFailure, ToolRequest,
};
use rcrt_egress::{HeldSecret, Vault};
use serde_json::json;

use crate::backoff::with_retries;
use crate::registry::missing_requirements::MissingRequirements;
use crate::registry::tool::Tool;

/// Most tools have none.
static NO_SECRETS: LazyLock<Arc<Vault>> = LazyLock::new(Arc::default);

/// The tool's required secrets, and those of its optional ones that are granted to it. Each
/// decryption is audited with the tool and the request. A tool that lacks a required secret is
/// refused before it runs, with the command that fixes it.
pub(crate) async fn granted_secrets(
    store: &dyn Secrets,
    tool: &Tool,
    request: &ToolRequest,
) -> Result<Arc<Vault>, ToolFailure> {
    let required = tool.executor.required_secrets(&tool.definition);
    let optional = tool.executor.optional_secrets(&tool.definition);
    if required.is_empty() && optional.is_empty() && !tool.gets_all_granted {
        return Ok(NO_SECRETS.clone());
    }
    let known = with_retries("list secrets", || store.secrets()).await.map_err(|error| listing_failure(&error))?;
    let missing = MissingRequirements::of(tool, &known);
    if !missing.is_empty() {
        return Err(missing.failure(tool));
    }
    let mut held = Vec::new();
    for secret in &known {
        if required.contains(&secret.name) && !tool.gets_all_granted {
            held.push(open(store, secret, tool, request).await?);
        } else if (tool.gets_all_granted || optional.contains(&secret.name))
            && SecretUnavailable::check(Some((tool.id, tool.version)), Some(secret)).is_none()
            && let Ok(secret) = open(store, secret, tool, request).await
        {
            held.push(secret);
        }
    }
    let vault = Vault::new(held).map_err(|error| ToolFailure::new(ErrorCode::ExecutionFailed, error.to_string()))?;
    Ok(Arc::new(vault))
}

async fn open(
    store: &dyn Secrets,
    secret: &SecretInfo,
    tool: &Tool,
    request: &ToolRequest,
) -> Result<HeldSecret, ToolFailure> {
    let name = &secret.name;
    // A request's own id may be long, and the audit log takes 1000 characters.
    let request_id: String = request.request_id.chars().take(300).collect();
    let reason = format!("tool {}, request {request_id}", tool.name());
    let value = with_retries("decrypt a secret", || store.decrypt_secret(secret.id, &reason, Some(tool.id)))
        .await
        .map_err(|error| decryption_failure(name, tool, &error))?;
    let hosts: Result<Vec<HostEntry>, _> = secret.hosts.iter().map(|host| HostEntry::parse(host)).collect();
    let hosts = hosts.map_err(|error| {
        // The store validates hosts when a secret is written.
        tracing::error!(secret = name, %error, "a secret is bound to an invalid host");
        denied(format!("the secret {name:?} is bound to an invalid host: {error}"), name)
    })?;
    if !secret.readable
        && let Err(violations) = rcrt_breadcrumb::check_opaque_length(value.len(), "its value")
    {
        return Err(denied(format!("the secret {name:?} cannot be hidden from the tool: {violations}"), name));
    }
    Ok(HeldSecret { name: name.clone(), value, hosts, readable: secret.readable })
}

fn listing_failure(error: &StoreError) -> ToolFailure {
    if matches!(error, StoreError::Forbidden(_) | StoreError::Unauthorized(_)) {
        return ToolFailure::new(
            ErrorCode::PermissionDenied,
            "the runner's agent cannot use secrets; it needs the role runner",
        );
    }
    tracing::error!(%error, "the secrets cannot be listed");
    ToolFailure::new(ErrorCode::ExecutionFailed, "the tool's secrets cannot be read").retryable(true)
}

fn decryption_failure(name: &str, tool: &Tool, error: &StoreError) -> ToolFailure {
    match error {
        // The grant was revoked, or the secret deleted, after the list was read.
        StoreError::Forbidden(_) => MissingRequirements::secret(name, SecretUnavailable::NotGranted).failure(tool),
        StoreError::NotFound { .. } => MissingRequirements::secret(name, SecretUnavailable::Missing).failure(tool),
        StoreError::Unauthorized(_) => denied(format!("the runner is not allowed to read the secret {name:?}"), name),
        StoreError::SecretKeyMissing(why) => {
            tracing::error!(secret = name, why, "the key of a secret is missing");
            ToolFailure::new(ErrorCode::ExecutionFailed, format!("the secret {name:?} cannot be decrypted: {why}"))
                .with_details(json!({"secret": name}))
        }
        other => {
            tracing::error!(secret = name, error = %other, "a secret cannot be read");
            ToolFailure::new(ErrorCode::ExecutionFailed, format!("the secret {name:?} cannot be read")).retryable(true)
        }
    }
}

fn denied(message: String, name: &str) -> ToolFailure {
    ToolFailure::new(ErrorCode::PermissionDenied, message).with_details(json!({"secret": name}))
}
