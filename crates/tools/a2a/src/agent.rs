//! A known agent, as its record stores it.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::NewBreadcrumb;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use rcrt_breadcrumb::schema_names::A2A_AGENT as AGENT_SCHEMA;

/// What [`is_name`] accepts.
pub(crate) const NAME_RULE: &str =
    "the name must be 1 to 100 letters, digits, spaces and any of . _ - and begin with a letter or a digit";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Unique in its tenant, whatever the case of its letters.
    pub name: String,
    /// Where the card was read.
    pub card_url: String,
    #[serde(flatten)]
    pub card: PinnedCard,
    /// The operator's: it cannot be unregistered.
    #[serde(default)]
    pub well_known: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// When the card was last read.
    pub last_seen: DateTime<Utc>,
    /// When it is read again.
    pub refresh_at: DateTime<Utc>,
    /// Why the last attempt to read it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Another card that the agent has shown since. It does not count until a curator has set
    /// `accepted_hash` to its hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PinnedCard>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_hash: Option<String>,
}

/// What counts of a card, and the hash of its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PinnedCard {
    /// SHA-256 in hex of the card's text as the agent sent it.
    pub card_hash: String,
    pub description: String,
    pub version: String,
    pub interface: Interface,
    /// Whether it sends updates of a task as they come.
    #[serde(default)]
    pub streaming: bool,
    /// Whether it sends push notifications.
    #[serde(default)]
    pub push: bool,
    pub skills: Vec<Skill>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    pub url: String,
    /// `JSONRPC` or `HTTP+JSON`.
    pub binding: String,
    /// The path that the agent gave this installation, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// The secret of a request to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Auth {
    /// The name of a secret that is granted to `invoke_agent` and bound to the agent's host.
    pub secret: String,
    /// The header. With `authorization` the value is sent as `Bearer <value>`.
    pub header: String,
}

impl AgentRecord {
    /// The record's context with an accepted card in place of the old one.
    pub fn read(context: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        let mut agent = Self::deserialize(Value::Object(context.clone()))?;
        let is_accepted = |pending: &mut PinnedCard| Some(&pending.card_hash) == agent.accepted_hash.as_ref();
        if let Some(accepted) = agent.pending.take_if(is_accepted) {
            agent.card = accepted;
        }
        Ok(agent)
    }

    /// Makes the card that waits count. Returns whether there was one.
    pub(crate) fn accept(&mut self) -> bool {
        let Some(accepted) = self.pending.take() else { return false };
        self.accepted_hash = Some(accepted.card_hash.clone());
        self.card = accepted;
        true
    }

    pub(crate) fn context(&self) -> Map<String, Value> {
        match json!(self) {
            Value::Object(context) => context,
            _ => Map::new(),
        }
    }

    pub(crate) fn record(&self) -> NewBreadcrumb {
        NewBreadcrumb {
            title: format!("Agent {}", self.name),
            description: Some(self.card.description.clone()),
            context: self.context(),
            tags: vec!["a2a:agent".into(), tag(&self.name)],
            schema_name: Some(AGENT_SCHEMA.into()),
            ..NewBreadcrumb::default()
        }
    }

    pub(crate) fn skill(&self, id: &str) -> Option<&Skill> {
        self.card.skills.iter().find(|skill| skill.id.eq_ignore_ascii_case(id))
    }
}

/// The tag of everything about an agent.
pub(crate) fn tag(name: &str) -> String {
    format!("a2a:agent:{}", name.to_lowercase())
}

pub(crate) fn is_name(name: &str) -> bool {
    (1..=100).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.ends_with(' ')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-'))
}
