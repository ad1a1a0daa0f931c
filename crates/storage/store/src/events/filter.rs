//! Which events of a subscription reach the subscriber: the stream's filters and the agent's
//! selectors.

use std::sync::Arc;

use rcrt_breadcrumb::{Event, Fuel, Matcher, OutOfFuel, SubscribeOptions, Violations};
use uuid::Uuid;

use super::sized_event::SizedEvent;
use crate::database::failure::Result;
use crate::events::EventStreams;
use crate::events::selectors::{AgentSelectors, OpenSelectors, SelectorMatch};

/// The most selectors of one stream.
const MAX_FILTERS: usize = 20;

/// Evaluated before an event is handed to its subscriber.
pub(super) struct EventFilter {
    filters: Arc<[Matcher]>,
    own: Option<Arc<AgentSelectors>>,
}

impl EventFilter {
    /// `None` if the subscription receives every event.
    pub(super) async fn of(
        streams: &Arc<EventStreams>,
        tenant: Uuid,
        agent: Uuid,
        options: &SubscribeOptions,
    ) -> Result<Option<Self>> {
        if options.filters.len() > MAX_FILTERS {
            let message = format!("has {} selectors; at most {MAX_FILTERS} are allowed", options.filters.len());
            return Err(Violations::one("filters", message).into());
        }
        for (index, filter) in options.filters.iter().enumerate() {
            filter.check().map_err(|mut found| {
                for violation in &mut found.0 {
                    violation.field = format!("filters[{index}].{}", violation.field);
                }
                found
            })?;
        }
        let own = if options.by_selectors { Some(OpenSelectors::of(streams, tenant, agent).await?) } else { None };
        let filters: Arc<[Matcher]> = options.filters.iter().map(Matcher::from).collect();
        Ok((!filters.is_empty() || own.is_some()).then_some(Self { filters, own }))
    }

    /// An event matches if it matches every filter, and one of the agent's own selectors if it has
    /// any. A match that takes long runs outside of the async runtime. If it exceeds the limit
    /// there too, the event is not delivered.
    pub(super) async fn matches(&self, tenant: Uuid, sized: &Arc<SizedEvent>) -> SelectorMatch {
        let own = self.own.as_ref().map(|own| own.now());
        if let Ok(selector_match) = match_selectors(&self.filters, own.as_deref(), &sized.event, &mut Fuel::for_async())
        {
            return selector_match;
        }
        let (filters, event) = (self.filters.clone(), sized.clone());
        let matching = move || match_selectors(&filters, own.as_deref(), &event.event, &mut Fuel::for_blocking());
        match rcrt_compute::pool().run(tenant, matching).await {
            Ok(Ok(selector_match)) => selector_match,
            Ok(Err(OutOfFuel)) => {
                metrics::counter!("rcrt_matches_refused_total", "where" => "stream").increment(1);
                SelectorMatch::Never
            }
            Err(failed) => {
                tracing::error!(%tenant, error = %failed, "matching an event with a stream's selectors failed");
                SelectorMatch::Never
            }
        }
    }
}

fn match_selectors(
    filters: &[Matcher],
    own: Option<&[Matcher]>,
    event: &Event,
    fuel: &mut Fuel,
) -> Result<SelectorMatch, OutOfFuel> {
    let mut least = SelectorMatch::Always;
    for filter in filters {
        least = least.min(SelectorMatch::of(filter, event, fuel)?);
        if least == SelectorMatch::Never {
            return Ok(least);
        }
    }
    match own.filter(|own| !own.is_empty()) {
        Some(own) => Ok(least.min(SelectorMatch::of_any(own, event, fuel)?)),
        None => Ok(least),
    }
}
