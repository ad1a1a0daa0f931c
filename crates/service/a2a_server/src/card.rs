//! The agent card: how other agents reach this server, and what they can ask for.

use rcrt_a2a_types::{HTTP_JSON, JSON_RPC, VERSION};
use rcrt_breadcrumb::Catalog;
use serde_json::{Value, json};

use crate::settings::{CardSettings, SkillSettings};

/// What a message's parts and a task's artifacts are.
pub(crate) const MODES: [&str; 2] = ["application/json", "text/plain"];
/// The most characters of a text in a card.
const MAX_TEXT: usize = 2000;

/// What a card is made of.
pub struct Card<'c> {
    pub settings: &'c CardSettings,
    /// The tools that the reader of the card can call: no other one is a skill.
    pub catalog: &'c Catalog,
    /// The URL of the interface, which serves both bindings.
    pub url: &'c str,
}

/// The card as JSON.
pub fn card(of: &Card<'_>) -> Value {
    let settings = of.settings;
    let skills: Vec<Value> = settings.skills.iter().filter_map(|skill| skill_of(skill, of.catalog)).collect();
    let interface = |binding: &str| json!({"url": of.url, "protocolBinding": binding, "protocolVersion": VERSION});
    json!({
        "name": bounded(settings.name.as_deref().unwrap_or("RCRT tool runtime")),
        "description": bounded(settings.description.as_deref().unwrap_or(
            "Runs tools. A message names its skill in metadata.skill, and has the input in a data part.",
        )),
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [interface(JSON_RPC), interface(HTTP_JSON)],
        "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": true},
        "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {
            "scheme": "bearer", "bearerFormat": "JWT", "description": "A token from POST /auth/token.",
        }}},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "defaultInputModes": MODES,
        "defaultOutputModes": MODES,
        "skills": skills,
    })
}

fn skill_of(skill: &SkillSettings, catalog: &Catalog) -> Option<Value> {
    let tool = catalog.find(&skill.tool)?;
    let tags = if skill.tags.is_empty() { vec![tool.source.to_string()] } else { skill.tags.clone() };
    let tags: Vec<String> = tags.iter().map(|tag| bounded(tag)).collect();
    let mut shown = json!({
        "id": skill.tool,
        "name": bounded(skill.name.as_deref().unwrap_or(&skill.tool)),
        "description": bounded(skill.description.as_deref().unwrap_or(&tool.description)),
        "tags": tags,
    });
    if !skill.examples.is_empty() {
        shown["examples"] = skill.examples.iter().map(|example| bounded(example)).collect();
    }
    Some(shown)
}

fn bounded(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}
