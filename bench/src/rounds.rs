//! Rounds of measurements, taken in turns.

use std::time::Duration;

use rcrt_load::{Histogram, Measured, Row};

/// Rounds of one measurement, taken in turns with another: other load on the machine affects both.
#[derive(Debug, Default)]
pub struct Rounds {
    rates: Vec<f64>,
    pub latency: Histogram,
    pub failed: u64,
    first_failure: Option<String>,
}

impl Rounds {
    pub fn add(&mut self, measured: &Measured) {
        self.rates.push(measured.per_second());
        self.latency.add(&measured.latency);
        self.failed += measured.missed();
        if let Some(failure) = measured.failures.keys().next() {
            self.first_failure.get_or_insert_with(|| failure.clone());
        }
    }

    /// The median of the rounds' rates.
    pub fn per_second(&self) -> f64 {
        median(self.rates.clone())
    }

    pub fn quantile(&self, quantile: f64) -> Duration {
        self.latency.quantile(quantile)
    }

    /// Adds a note to the row if calls failed or got no response in time.
    pub fn with_failures(&self, row: Row) -> Row {
        match (self.failed, &self.first_failure) {
            (0, _) => row,
            (failed, Some(why)) => row.note(format!("{failed} calls failed: {why}")),
            (failed, None) => row.note(format!("{failed} calls got no response in time")),
        }
    }
}

/// The median, 0 if there are no values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_the_median_rate_and_note_failures() {
        let mut rounds = Rounds::default();
        for (calls, failures) in [(10, 0), (50, 2), (20, 0)] {
            let failures = (failures > 0).then(|| ("it broke".to_owned(), failures)).into_iter().collect();
            rounds.add(&Measured { calls, failures, took: Duration::from_secs(1), ..Measured::default() });
        }
        assert!((rounds.per_second() - 20.0).abs() < 1e-9);
        let row = rounds.with_failures(Row::new("a section", "a name", 1.0, "calls/s"));
        assert_eq!(row.note.as_deref(), Some("2 calls failed: it broke"));
        assert_eq!(Rounds::default().with_failures(Row::new("a section", "a name", 1.0, "")).note, None);
    }

    #[test]
    fn the_median_of_no_values_is_zero() {
        assert!(median(Vec::new()).abs() < f64::EPSILON);
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}
