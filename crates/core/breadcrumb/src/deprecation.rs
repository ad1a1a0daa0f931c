//! A tool's end, as its author announces it.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// Since when a tool should not be used, what to use instead, and until when it can be called. Days
/// are those of UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Deprecation {
    #[serde(deserialize_with = "day")]
    pub since: NaiveDate,
    /// The name of the tool that replaces it.
    #[serde(rename = "use", default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// The last day on which it can be called.
    #[serde(default, deserialize_with = "optional_day", skip_serializing_if = "Option::is_none")]
    pub remove_after: Option<NaiveDate>,
}

impl Deprecation {
    /// Whether calls are refused at this time.
    pub fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.remove_after.is_some_and(|last| now.date_naive() > last)
    }

    /// Why calls of the tool are refused at this time, if they are.
    pub fn removal(&self, tool: &str, now: DateTime<Utc>) -> Option<String> {
        let last = self.remove_after.filter(|_| self.is_over(now))?;
        Some(format!("the tool {tool:?} was removed after {last}{}", self.advice()))
    }

    /// The description of a deprecated tool, for a model.
    pub fn described(&self, description: &str) -> String {
        format!("Deprecated{}. {description}", self.advice())
    }

    /// What to use instead, as the end of a sentence.
    pub fn advice(&self) -> String {
        self.replacement.as_ref().map_or_else(String::new, |tool| format!("; use {tool} instead"))
    }
}

fn parsed(text: &str) -> Option<NaiveDate> {
    // The parser accepts shorter forms too.
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|day| day.to_string() == text)
}

fn day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NaiveDate, D::Error> {
    let text = String::deserialize(deserializer)?;
    parsed(&text).ok_or_else(|| serde::de::Error::custom("must be a day such as 2026-01-31"))
}

fn optional_day<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NaiveDate>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    parsed(&text).map(Some).ok_or_else(|| serde::de::Error::custom("must be a day such as 2026-01-31"))
}
