//! Reads an agent card: what counts of it, bounded and cleaned.

use std::time::Duration;

use rcrt_a2a_types::{HTTP_JSON, JSON_RPC, is_supported_version};
use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::hex;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use crate::agent::{Interface, PinnedCard, Skill};

/// The most skills of an agent.
const MAX_SKILLS: usize = 100;
/// The most tags and the most examples of a skill.
const MAX_ENTRIES: usize = 10;

/// A card that was read.
#[derive(Debug)]
pub(crate) struct ReadCard {
    /// As the agent calls itself.
    pub name: String,
    pub card: PinnedCard,
}

/// A card, and where it was found.
#[derive(Debug)]
pub(crate) struct FoundCard {
    pub url: String,
    pub read: ReadCard,
    /// How long it is valid, as its agent says.
    pub max_age: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Card {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    supported_interfaces: Vec<CardInterface>,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    skills: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CardInterface {
    url: String,
    #[serde(default)]
    protocol_binding: String,
    #[serde(default)]
    protocol_version: String,
    tenant: Option<String>,
}

#[derive(Deserialize)]
struct CardSkill {
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    examples: Vec<String>,
}

/// The error is a sentence about the card.
pub(crate) fn read(text: &[u8]) -> Result<ReadCard, String> {
    let card: Card = serde_json::from_slice(text)
        .map_err(|error| format!("the agent's card cannot be read: {}", line(&error.to_string(), 200)))?;
    let usable = |binding: &str| {
        card.supported_interfaces
            .iter()
            .find(|one| one.protocol_binding == binding && is_supported_version(&one.protocol_version))
    };
    let interface = usable(JSON_RPC).or_else(|| usable(HTTP_JSON)).ok_or(
        "the agent's card has no interface JSONRPC or HTTP+JSON of A2A 1.0; agents of other versions are not supported",
    )?;
    let url = Url::parse(&interface.url).ok().filter(is_usable);
    let url =
        url.ok_or("the agent's interface has no http or https URL of at most 2000 bytes and without a password")?;
    let tenant = interface.tenant.clone().filter(|tenant| !tenant.is_empty());
    if tenant.as_ref().is_some_and(|tenant| tenant.len() > 200 || tenant.contains(char::is_control)) {
        return Err("the tenant of the agent's interface has more than 200 bytes or a control character".into());
    }
    // A skill that is not well-formed is left out, so that it does not hide the others.
    let skills = card.skills.iter().filter_map(|skill| CardSkill::deserialize(skill).ok()).take(MAX_SKILLS);
    let short = |texts: Vec<String>, most| texts.iter().take(MAX_ENTRIES).map(|text| line(text, most)).collect();
    let skills = skills.map(|skill| Skill {
        id: line(&skill.id, 200),
        name: line(&skill.name, 200),
        description: line(&skill.description, 1000),
        tags: short(skill.tags, 50),
        examples: short(skill.examples, 300),
    });
    let has = |capability: &str| card.capabilities.get(capability) == Some(&Value::Bool(true));
    Ok(ReadCard {
        name: line(&card.name, 100),
        card: PinnedCard {
            card_hash: hex(&Sha256::digest(text)),
            description: line(&card.description, 2000),
            version: line(&card.version, 50),
            interface: Interface { url: url.into(), binding: interface.protocol_binding.clone(), tenant },
            streaming: has("streaming"),
            push: has("pushNotifications"),
            skills: skills.collect(),
        },
    })
}

fn is_usable(url: &Url) -> bool {
    let is_open = url.username().is_empty() && url.password().is_none();
    matches!(url.scheme(), "http" | "https") && url.has_host() && is_open && url.as_str().len() <= 2000
}

/// What changed, in words.
pub(crate) fn differences(old: &PinnedCard, new: &PinnedCard) -> Vec<String> {
    let mut found = Vec::new();
    if old.interface != new.interface {
        found.push(format!("interface: {} was {}", new.interface.url, old.interface.url));
    }
    if old.description != new.description {
        found.push("description".into());
    }
    if old.version != new.version {
        found.push(format!("version: {} was {}", new.version, old.version));
    }
    for skill in &new.skills {
        match old.skills.iter().find(|known| known.id == skill.id) {
            None => found.push(format!("skill {} is new", skill.id)),
            Some(known) if known != skill => found.push(format!("skill {} changed", skill.id)),
            Some(_) => {}
        }
    }
    let is_gone = |skill: &&Skill| new.skills.iter().all(|known| known.id != skill.id);
    found.extend(old.skills.iter().filter(is_gone).map(|skill| format!("skill {} is gone", skill.id)));
    if found.is_empty() {
        found.push("parts of the card that are not used here".into());
    }
    found
}
