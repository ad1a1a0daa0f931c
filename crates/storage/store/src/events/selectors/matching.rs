//! Whether a selector matches an event, and under which condition.

use rcrt_breadcrumb::{Event, Fuel, Matcher, OutOfFuel, RequestKind};

/// Ordered by how much they match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SelectorMatch {
    Never,
    /// A response that a selector matches by its request id. For the agent that wrote the request,
    /// and for those that can read other agents' responses.
    RequesterOnly,
    Always,
}

impl SelectorMatch {
    pub(crate) fn of(selector: &Matcher, event: &Event, fuel: &mut Fuel) -> Result<Self, OutOfFuel> {
        Ok(if !selector.matches_event(event, fuel)? {
            Self::Never
        } else if selector.names_request() && RequestKind::is_response(event.schema_name.as_deref()) {
            Self::RequesterOnly
        } else {
            Self::Always
        })
    }

    /// The widest match of the selectors. `Never` without selectors.
    pub(crate) fn of_any(selectors: &[Matcher], event: &Event, fuel: &mut Fuel) -> Result<Self, OutOfFuel> {
        let mut most = Self::Never;
        for selector in selectors {
            most = most.max(Self::of(selector, event, fuel)?);
            if most == Self::Always {
                break;
            }
        }
        Ok(most)
    }
}
