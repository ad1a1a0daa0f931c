//! Who made whom run: a tool that was triggered by an event writes records, and those make events. Each record that
//! such a call writes carries the names of the tools that led to it, so that no tool triggers itself, be it over
//! others.
//!
//! The marks are tags, `triggered:<tool>:<version>`: every runner sees them, and they hold for the one version that the
//! call wrote. Whoever changes the record later makes a version without them.

const PREFIX: &str = "triggered:";

/// The tools that led to a call, oldest first. Empty for a call that an agent asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain(Vec<String>);

impl Chain {
    /// What led to this version of a record.
    pub fn of(tags: &[String], version: i64) -> Self {
        Self(
            tags.iter()
                .filter_map(|tag| tag.strip_prefix(PREFIX)?.rsplit_once(':'))
                .filter(|(_, marked)| marked.parse() == Ok(version))
                .map(|(tool, _)| tool.to_owned())
                .collect(),
        )
    }

    /// What led to a request: its first version tells, whatever was changed since.
    pub fn of_request(tags: &[String]) -> Self {
        Self::of(tags, 1)
    }

    #[must_use]
    pub fn with(mut self, tool: &str) -> Self {
        if !self.contains(tool) {
            self.0.push(tool.to_owned());
        }
        self
    }

    pub fn contains(&self, tool: &str) -> bool {
        self.0.iter().any(|one| one == tool)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tags for this version of a record that a call of the chain writes; marks of other versions end here.
    pub fn mark(&self, tags: &mut Vec<String>, version: i64) {
        tags.retain(|tag| !tag.starts_with(PREFIX));
        tags.extend(self.0.iter().map(|tool| format!("{PREFIX}{tool}:{version}")));
    }
}
