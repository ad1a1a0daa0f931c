//! The tool that every peer runs: it adds two numbers.

use serde::Serialize;

/// The input of one call.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sum {
    a: u64,
    b: u64,
}

impl Sum {
    /// Differs from call to call, so that no result can come from a cache.
    pub fn of(number: u64) -> Self {
        Self { a: number % 100_000, b: 1 }
    }

    /// Checks the result.
    pub fn check(self, answer: f64) -> Result<(), String> {
        // Whole numbers of this size are exact.
        if (answer - (self.a + self.b) as f64).abs() < 0.5 { Ok(()) } else { Err("a wrong sum".into()) }
    }
}
