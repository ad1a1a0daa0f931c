//! One axis: its label and its scale.

use std::ops::Range;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0, or from the lowest value if that is below 0.
    Linear,
    /// Logarithmic. Values of 0 or below are not shown.
    Logarithmic,
}

/// A label with the unit in it, and a scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    pub label: String,
    pub scale: Scale,
}

impl Axis {
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear }
    }

    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Logarithmic }
    }

    /// Whether the axis can show the value.
    pub(crate) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// The range that shows all of `values`, never empty. None if there is no value to show.
    pub(crate) fn range(&self, values: impl Iterator<Item = f64>) -> Option<Range<f64>> {
        let mut shown = values.filter(|&value| self.shows(value));
        let first = shown.next()?;
        let (low, high) = shown.fold((first, first), |(low, high), value| (low.min(value), high.max(value)));
        Some(match self.scale {
            Scale::Linear => {
                let (low, high) = (low.min(0.0), high.max(0.0));
                let room = (high - low) * 0.05;
                if room > 0.0 { low..high + room } else { 0.0..1.0 }
            }
            // Leave some room at both ends. If all values are equal, the axis surrounds them.
            Scale::Logarithmic => low / 1.25..high * 1.25,
        })
    }
}
