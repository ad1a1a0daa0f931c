//! Secrets: names, hosts and grants to tools. Values leave the store only through an audited
//! decryption.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{HostEntry, Violations};

/// The fewest bytes of a value that tools cannot read. Redaction removes such a value by exact
/// match from everything that returns to a tool, and a shorter value would match other text by
/// chance.
pub const MIN_OPAQUE_BYTES: usize = 8;
/// The most bytes of a value.
pub const MAX_SECRET_BYTES: usize = 65_536;
/// The most hosts that one secret can be bound to.
pub const MAX_SECRET_HOSTS: usize = 50;

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretInfo {
    pub id: Uuid,
    pub name: String,
    /// Starts at 1 and grows with each new value.
    pub version: i64,
    /// Where the value can be sent: `host`, `host:port` or `*.host`. If empty, nowhere.
    pub hosts: Vec<String>,
    /// Whether a tool's code receives the value itself instead of a handle.
    pub readable: bool,
    /// A label from RCRT's clients, such as `global` or `workspace`. It has no effect on access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<Uuid>,
    /// The tools that can use it, oldest grant first.
    pub tools: Vec<GrantedTool>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A tool that can use a secret. The grant belongs to the tool's record and ends with it: another
/// record that takes the name has no grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GrantedTool {
    /// The tool's record.
    pub tool_id: Uuid,
    /// The current name of the record.
    pub tool: String,
    /// The record's version when the grant was made. An older version that runs does not receive
    /// the secret. From the grant on only curators can change the record, so a curator has approved
    /// all code that uses the secret.
    pub tool_version: i64,
    pub granted_at: DateTime<Utc>,
    /// The agent that made the grant.
    pub granted_by: Uuid,
}

impl SecretInfo {
    pub fn is_granted_to(&self, tool_id: Uuid) -> bool {
        self.grant_of(tool_id).is_some()
    }

    /// The grant of this tool's record, if any.
    pub fn grant_of(&self, tool_id: Uuid) -> Option<&GrantedTool> {
        self.tools.iter().find(|granted| granted.tool_id == tool_id)
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSecret {
    /// A letter or `_`, followed by letters, digits and `_`; at most 200 characters; unique in its
    /// tenant. A server with `--compat rcrt` also accepts spaces and any of `.:/@+()-`, and a digit
    /// in front; a tool's `required_secrets` cannot name such a secret.
    #[schema(min_length = 1, max_length = 200, pattern = "^[A-Za-z_][A-Za-z0-9_]*$")]
    pub name: String,
    /// 1 to 65,536 bytes; at least 8 if tools cannot read it.
    #[schema(min_length = 1, max_length = 65_536)]
    pub value: String,
    /// Where the value can be sent: `api.example.com`, `api.example.com:8443`, `*.example.com`; at
    /// most 50.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether a tool's code receives the value itself. By default it receives a handle.
    #[serde(default)]
    pub readable: bool,
    /// A label without effect on access: RCRT's clients say here what the secret is for. At most
    /// 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100, pattern = "\\S")]
    pub scope_type: Option<String>,
    /// The id that belongs to `scope_type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_id: Option<Uuid>,
}

/// The changes to a secret. Absent fields keep their values, and grants remain.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretChanges {
    /// Replaces the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Replaces all hosts. `[]` binds the secret to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readable: Option<bool>,
    /// The version that is changed. If the secret has another one, nothing changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The record of the tool that renews the value; the secret must be granted to it. Only a
    /// curator can omit it. With it, only the value can change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Uuid>,
}

impl NewSecret {
    /// A secret that is bound to no host and not readable.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            hosts: Vec::new(),
            readable: false,
            scope_type: None,
            scope_id: None,
        }
    }

    /// Checks what a store requires. The name can be one that only RCRT's clients use.
    pub fn check(&self) -> Result<(), Violations> {
        let rule = "must be a letter, a digit or _, then also spaces and any of .:/@+()-, at most 200 in all";
        self.checked(is_kept_name, rule)
    }

    /// The same for a secret that a tool's `required_secrets` can name.
    pub fn check_for_tools(&self) -> Result<(), Violations> {
        let rule = "must be a letter or _, then letters, digits and _, at most 200 in all, so that tools can name it";
        self.checked(is_secret_name, rule)
    }

    fn checked(&self, is_name: impl Fn(&str) -> bool, rule: &str) -> Result<(), Violations> {
        let mut found = Violations::default();
        if !is_name(&self.name) {
            found.add("name", rule);
        }
        check_value(&self.value, self.readable, &mut found);
        if let Err(more) = secret_hosts(&self.hosts) {
            found.0.extend(more.0);
        }
        if let Some(scope) = &self.scope_type {
            found.text("scope_type", scope, 100);
        }
        found.into_result()
    }
}

