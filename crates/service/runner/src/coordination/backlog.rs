//! Which calls are in the queue, as far as the last claim showed.

use std::collections::HashSet;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Backlog {
    /// There may be calls of any tool that had no slot.
    #[default]
    Any,
    /// Only calls of these tools, which were left out.
    Of(HashSet<String>),
}

impl Backlog {
    pub fn none() -> Self {
        Self::Of(HashSet::new())
    }

    pub fn may_hold(&self, tool: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Of(tools) => tools.contains(tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_a_claim_left_out_can_be_overtaken() {
        assert!(Backlog::default().may_hold("a"), "nothing is known of the queue");
        let backlog = Backlog::Of(HashSet::from(["a".to_owned()]));
        assert!(backlog.may_hold("a") && !backlog.may_hold("b"));
    }
}
