//! What one call of a tool may use.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Violations;

/// The longest `timeout_ms` a tool may ask for: 15 minutes.
pub const MAX_TIMEOUT_MS: u64 = 900_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Wall time of one attempt in milliseconds, 1 to 900,000. Default 30,000.
    pub timeout_ms: u64,
    /// Heap of the call in MiB, 8 to 1,024. Default 128.
    pub memory_mb: u64,
    /// Share of one processor in percent, 1 to 100. Default 100.
    pub cpu_percent: u64,
    /// How often a request may be tried in all, 1 to 10. Default 1: never run twice.
    pub max_attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout_ms: 30_000, memory_mb: 128, cpu_percent: 100, max_attempts: 1 }
    }
}

impl Limits {
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        let mut within = |field: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                found.add(format!("limits.{field}"), format!("is {value}; must be from {low} to {high}"));
            }
        };
        within("timeout_ms", self.timeout_ms, 1, MAX_TIMEOUT_MS);
        within("memory_mb", self.memory_mb, 8, 1024);
        within("cpu_percent", self.cpu_percent, 1, 100);
        within("max_attempts", u64::from(self.max_attempts), 1, 10);
        found.into_result()
    }

    pub fn timeout(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.timeout_ms)
    }
}
