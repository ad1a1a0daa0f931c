//! One line of a report.

use serde::{Deserialize, Serialize};

/// A measured value, or the reason why it is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it belongs to, such as `floors`.
    pub section: String,
    pub name: String,
    /// In `unit`. None when it could not be measured; `note` says why.
    pub value: Option<f64>,
    /// Such as `calls/s`, `ms` or `MB`. Empty for a bare number.
    pub unit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// The target, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether the target is reached. None without a target or a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The value as a multiple of another one, measured in the same run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub value: f64,
    /// The name of the other value.
    pub to: String,
}

impl Row {
    pub fn new(section: impl Into<String>, name: impl Into<String>, value: f64, unit: impl Into<String>) -> Self {
        Self {
            section: section.into(),
            name: name.into(),
            value: Some(value),
            unit: unit.into(),
            ratio: None,
            target: None,
            holds: None,
            note: None,
        }
    }

    /// A row for something that could not be measured.
    pub fn missing(section: impl Into<String>, name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { value: None, note: Some(why.into()), ..Self::new(section, name, 0.0, "") }
    }

    /// Adds the ratio of the value to `base`, which is called `to`. Without a value, or if `base`
    /// is 0, there is no ratio.
    #[must_use]
    pub fn ratio(mut self, base: f64, to: impl Into<String>) -> Self {
        self.ratio = self.value.map(|value| value / base).filter(|ratio| ratio.is_finite()).map(|value| {
            let to = to.into();
            Ratio { value, to }
        });
        self
    }

    /// Adds a target, and whether it is reached.
    #[must_use]
    pub fn target(mut self, text: impl Into<String>, holds: bool) -> Self {
        self.target = Some(text.into());
        self.holds = self.value.map(|_| holds);
        self
    }

    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = Some(text.into());
        self
    }
}
