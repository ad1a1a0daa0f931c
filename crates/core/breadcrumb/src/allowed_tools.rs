//! The allow list of an agent: which tools it can call.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LARGE_RESULT_READERS, ToolSource, Violations, intended_field};

/// The most entries in each list.
const MAX_ENTRIES: usize = 500;
/// The longest entry, in characters.
const MAX_ENTRY: usize = 200;

/// The sources of the executors that exist.
const SOURCES: [&str; 4] = ["native", "sandbox", "rest", "mcp"];

/// A tool is allowed if its name, its source or one of its record's tags is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AllowedTools {
    #[serde(default)]
    pub names: Vec<String>,
    /// `native`, `sandbox`, `rest`, `mcp:<server>`, or `mcp` for every MCP server.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Tags of the tool's record. Every agent that can change the record can set them.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A change of an agent's allow list: absent, `null`, or a new list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<AllowedTools>", into = "Option<AllowedTools>")]
pub enum AllowedToolsChange {
    #[default]
    None,
    /// Every tool is allowed.
    All,
    Only(AllowedTools),
}

impl From<Option<AllowedTools>> for AllowedToolsChange {
    fn from(list: Option<AllowedTools>) -> Self {
        list.map_or(Self::All, Self::Only)
    }
}

impl From<AllowedToolsChange> for Option<AllowedTools> {
    fn from(change: AllowedToolsChange) -> Self {
        change.applied_to(None)
    }
}

impl AllowedToolsChange {
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The list after the change.
    pub fn applied_to(self, list: Option<AllowedTools>) -> Option<AllowedTools> {
        match self {
            Self::None => list,
            Self::All => None,
            Self::Only(list) => Some(list),
        }
    }
}

impl AllowedTools {
    /// The native tools that read large results are always allowed: they return only what the agent
    /// can read, and without them it could not read the results of the tools on its list.
    pub fn allows(&self, name: &str, source: &ToolSource, tags: &[String]) -> bool {
        let reads_results = *source == ToolSource::Native && LARGE_RESULT_READERS.contains(&name);
        reads_results
            || self.names.iter().any(|allowed| allowed == name)
            || self.sources.iter().any(|allowed| *allowed == source.to_string() || *allowed == source.kind())
            || self.tags.iter().any(|allowed| tags.contains(allowed))
    }

    /// Whether no tool with this name is allowed, whatever its source and tags are.
    pub fn denies_name(&self, name: &str) -> bool {
        let is_named = LARGE_RESULT_READERS.contains(&name) || self.names.iter().any(|allowed| allowed == name);
        self.sources.is_empty() && self.tags.is_empty() && !is_named
    }

    /// Checks the list. `field_path` is its path in the input.
    pub fn check(&self, field_path: &str) -> Result<(), Violations> {
        let mut found = Violations::default();
        let lists = [("names", &self.names), ("sources", &self.sources), ("tags", &self.tags)];
        if lists.iter().all(|(_, list)| list.is_empty()) {
            found.add(field_path, "must list at least one name, source or tag; leave it out to allow every tool");
        }
        for (field, list) in lists {
            if list.len() > MAX_ENTRIES {
                found.add(format!("{field_path}.{field}"), format!("must have at most {MAX_ENTRIES} entries"));
            }
            for (index, entry) in list.iter().enumerate().take(MAX_ENTRIES) {
                found.text(&format!("{field_path}.{field}[{index}]"), entry, MAX_ENTRY);
            }
        }
        for (index, source) in self.sources.iter().enumerate().take(MAX_ENTRIES) {
            let field = format!("{field_path}.sources[{index}]");
            match source.parse::<ToolSource>() {
                Ok(ToolSource::Other(kind)) => {
                    if let Some(meant) = intended_field(&kind, SOURCES) {
                        found.add(field, format!("{kind:?} is not a source; did you mean {meant}?"));
                    }
                }
                Err(why) if source != "mcp" => found.add(field, why),
                _ => {}
            }
        }
        found.into_result()
    }
}

impl std::fmt::Display for AllowedTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lists = [("names", &self.names), ("sources", &self.sources), ("tags", &self.tags)];
        let listed = lists.iter().filter(|(_, list)| !list.is_empty());
        let texts: Vec<String> = listed.map(|(kind, list)| format!("{kind} {}", list.join(", "))).collect();
        f.write_str(&texts.join("; "))
    }
}
