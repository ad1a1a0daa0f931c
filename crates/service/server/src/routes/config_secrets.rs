//! With `rcrt_compat`: a curator who writes a tool's configuration (`tool.config.v1`) and names
//! secrets in it by their ids grants them to that tool, as the original RCRT's dashboard does. A
//! secret without hosts is bound to the hosts that the tool names: those in `permissions.net`, or
//! if that allows every host, those of the `https` URLs in its code.

use std::collections::BTreeSet;

use rcrt_breadcrumb::{HostEntry, MAX_SECRET_HOSTS, Records, Role, SecretChanges, SecretInfo, Secrets, StoreError};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::auth::access::Caller;
use crate::http::problem::Problem;
use crate::routes::secret_grants;

const TOOL_CONFIG: &str = "tool.config.v1";

/// A tool, and the ids in its configuration that can be ids of secrets.
pub struct ConfigSecrets {
    tool: String,
    ids: BTreeSet<Uuid>,
}

impl ConfigSecrets {
    /// `None` if the record contains no such ids, or its writer is not a curator.
    pub fn of(caller: &Caller, schema_name: Option<&str>, context: &Map<String, Value>) -> Option<Self> {
        if schema_name != Some(TOOL_CONFIG) || !caller.identity.has(Role::Curator) {
            return None;
        }
        let tool = context.get("tool_name").or_else(|| context.get("toolName"))?.as_str()?.to_owned();
        let values = context.get("config")?.as_object()?.values();
        let ids: BTreeSet<Uuid> = values.filter_map(|value| Uuid::try_parse(value.as_str()?).ok()).collect();
        (!ids.is_empty()).then_some(Self { tool, ids })
    }

    /// The record is already written, so a failure is only logged.
    pub async fn grant(self, store: &(impl Records + Secrets + ?Sized)) {
        if let Err(problem) = self.try_grant(store).await {
            let (tool, why) = (&self.tool, problem.detail());
            tracing::warn!(tool, why, "the secrets in a tool's configuration could not be granted to it");
        }
    }

    async fn try_grant(&self, store: &(impl Records + Secrets + ?Sized)) -> Result<(), Problem> {
        let mut chosen = store.secrets().await?;
        chosen.retain(|secret| self.ids.contains(&secret.id));
        if chosen.is_empty() {
            return Ok(());
        }
        let tool_id = secret_grants::named(store, &self.tool).await?;
        for secret in chosen {
            bind(store, &secret, tool_id).await?;
            if !secret.is_granted_to(tool_id) {
                store.grant_secret(secret.id, tool_id).await?;
                tracing::info!(
                    secret = secret.name,
                    tool = self.tool,
                    "granted: a curator chose it in the tool's configuration"
                );
            }
        }
        Ok(())
    }
}

async fn bind(store: &(impl Records + Secrets + ?Sized), secret: &SecretInfo, tool_id: Uuid) -> Result<(), StoreError> {
    if !secret.hosts.is_empty() || secret.readable {
        return Ok(());
    }
    let hosts = hosts_of(&store.get(tool_id).await?.context);
    if hosts.is_empty() {
        return Ok(());
    }
    store.update_secret(secret.id, SecretChanges { hosts: Some(hosts), ..SecretChanges::default() }).await?;
    Ok(())
}

/// The hosts that a tool names.
fn hosts_of(tool: &Map<String, Value>) -> Vec<String> {
    let listed = tool.get("permissions").and_then(|permissions| permissions.get("net"));
    let named: BTreeSet<String> = match listed {
        Some(Value::Array(hosts)) => hosts.iter().filter_map(|host| one_host(host.as_str()?)).collect(),
        Some(Value::Bool(true)) => {
            let code = tool.get("code");
            let source = code.and_then(|code| code.as_str().or_else(|| code.get("source")?.as_str()));
            source.unwrap_or_default().split("https://").skip(1).filter_map(address_host).collect()
        }
        _ => BTreeSet::new(),
    };
    named.into_iter().take(MAX_SECRET_HOSTS).collect()
}

/// The host at the beginning of a URL, if it is a literal.
fn address_host(rest: &str) -> Option<String> {
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == ':'));
    let (host, after) = rest.split_at(end.unwrap_or(rest.len()));
    // `https://${host}` and `https://api.${region}.example.com` have no literal host.
    if after.starts_with(['$', '{']) { None } else { one_host(host) }
}

fn one_host(text: &str) -> Option<String> {
    let host = HostEntry::parse(text).ok()?.to_string();
    (host.contains('.') && !host.contains('*')).then_some(host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hosts(tool: Value) -> Vec<String> {
        let Value::Object(tool) = tool else { return Vec::new() };
        hosts_of(&tool)
    }

    #[test]
    fn hosts_come_from_permissions_or_else_from_literal_urls() {
        let code = "fetch('https://api.example.com/v1'); fetch(`https://api.example.com:8443/${x}`); \
            const site = 'http://plain.example.com'; fetch(`https://${host}/`); fetch(`https://eu.${zone}.example.com`); \
            // see https://docs.example.com.";
        let written = ["api.example.com", "api.example.com:8443"];
        for code in [json!(code), json!({"language": "typescript", "source": code})] {
            assert_eq!(hosts(json!({"permissions": {"net": true}, "code": code}))[..2], written);
            assert_eq!(
                hosts(json!({"permissions": {"net": ["one.example.com", "*"]}, "code": code})),
                ["one.example.com"]
            );
            assert!(hosts(json!({"permissions": {"net": false}, "code": code})).is_empty());
            assert!(hosts(json!({"code": code})).is_empty());
        }
    }
}