impl SecretChanges {
    /// Changes only the value.
    pub fn value(value: impl Into<String>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// Checks what does not depend on the stored secret. Only the store knows whether tools can
    /// read the value, and so whether it is long enough.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        let is_use_changed = self.hosts.is_some() || self.readable.is_some();
        if self.value.is_none() && !is_use_changed {
            found.add("", "must have at least one of value, hosts and readable");
        }
        if self.tool_id.is_some() && is_use_changed {
            found.add("tool_id", "must be absent if hosts or readable change; with it, only the value can change");
        }
        if let Some(value) = &self.value {
            // The stored secret may be readable. The store checks the length.
            check_value(value, self.readable.unwrap_or(true), &mut found);
        }
        if let Some(Err(more)) = self.hosts.as_deref().map(secret_hosts) {
            found.0.extend(more.0);
        }
        found.into_result()
    }
}

/// Allows nothing that would break JSON, a header or a log line with the name.
fn is_kept_name(name: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "_ .:/@+()-".contains(c);
    name.len() <= 200 && name.chars().all(is_good) && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// A name by which a tool's code can refer to a secret: a letter or `_`, followed by letters,
/// digits and `_`; at most 200 characters.
pub fn is_secret_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.len() <= 200 && name.chars().all(is_word) && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// Refuses a value that is too short for a secret that tools cannot read.
pub fn check_opaque_length(bytes: usize, field: &str) -> Result<(), Violations> {
    if bytes >= MIN_OPAQUE_BYTES {
        return Ok(());
    }
    let message = format!(
        "has {bytes} bytes; a value that tools cannot read needs at least {MIN_OPAQUE_BYTES}: use a longer one, or \
         make it readable"
    );
    Err(Violations::one(field, message))
}

fn check_value(value: &str, readable: bool, found: &mut Violations) {
    if !(1..=MAX_SECRET_BYTES).contains(&value.len()) {
        found.add("value", "must have 1 to 65536 bytes");
    } else if !readable && let Err(more) = check_opaque_length(value.len(), "value") {
        found.0.extend(more.0);
    }
}

/// Returns the hosts in canonical form without duplicates, or the invalid entries.
pub fn secret_hosts(hosts: &[String]) -> Result<Vec<String>, Violations> {
    if hosts.len() > MAX_SECRET_HOSTS {
        let message = format!("has {} entries; at most {MAX_SECRET_HOSTS} are allowed", hosts.len());
        return Err(Violations::one("hosts", message));
    }
    let mut found = Violations::default();
    let mut read: Vec<String> = Vec::with_capacity(hosts.len());
    for (index, host) in hosts.iter().enumerate() {
        match HostEntry::parse(host).map(|entry| entry.to_string()) {
            Ok(host) if read.contains(&host) => {}
            Ok(host) => read.push(host),
            Err(error) => found.add(format!("hosts[{index}]"), error.problem),
        }
    }
    found.into_result().map(|()| read)
}

impl std::fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSecret")
            .field("name", &self.name)
            .field("hosts", &self.hosts)
            .field("readable", &self.readable)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SecretChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretChanges")
            .field("value", &self.value.as_ref().map(|_| "…"))
            .field("hosts", &self.hosts)
            .field("readable", &self.readable)
            .field("version", &self.version)
            .field("tool_id", &self.tool_id)
            .finish()
    }
}
