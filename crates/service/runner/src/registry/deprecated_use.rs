//! Calls of deprecated tools: they are logged once a day, and refused after the tool's last day.

use std::collections::HashSet;

use chrono::{DateTime, NaiveDate, Utc};
use parking_lot::Mutex;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use serde_json::json;
use uuid::Uuid;

use crate::registry::tool::Candidate;

/// The tools that were logged today.
#[derive(Default)]
pub(crate) struct DeprecatedUse(Mutex<(NaiveDate, HashSet<Uuid>)>);

impl DeprecatedUse {
    /// Logs the use of a deprecated tool. Returns why the call is refused, if its time is over.
    pub fn check(&self, tool: &Candidate, now: DateTime<Utc>) -> Option<ToolFailure> {
        let deprecation = tool.definition.deprecated.as_ref()?;
        if self.is_first_today(tool.id, now.date_naive()) {
            let (name, advice) = (tool.name(), deprecation.advice());
            let last = deprecation.remove_after.map(tracing::field::display);
            tracing::warn!(tool = name, tool_id = %tool.id, since = %deprecation.since, remove_after = last, "a deprecated tool is called{advice}");
        }
        let message = deprecation.removal(tool.name(), now)?;
        let details = json!({"deprecated": deprecation, "use": deprecation.replacement});
        Some(ToolFailure::new(ErrorCode::ToolNotFound, message).with_details(details))
    }

    fn is_first_today(&self, id: Uuid, today: NaiveDate) -> bool {
        let mut logged = self.0.lock();
        if logged.0 != today {
            *logged = (today, HashSet::new());
        }
        logged.1.insert(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_logged_once_a_day() {
        let log = DeprecatedUse::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let day = |number: i32| NaiveDate::from_num_days_from_ce_opt(number).unwrap_or_default();
        assert!(log.is_first_today(one, day(800_000)));
        assert!(!log.is_first_today(one, day(800_000)));
        assert!(log.is_first_today(other, day(800_000)));
        assert!(log.is_first_today(one, day(800_001)));
        assert!(!log.is_first_today(one, day(800_001)));
    }
}
