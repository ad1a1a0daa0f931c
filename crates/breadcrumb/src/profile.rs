//! Profiles: the kind of agent that calls, and which tools it can call. The rules are in code: no
//! configuration opens what a profile denies.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ToolFilter, ToolSource};

/// Tools that start, watch and end subagents.
pub const SUBAGENT_TOOLS: &[&str] = &["spawn_subagent", "list_subagents", "get_subagent_result", "cancel_subagent"];
/// Tools by which MCP servers are registered.
pub const MCP_REGISTRATION_TOOLS: &[&str] = &["mcp_register_server", "mcp_unregister_server"];
/// Tools that talk to other agents.
pub const A2A_TOOLS: &[&str] = &["invoke_agent", "list_known_agents", "get_agent_details"];

/// Sources that every restricted profile allows. A source that is not listed here or below is closed to all of them:
/// whoever adds one decides for each profile.
const EVERYDAY_SOURCES: &[&str] = &["native", "sandbox", "rest", "mcp"];
const SUBAGENT_SOURCE: &[&str] = &["subagent"];
const A2A_SOURCE: &[&str] = &["a2a"];

/// The kind of agent that a token is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything.
    #[default]
    Main,
    /// An agent that another agent started: it starts no further ones, cancels no schedules, registers no MCP servers.
    Subagent,
    /// What a schedule started: it starts no subagents and registers no MCP servers.
    Scheduled,
    /// Who puts together other agents' answers: it talks to no further agents.
    A2aSynthesis,
}

/// In the order of [`Profile::ALL`].
static FILTERS: LazyLock<[ToolFilter; Profile::ALL.len()]> = LazyLock::new(|| Profile::ALL.map(Profile::rules));

impl Profile {
    pub const ALL: [Self; 4] = [Self::Main, Self::Subagent, Self::Scheduled, Self::A2aSynthesis];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Subagent => "subagent",
            Self::Scheduled => "scheduled",
            Self::A2aSynthesis => "a2asynthesis",
        }
    }

    fn rules(self) -> ToolFilter {
        let restricted = ToolFilter::nothing().allow_sources(EVERYDAY_SOURCES);
        let starts_no_agents = |filter: ToolFilter| {
            filter.deny_sources(SUBAGENT_SOURCE).deny_names(SUBAGENT_TOOLS).deny_names(MCP_REGISTRATION_TOOLS)
        };
        match self {
            Self::Main => ToolFilter::everything(),
            Self::Subagent => {
                starts_no_agents(restricted).allow_sources(A2A_SOURCE).deny_names(&["cancel_scheduled_task"])
            }
            Self::Scheduled => starts_no_agents(restricted).allow_sources(A2A_SOURCE),
            Self::A2aSynthesis => {
                restricted.allow_sources(SUBAGENT_SOURCE).deny_sources(A2A_SOURCE).deny_names(A2A_TOOLS)
            }
        }
    }

    /// Which tools this kind of agent may call.
    pub fn filter(self) -> &'static ToolFilter {
        &FILTERS[self as usize]
    }

    /// Whether this tool is there for this kind of agent.
    pub fn allows(self, tool: &str, source: &ToolSource) -> bool {
        self.filter().allows(tool, source)
    }

    /// Whether a tool of this name is closed to this kind of agent, whatever its source.
    pub fn closes_name(self, tool: &str) -> bool {
        self.filter().denies_name(tool)
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|profile| profile.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no profile; the profiles are main, subagent, scheduled, a2asynthesis"))
    }
}

/// The profiles under which a request is made: its author's, and those of the calls that led to it. A tool is there
/// only where each of them allows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Profiles(BTreeSet<Profile>);

impl Profiles {
    const PREFIX: &'static str = "profile:";

    pub fn of(profile: Profile) -> Self {
        let mut profiles = Self::default();
        profiles.add(profile);
        profiles
    }

    /// `Main` closes nothing, so it is not kept.
    pub fn add(&mut self, profile: Profile) {
        if profile != Profile::Main {
            self.0.insert(profile);
        }
    }

    /// Adds what a request's tags (`profile:<name>`) say. Tags only ever close tools, whoever wrote them.
    pub fn add_tags(&mut self, tags: &[String]) {
        for profile in tags.iter().filter_map(|tag| tag.strip_prefix(Self::PREFIX)?.parse().ok()) {
            self.add(profile);
        }
    }

    /// The tags that a request carries which is written under these profiles.
    pub fn tags(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|profile| format!("{}{profile}", Self::PREFIX))
    }

    pub fn iter(&self) -> impl Iterator<Item = Profile> {
        self.0.iter().copied()
    }

    /// The first profile that closes the tool; `None` where it is there.
    pub fn closing(&self, tool: &str, source: &ToolSource) -> Option<Profile> {
        self.iter().find(|profile| !profile.allows(tool, source))
    }

    /// The first profile that closes every tool of this name. The tool's source may close it besides.
    pub fn closing_name(&self, tool: &str) -> Option<Profile> {
        self.iter().find(|profile| profile.closes_name(tool))
    }
}
