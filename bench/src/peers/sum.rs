//! The tool that every peer has: two numbers are added.

use serde::Serialize;

/// The input of one call.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sum {
    a: u64,
    b: u64,
}

impl Sum {
    /// Differs from call to call, so that nobody can answer from memory.
    pub fn of(number: u64) -> Self {
        Self { a: number % 100_000, b: 1 }
    }

    /// Whether the answer is right.
    pub fn check(self, answer: f64) -> Result<(), String> {
        // Whole numbers of this size are exact.
        if (answer - (self.a + self.b) as f64).abs() < 0.5 { Ok(()) } else { Err("a wrong sum".into()) }
    }
}
