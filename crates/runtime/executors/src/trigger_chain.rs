//! The trigger chain: a tool that an event triggered writes records, and those create events. Each
//! record that such a call writes names the tools that led to it, so that no tool triggers itself,
//! directly or through others.
//!
//! The marks are tags, `triggered:<tool>:<version>`: every runner sees them, and they apply to the
//! one version that the call wrote. A later change by another writer makes a version without them.
//!
//! Tools can call tools by writing requests, including requests for themselves. Such a request
//! carries `nested:<depth>`, so that a cycle of requests stops.

const PREFIX: &str = "triggered:";
const NESTED: &str = "nested:";

/// The longest sequence of requests in which each was written by the call before it. While a call
/// waits for the next one, it holds a worker process.
const MAX_DEPTH: u32 = 8;

/// What led to a call: the triggered tools, oldest first, and the number of nested requests. Empty
/// and 0 for a call that an agent requested.
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

    /// What led to a request. Only its first version counts; later changes are ignored.
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

    /// Whether a call wrote the request.
    pub fn is_nested(&self) -> bool {
        self.depth > 0
    }

    /// Whether no event led to the call.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tags for this version of a record that a call of the chain writes. Marks of other
    /// versions are removed.
    pub fn mark(&self, tags: &mut Vec<String>, version: i64) {
        tags.retain(|tag| !tag.starts_with(PREFIX));
        tags.extend(self.tools.iter().map(|tool| format!("{PREFIX}{tool}:{version}")));
    }

    /// The tags for a request that a call of the chain writes. The error says that requests are
    /// nested too deeply.
    pub fn mark_request(&self, tags: &mut Vec<String>) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            return Err(format!(
                "calls that ask for calls can be nested {MAX_DEPTH} deep: this one cannot write a request"
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
