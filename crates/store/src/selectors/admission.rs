//! Whether a selector admits an event, and under which condition.

use breadcrumb::{Event, Selector, schema_names};

/// In the order of what they admit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Admission {
    Never,
    /// A response that is meant by its request id: admitted to the agent that wrote the request, and to those that may
    /// read other agents' responses.
    ToAsker,
    Always,
}

impl Admission {
    pub(crate) fn by(selector: &Selector, event: &Event) -> Self {
        if !selector.means(event) {
            Self::Never
        } else if selector.names_request() && event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE) {
            Self::ToAsker
        } else {
            Self::Always
        }
    }

    /// By the most generous of the selectors; `Never` without any.
    pub(crate) fn by_any(selectors: &[Selector], event: &Event) -> Self {
        selectors.iter().map(|selector| Self::by(selector, event)).max().unwrap_or(Self::Never)
    }
}
