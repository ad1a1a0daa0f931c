//! Configuration files of other programs: `{"mcpServers": {NAME: {…}}}`, and `{"Mcp": {"Servers":
//! [{"Name": …}]}}`.

use std::collections::BTreeMap;

use rcrt_breadcrumb::{Violations, nearest_names};
use serde_json::{Map, Value};

use crate::server::{ServerConfig, Transport};

/// The fields of one server, without `_` and in lower case, as the known programs write them.
const FIELDS: [&str; 19] = [
    "name",
    "description",
    "type",
    "transport",
    "command",
    "args",
    "arguments",
    "env",
    "environmentvariables",
    "url",
    "headers",
    "allowedtools",
    "deniedtools",
    "tooltimeoutms",
    "disabled",
    "enabled",
    "network",
    "memorymb",
    "elicitation",
];

/// The servers in a file, in the order of their names, or every violation.
pub fn read(text: &str) -> Result<Vec<ServerConfig>, Violations> {
    let file: Value =
        serde_json::from_str(text).map_err(|error| Violations::one("", format!("is not JSON: {error}")))?;
    let mut found = Violations::default();
    let mut servers = Vec::new();
    let listed = file.get("Mcp").and_then(|mcp| mcp.get("Servers")).and_then(Value::as_array);
    let named = ["mcpServers", "servers"].into_iter().find_map(|key| file.get(key)?.as_object());
    match (named, listed) {
        (Some(named), _) => {
            for (name, server) in named {
                servers.extend(one(&format!("mcpServers.{name}"), Some(name), server, &mut found));
            }
        }
        (None, Some(listed)) => {
            for (index, server) in listed.iter().enumerate() {
                servers.extend(one(&format!("Mcp.Servers[{index}]"), None, server, &mut found));
            }
        }
        (None, None) => found.add("", "has neither mcpServers nor Mcp.Servers; one of them names the servers"),
    }
    servers.sort_by(|left, right| left.name.cmp(&right.name));
    found.into_result().map(|()| servers)
}

/// The field by which a program's spelling is known.
fn plain(key: &str) -> String {
    key.replace('_', "").to_ascii_lowercase()
}

fn one(path: &str, name: Option<&str>, server: &Value, found: &mut Violations) -> Option<ServerConfig> {
    let Value::Object(given) = server else {
        found.add(path, "must be an object");
        return None;
    };
    let mut fields: BTreeMap<String, &Value> = BTreeMap::new();
    for (key, value) in given {
        let known = plain(key);
        if FIELDS.contains(&known.as_str()) {
            fields.insert(known, value);
        } else {
            let near = nearest_names(&known, FIELDS.into_iter()).into_iter().next();
            let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            found.add(format!("{path}.{key}"), format!("is not a known field{hint}"));
        }
    }
    let field = |names: &[&str]| names.iter().find_map(|name| fields.get(*name).copied());
    let mut context = Map::new();
    let mut put = |key: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            context.insert(key.to_owned(), value.clone());
        }
    };
    put("name", field(&["name"]));
    put("description", field(&["description"]));
    put("allowed_tools", field(&["allowedtools"]));
    put("denied_tools", field(&["deniedtools"]));
    put("tool_timeout_ms", field(&["tooltimeoutms"]));
    put("enabled", field(&["enabled"]));
    put("elicitation", field(&["elicitation"]));
    if field(&["disabled"]) == Some(&Value::Bool(true)) {
        put("enabled", Some(&Value::Bool(false)));
    }
    if let Some(name) = name {
        context.insert("name".to_owned(), name.into());
    }
    context.insert("transport".to_owned(), transport(path, &field, found)?);
    match ServerConfig::read(&context) {
        Ok(config) => Some(config),
        Err(violations) => {
            for violation in violations.0 {
                found.add(format!("{path}.{}", violation.field), violation.message);
            }
            None
        }
    }
}

fn transport<'v>(path: &str, field: &impl Fn(&[&str]) -> Option<&'v Value>, found: &mut Violations) -> Option<Value> {
    let kind = field(&["type", "transport"]).and_then(Value::as_str).map(plain);
    let is_url = field(&["url"]).is_some();
    let mut parts = Map::new();
    let mut put = |key: &str, names: &[&str]| {
        if let Some(value) = field(names).filter(|value| !value.is_null()) {
            parts.insert(key.to_owned(), value.clone());
        }
    };
    let kind = match kind.as_deref() {
        Some("http" | "streamablehttp" | "streamable-http" | "sse") => "http",
        None if is_url => "http",
        Some("stdio") | None => "stdio",
        Some(other) => {
            found.add(format!("{path}.type"), format!("is {other:?}; expected stdio or http"));
            return None;
        }
    };
    if kind == "http" {
        put("url", &["url"]);
        put("headers", &["headers"]);
    } else {
        put("command", &["command"]);
        put("args", &["args", "arguments"]);
        put("env", &["env", "environmentvariables"]);
        put("network", &["network"]);
        put("memory_mb", &["memorymb"]);
    }
    parts.insert("type".to_owned(), kind.into());
    Some(Value::Object(parts))
}

/// The variables and headers whose names say that their values are secret, and whose values are not
/// placeholders. Everybody who reads the record sees them.
pub fn plain_secrets(config: &ServerConfig) -> Vec<&str> {
    let texts = match &config.transport {
        Transport::Stdio { env, .. } => env,
        Transport::Http { headers, .. } => headers,
    };
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password", "authorization", "credential"].iter().any(|word| name.contains(word))
    };
    let is_plain = |value: &str| !value.is_empty() && !value.contains("${");
    texts.iter().filter(|(name, value)| is_secret(name) && is_plain(value)).map(|(name, _)| name.as_str()).collect()
}
