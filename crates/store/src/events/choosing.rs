//! What of a subscription goes to its subscriber: what its filters and the agent's selectors mean.

use std::sync::Arc;

use breadcrumb::{Event, FollowStream, Following, Selector};
use uuid::Uuid;

use super::hearing::Listener;
use super::subscription;
use crate::failure::Done;
use crate::selectors::{Admission, AgentSelectors, OpenSelectors};
use crate::store::Inner;

/// Begins a subscription. An event that is not chosen is told as passed, so that the subscriber's place moves on.
pub(crate) async fn follow(
    store: &Arc<Inner>,
    listener: Listener,
    agent: Uuid,
    following: Following,
) -> Done<FollowStream> {
    for (index, filter) in following.filters.iter().enumerate() {
        filter.check().map_err(|mut found| {
            for violation in &mut found.0 {
                violation.field = format!("filters[{index}].{}", violation.field);
            }
            found
        })?;
    }
    let own = if following.by_selectors { Some(OpenSelectors::of(store, listener.tenant, agent).await?) } else { None };
    let choice = (!following.filters.is_empty() || own.is_some()).then_some(Choice { filters: following.filters, own });
    subscription::subscribe(store.clone(), listener, following.after, choice).await
}

/// Looked at before an event is copied for its subscriber.
pub(super) struct Choice {
    filters: Vec<Selector>,
    own: Option<Arc<AgentSelectors>>,
}

impl Choice {
    pub(super) fn admits(&self, event: &Event) -> Admission {
        let by_filters = self.filters.iter().map(|filter| Admission::by(filter, event)).min();
        let by_own = self.own.as_ref().map(|own| own.admit(event));
        by_filters.into_iter().chain(by_own).min().unwrap_or(Admission::Always)
    }
}
