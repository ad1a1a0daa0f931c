//! Latencies with a precision of three digits.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer, ser::SerializeMap};

/// A day in nanoseconds. Longer durations count as this.
const LONGEST: u64 = 24 * 60 * 60 * 1_000_000_000;
/// Significant digits: durations that differ by less than a thousandth count as equal.
const DIGITS: u8 = 3;
/// The quantiles that a report shows.
const SHOWN: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("max", 1.0)];

/// How often each duration was seen, with a precision of a thousandth (from 1 ns to a day).
#[derive(Clone)]
pub struct Histogram {
    /// Nanoseconds. `None` before the first one, so that an empty histogram costs nothing.
    inner: Option<hdrhistogram::Histogram<u64>>,
}

impl Histogram {
    pub fn new() -> Self {
        Self { inner: None }
    }

    pub fn record(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(LONGEST).clamp(1, LONGEST);
        if self.inner.is_none() {
            self.inner = hdrhistogram::Histogram::new_with_bounds(1, LONGEST, DIGITS).ok();
        }
        if let Some(inner) = &mut self.inner {
            inner.saturating_record(nanos);
        }
    }

    /// Adds the durations of another histogram.
    pub fn add(&mut self, other: &Self) {
        match (&mut self.inner, &other.inner) {
            (Some(inner), Some(other)) => {
                // Both have the same bounds, so no value is out of range.
                let _ = inner.add(other);
            }
            (None, Some(_)) => self.inner.clone_from(&other.inner),
            (_, None) => {}
        }
    }

    /// The duration that a share `quantile` (0 to 1) of all did not exceed. Zero if the histogram
    /// is empty.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let quantile = if quantile.is_nan() { 1.0 } else { quantile.clamp(0.0, 1.0) };
        self.nanos(|inner| inner.value_at_quantile(quantile).min(inner.max()))
    }

    pub fn max(&self) -> Duration {
        self.nanos(hdrhistogram::Histogram::max)
    }

    pub fn min(&self) -> Duration {
        self.nanos(hdrhistogram::Histogram::min)
    }

    pub fn mean(&self) -> Duration {
        self.nanos(|inner| inner.mean().round() as u64)
    }

    /// The number of recorded durations.
    pub fn len(&self) -> u64 {
        self.inner.as_ref().map_or(0, hdrhistogram::Histogram::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn nanos(&self, read: impl Fn(&hdrhistogram::Histogram<u64>) -> u64) -> Duration {
        Duration::from_nanos(self.inner.as_ref().map_or(0, read))
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl FromIterator<Duration> for Histogram {
    fn from_iter<I: IntoIterator<Item = Duration>>(durations: I) -> Self {
        let mut histogram = Self::new();
        durations.into_iter().for_each(|took| histogram.record(took));
        histogram
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Histogram");
        text.field("len", &self.len());
        SHOWN.iter().fold(&mut text, |text, (name, quantile)| text.field(name, &self.quantile(*quantile))).finish()
    }
}

/// For programs: the count, and milliseconds.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ms = |took: Duration| took.as_nanos() as f64 / 1e6;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("count", &self.len())?;
        map.serialize_entry("min_ms", &ms(self.min()))?;
        map.serialize_entry("mean_ms", &ms(self.mean()))?;
        for (name, quantile) in SHOWN {
            map.serialize_entry(&format!("{name}_ms"), &ms(self.quantile(quantile)))?;
        }
        map.end()
    }
}
