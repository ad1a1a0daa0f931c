//! Profiles: the kind of calling agent, and the tools that it can call. The rules are in code, so
//! no configuration can allow what a profile denies.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::names::names;
use crate::{ToolFilter, ToolSource};

/// Tools that start, watch and cancel subagents.
pub const SUBAGENT_TOOLS: &[&str] = &["spawn_subagent", "list_subagents", "get_subagent_result", "cancel_subagent"];
/// Tools that register MCP servers.
pub const MCP_REGISTRATION_TOOLS: &[&str] = &["mcp_register_server", "mcp_unregister_server"];
/// Tools that talk to other agents.
pub const A2A_TOOLS: &[&str] = &["invoke_agent", "list_known_agents", "get_agent_details"];
/// Tools that decide which other agents are known.
pub const A2A_REGISTRATION_TOOLS: &[&str] = &["register_agent", "unregister_agent", "refresh_agent_card"];

/// Sources that every restricted profile allows. All of them deny a source that is not listed here
/// or below, so whoever adds a source decides for each profile. A curator registers each MCP
/// server, so all of those are allowed.
const EVERYDAY_SOURCES: &[&str] = &["native", "sandbox", "rest", "mcp"];
const SUBAGENT_SOURCE: &[&str] = &["subagent"];
const A2A_SOURCE: &[&str] = &["a2a"];

/// The kind of agent that a token is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every tool.
    #[default]
    Main,
    /// An agent that another agent started. It cannot start further subagents, cancel schedules or
    /// register MCP servers.
    Subagent,
    /// An agent that a schedule started. It cannot start subagents or register MCP servers.
    Scheduled,
    /// An agent that combines other agents' answers. It cannot contact further agents or register
    /// MCP servers.
    A2aSynthesis,
}

/// In the order of [`Profile::ALL`].
static FILTERS: LazyLock<[ToolFilter; Profile::ALL.len()]> = LazyLock::new(|| Profile::ALL.map(Profile::rules));

impl Profile {
    fn rules(self) -> ToolFilter {
        let restricted = ToolFilter::nothing().allow_sources(EVERYDAY_SOURCES);
        let starts_no_agents = |filter: ToolFilter| {
            let filter = filter.deny_sources(SUBAGENT_SOURCE).deny_names(SUBAGENT_TOOLS);
            filter.deny_names(MCP_REGISTRATION_TOOLS).deny_names(A2A_REGISTRATION_TOOLS)
        };
        match self {
            Self::Main => ToolFilter::everything(),
            Self::Subagent => {
                starts_no_agents(restricted).allow_sources(A2A_SOURCE).deny_names(&["cancel_scheduled_task"])
            }
            Self::Scheduled => starts_no_agents(restricted).allow_sources(A2A_SOURCE),
            Self::A2aSynthesis => {
                let restricted = restricted.allow_sources(SUBAGENT_SOURCE).deny_sources(A2A_SOURCE);
                restricted.deny_names(A2A_TOOLS).deny_names(A2A_REGISTRATION_TOOLS).deny_names(MCP_REGISTRATION_TOOLS)
            }
        }
    }

    /// The tools that this kind of agent can call.
    pub fn filter(self) -> &'static ToolFilter {
        &FILTERS[self as usize]
    }

    /// Whether this kind of agent can call this tool.
    pub fn allows(self, tool: &str, source: &ToolSource) -> bool {
        self.filter().allows(tool, source)
    }

    /// Whether this kind of agent cannot call any tool with this name, from any source.
    pub fn denies_name(self, tool: &str) -> bool {
        self.filter().denies_name(tool)
    }
}

names!(Profile, "profile", {
    Main => "main",
    Subagent => "subagent",
    Scheduled => "scheduled",
    A2aSynthesis => "a2asynthesis",
});

/// The profiles of a request: its author's, and those of the calls that led to it. A tool can be
/// called only if each of them allows it.
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

    /// The profiles of a record with these tags, by a writer of this profile.
    pub fn of_record(writer: Profile, tags: &[String]) -> Self {
        let mut profiles = Self::of(writer);
        profiles.add_tags(tags);
        profiles
    }

    /// `Main` denies nothing, so it is not stored.
    pub fn add(&mut self, profile: Profile) {
        if profile != Profile::Main {
            self.0.insert(profile);
        }
    }

    /// Adds the profiles in a request's tags (`profile:<name>`). Tags can only deny tools, so any
    /// author can write them.
    pub fn add_tags(&mut self, tags: &[String]) {
        for profile in tags.iter().filter_map(|tag| tag.strip_prefix(Self::PREFIX)?.parse().ok()) {
            self.add(profile);
        }
    }

    /// The tags of a request that is written under these profiles.
    pub fn tags(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|profile| format!("{}{profile}", Self::PREFIX))
    }

    pub fn iter(&self) -> impl Iterator<Item = Profile> {
        self.0.iter().copied()
    }

    /// The first profile that denies the tool; `None` if it can be called.
    pub fn denied_by(&self, tool: &str, source: &ToolSource) -> Option<Profile> {
        self.iter().find(|profile| !profile.allows(tool, source))
    }

    /// The first profile that denies every tool with this name. The source of a tool can be
    /// denied in addition.
    pub fn name_denied_by(&self, tool: &str) -> Option<Profile> {
        self.iter().find(|profile| profile.denies_name(tool))
    }
}
