//! What of a subscription goes to its subscriber: what its filters and the agent's selectors mean.

use std::sync::Arc;

use breadcrumb::{Event, FollowStream, Following, Fuel, Matcher, OutOfFuel, Violations};
use uuid::Uuid;

use super::hearing::Listener;
use super::page::Weighed;
use super::subscription;
use crate::failure::Done;
use crate::selectors::{Admission, AgentSelectors, OpenSelectors};
use crate::store::Inner;

/// Selectors that one stream asks for.
const MAX_FILTERS: usize = 20;

/// Begins a subscription. An event that is not chosen is told as passed, so that the subscriber's place moves on.
pub(crate) async fn follow(
    store: &Arc<Inner>,
    listener: Listener,
    agent: Uuid,
    following: Following,
) -> Done<FollowStream> {
    if following.filters.len() > MAX_FILTERS {
        let message = format!("has {} selectors; at most {MAX_FILTERS} are allowed", following.filters.len());
        return Err(Violations::one("filters", message).into());
    }
    for (index, filter) in following.filters.iter().enumerate() {
        filter.check().map_err(|mut found| {
            for violation in &mut found.0 {
                violation.field = format!("filters[{index}].{}", violation.field);
            }
            found
        })?;
    }
    let own = if following.by_selectors { Some(OpenSelectors::of(store, listener.tenant, agent).await?) } else { None };
    let filters: Arc<[Matcher]> = following.filters.iter().map(Matcher::from).collect();
    let choice = (!filters.is_empty() || own.is_some()).then_some(Choice { filters, own });
    subscription::subscribe(store.clone(), listener, following.after, choice).await
}

/// Looked at before an event is copied for its subscriber.
pub(super) struct Choice {
    filters: Arc<[Matcher]>,
    own: Option<Arc<AgentSelectors>>,
}

impl Choice {
    /// Every filter means the event, and one of the agent's own selectors, where it has any. What costs more than a moment
    /// is looked at beside the runtime; what costs too much there too is not admitted.
    pub(super) async fn admits(&self, tenant: Uuid, weighed: &Arc<Weighed>) -> Admission {
        let own = self.own.as_ref().map(|own| own.now());
        if let Ok(admission) = admission(&self.filters, own.as_deref(), &weighed.event, &mut Fuel::at_once()) {
            return admission;
        }
        let (filters, event) = (self.filters.clone(), weighed.clone());
        let matching = move || admission(&filters, own.as_deref(), &event.event, &mut Fuel::whole());
        match compute::pool().run(tenant, matching).await {
            Ok(Ok(admission)) => admission,
            Ok(Err(OutOfFuel)) => {
                metrics::counter!("rcrt_matches_refused_total", "where" => "stream").increment(1);
                Admission::Never
            }
            Err(failed) => {
                tracing::error!(%tenant, error = %failed, "an event was not matched with a stream's selectors");
                Admission::Never
            }
        }
    }
}

fn admission(
    filters: &[Matcher],
    own: Option<&[Matcher]>,
    event: &Event,
    fuel: &mut Fuel,
) -> Result<Admission, OutOfFuel> {
    let mut least = Admission::Always;
    for filter in filters {
        least = least.min(Admission::by(filter, event, fuel)?);
        if least == Admission::Never {
            return Ok(least);
        }
    }
    match own.filter(|own| !own.is_empty()) {
        Some(own) => Ok(least.min(Admission::by_any(own, event, fuel)?)),
        None => Ok(least),
    }
}
