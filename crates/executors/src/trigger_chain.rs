//! The trigger chain: a tool that was triggered by an event writes records, and those make events.
//! Each record that such a call writes carries the names of the tools that led to it, so that no
//! tool triggers itself, directly or through others.
//!
//! The marks are tags, `triggered:<tool>:<version>`: every runner sees them, and they apply to the
//! one version that the call wrote. A later change by another writer makes a version without them.
//!
//! A tool can call tools by writing requests, itself among them. Such a request carries
//! `nested:<depth>`, so that a cycle of requests ends.

const PREFIX: &str = "triggered:";
const NESTED: &str = "nested:";

/// The maximum length of a sequence of requests in which each was written by the call before it.
const MAX_DEPTH: u32 = 16;

/// What led to a call: the tools that were triggered, oldest first, and how many calls wrote requests one after the
/// other. Empty and 0 for a call that an agent asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggerChain {
    tools: Vec<String>,
    depth: u32,
}

impl TriggerChain {
    /// What led to this version of a record.
    pub fn of(tags: &[String], version: i64) -> Self {
        let tools = tags
            .iter()
            .filter_map(|tag| tag.strip_prefix(PREFIX)?.rsplit_once(':'))
            .filter(|(_, marked)| marked.parse() == Ok(version))
            .map(|(tool, _)| tool.to_owned());
        Self { tools: tools.collect(), depth: 0 }
    }

    /// What led to a request: its first version tells, whatever was changed since.
    pub fn of_request(tags: &[String]) -> Self {
        let depth = tags.iter().filter_map(|tag| tag.strip_prefix(NESTED)?.parse().ok()).max().unwrap_or(0);
        Self { depth, ..Self::of(tags, 1) }
    }

    #[must_use]
    pub fn with(mut self, tool: &str) -> Self {
        if !self.contains(tool) {
            self.tools.push(tool.to_owned());
        }
        self
    }

    pub fn contains(&self, tool: &str) -> bool {
        self.tools.iter().any(|one| one == tool)
    }

    /// Whether no event led to the call.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tags for this version of a record that a call of the chain writes; marks of other versions end here.
    pub fn mark(&self, tags: &mut Vec<String>, version: i64) {
        tags.retain(|tag| !tag.starts_with(PREFIX));
        tags.extend(self.tools.iter().map(|tool| format!("{PREFIX}{tool}:{version}")));
    }

    /// The tags for a request that a call of the chain writes. Says why not when the row of requests is too long.
    pub fn mark_request(&self, tags: &mut Vec<String>) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            return Err(format!(
                "this call is {MAX_DEPTH} requests deep, each written by the call before it; it may write no request"
            ));
        }
        if !self.is_empty() {
            self.mark(tags, 1);
        }
        tags.retain(|tag| !tag.starts_with(NESTED));
        tags.push(format!("{NESTED}{}", self.depth + 1));
        Ok(())
    }
}
