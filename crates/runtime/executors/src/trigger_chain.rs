//! The trigger chain: a tool that an event triggered writes records, and those create events. Each
//! record that such a call writes names the tools that led to it, so that no tool triggers itself,
//! directly or through others.
//!
//! The marks are tags, `triggered:<tool>:<version>`: every runner sees them, and they apply to the
//! one version that the call wrote. A later change by another writer makes a version without them.
//!
//! They also carry `triggered-by:<request>:<version>`, the call that wrote them, so that the calls
//! that they trigger count as calls below it. Only a runner can set this tag, so that no other
//! writer decides below which call another one counts.
//!
//! Tools can call tools by writing requests, including requests for themselves. Such a request
//! carries `nested:<depth>`, so that a cycle of requests stops.

use rcrt_breadcrumb::TRIGGERED_BY_TAG;
use uuid::Uuid;

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
    /// The request of the call that writes, or wrote, the record.
    call: Option<Uuid>,
}

impl TriggerChain {
    /// What led to this version of a record.
    pub fn of(tags: &[String], version: i64) -> Self {
        let marked = |prefix: &'static str| {
            let marks = tags.iter().filter_map(move |tag| tag.strip_prefix(prefix)?.rsplit_once(':'));
            marks.filter(move |(_, marked)| marked.parse() == Ok(version)).map(|(what, _)| what)
        };
        let call = marked(TRIGGERED_BY_TAG).find_map(|call| call.parse().ok());
        Self { tools: marked(PREFIX).map(str::to_owned).collect(), depth: 0, call }
    }

    /// What led to a request. Only its first version counts; later changes are ignored.
    pub fn of_request(tags: &[String]) -> Self {
        let depth = tags.iter().filter_map(|tag| tag.strip_prefix(NESTED)?.parse().ok()).max().unwrap_or(0);
        Self { depth, ..Self::of(tags, 1) }
    }

    /// What led to the call of this request with these tags, for the records that the call writes.
    pub fn of_call(request: Uuid, tags: &[String]) -> Self {
        Self { call: Some(request), ..Self::of_request(tags) }
    }

    /// The request of the call that wrote the record, if the call belongs to a chain.
    pub fn call(&self) -> Option<Uuid> {
        self.call.filter(|_| !self.is_empty())
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

    /// The tags for this version of a record that the call writes. Marks of other versions, and
    /// those that the tool itself set, are removed.
    pub fn mark(&self, tags: &mut Vec<String>, version: i64) {
        tags.retain(|tag| !tag.starts_with(PREFIX) && !tag.starts_with(TRIGGERED_BY_TAG));
        tags.extend(self.tools.iter().map(|tool| format!("{PREFIX}{tool}:{version}")));
        tags.extend(self.call().map(|call| format!("{TRIGGERED_BY_TAG}{call}:{version}")));
    }

    /// The tags for a request that a call of the chain writes. The error says that requests are
    /// nested too deeply.
    pub fn mark_request(&self, tags: &mut Vec<String>) -> Result<(), String> {
        if self.depth >= MAX_DEPTH {
            return Err(format!(
                "calls that ask for calls can be nested {MAX_DEPTH} deep: this one cannot write a request"
            ));
        }
        self.mark(tags, 1);
        tags.retain(|tag| !tag.starts_with(NESTED));
        tags.push(format!("{NESTED}{}", self.depth + 1));
        Ok(())
    }
}
