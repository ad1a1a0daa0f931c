//! With `rcrt_compat`: a curator who writes a tool's configuration (`tool.config.v1`) and names
//! secrets in it by their ids grants them to that tool, as the original RCRT's dashboard does. A
//! secret without hosts is bound to the hosts that the tool names: those in `permissions.net`, or
//! if that allows every host, those of the `https` URLs in its code. The same happens when a
//! curator writes the tool after its configuration.

use std::collections::BTreeSet;

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbQuery, Breadcrumbs, ContextMatch, ContextPath, HostEntry, MAX_SECRET_HOSTS, MatchOp,
    NewBreadcrumb, Role, SecretChanges, SecretInfo, StoreError, Tenancy, schema_names,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::auth::access::Caller;
use crate::http::problem::Problem;
use crate::routes::secret_grants;

const TOOL_CONFIG: &str = "tool.config.v1";
/// The field of a configuration that names its tool, in RCRT's two forms.
const NAMES: [&str; 2] = ["tool_name", "toolName"];
/// The most configurations of one tool that are read.
const MAX_CONFIGS: u32 = 20;

/// A tool, and the ids in its configuration that can be ids of secrets.
pub struct ConfigSecrets {
    tool: String,
    ids: BTreeSet<Uuid>,
}

impl ConfigSecrets {
    /// `None` if the record contains no such ids, or its writer is not a curator.
    pub fn of(caller: &Caller, schema_name: Option<&str>, context: &Map<String, Value>) -> Option<Self> {
        let is_config = schema_name == Some(TOOL_CONFIG) && caller.identity.has(Role::Curator);
        if is_config { Self::in_config(context) } else { None }
    }

    fn in_config(context: &Map<String, Value>) -> Option<Self> {
        let tool = NAMES.into_iter().find_map(|name| context.get(name))?.as_str()?.to_owned();
        let values = context.get("config")?.as_object()?.values();
        let ids: BTreeSet<Uuid> = values.filter_map(|value| Uuid::try_parse(value.as_str()?).ok()).collect();
        (!ids.is_empty()).then_some(Self { tool, ids })
    }

    /// The record is already written, so a failure is only logged.
    pub async fn grant(self, store: &dyn Breadcrumbs) {
        if let Err(problem) = self.try_grant(store).await {
            let (tool, why) = (&self.tool, problem.detail());
            tracing::warn!(tool, why, "the secrets in a tool's configuration could not be granted to it");
        }
    }

    async fn try_grant(&self, store: &dyn Breadcrumbs) -> Result<(), Problem> {
        let chosen = self.chosen(store).await?;
        if chosen.is_empty() {
            return Ok(());
        }
        let tool_id = secret_grants::named(store, &self.tool).await?;
        Ok(self.grant_to(store, tool_id, chosen).await?)
    }

    async fn chosen(&self, store: &dyn Breadcrumbs) -> Result<Vec<SecretInfo>, StoreError> {
        let mut chosen = store.secrets().await?;
        chosen.retain(|secret| self.ids.contains(&secret.id));
        Ok(chosen)
    }

    async fn grant_to(
        &self,
        store: &dyn Breadcrumbs,
        tool_id: Uuid,
        chosen: Vec<SecretInfo>,
    ) -> Result<(), StoreError> {
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

/// A tool that a curator is writing. Its configuration can be older than the tool, for example
/// after the tool was deleted.
pub struct NewTool {
    name: String,
}

impl NewTool {
    /// `None` if the record is no tool, or its writer is not a curator.
    pub fn of(caller: &Caller, record: &NewBreadcrumb) -> Option<Self> {
        let is_tool = schema_names::is_tool(record.schema_name.as_deref());
        if !is_tool || !caller.identity.has(Role::Curator) {
            return None;
        }
        Some(Self { name: record.context.get("name")?.as_str()?.to_owned() })
    }

    /// Grants the secrets in the tool's configurations whose last version a curator wrote. The
    /// record is already written, so a failure is only logged.
    pub async fn grant(self, caller: &Caller, tenancy: &dyn Tenancy, tool_id: Uuid) {
        if let Err(error) = self.try_grant(caller, tenancy, tool_id).await {
            let tool = &self.name;
            tracing::warn!(tool, %error, "the secrets in a new tool's configuration could not be granted to it");
        }
    }

    async fn try_grant(&self, caller: &Caller, tenancy: &dyn Tenancy, tool_id: Uuid) -> Result<(), StoreError> {
        let store = &*caller.store;
        for config in self.configs(store).await? {
            let Some(author) = config.updated_by else { continue };
            let author = tenancy.agent(caller.identity.owner_id, author).await?;
            if !author.is_some_and(|author| author.roles.contains(&Role::Curator)) {
                continue;
            }
            if let Some(named) = ConfigSecrets::in_config(&config.context) {
                named.grant_to(store, tool_id, named.chosen(store).await?).await?;
            }
        }
        Ok(())
    }

    async fn configs(&self, store: &dyn Breadcrumbs) -> Result<Vec<Breadcrumb>, StoreError> {
        let mut found = Vec::new();
        for name in NAMES {
            let path = ContextPath::try_from(format!("$.{name}")).map_err(StoreError::Internal)?;
            let mut query = BreadcrumbQuery { limit: MAX_CONFIGS, ..BreadcrumbQuery::of_schema(TOOL_CONFIG) };
            query.selector.context_match =
                vec![ContextMatch { path, op: MatchOp::Eq, value: self.name.as_str().into() }];
            query.include_context = false;
            // Another tenant can share records with this one.
            for item in store.list(&query).await?.into_iter().filter(|item| item.owner_id.is_none()) {
                found.push(store.get(item.id).await?);
            }
        }
        Ok(found)
    }
}

async fn bind(store: &dyn Breadcrumbs, secret: &SecretInfo, tool_id: Uuid) -> Result<(), StoreError> {
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
