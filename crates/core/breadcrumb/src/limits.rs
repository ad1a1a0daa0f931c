//! The limits of one call of a tool.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Violations;

/// The longest `timeout_ms` that a tool can ask for: 15 minutes.
pub const MAX_TIMEOUT_MS: u64 = 900_000;
/// Default processor time of one attempt, in milliseconds.
pub const DEFAULT_CPU_MS: u64 = 10_000;
/// The most records that one call can create, change and delete in total.
pub const MAX_BREADCRUMBS_WRITTEN: u64 = 100;
/// The most bytes of JSON that one call can write into records in total: 8 MiB.
pub const MAX_BYTES_WRITTEN: u64 = 8 * 1024 * 1024;
/// The most calls below one call: those that it makes, those that they make, and so on.
pub const MAX_DESCENDANTS: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Wall time of one attempt in milliseconds, 1 to 900,000. Default 30,000.
    pub timeout_ms: u64,
    /// Memory of the call in MiB, 8 to 1,024: heap, buffers, WebAssembly and strings together.
    /// Default 128.
    pub memory_mb: u64,
    /// Share of one processor in percent, 1 to 100. Default 100. A tool that uses more is slowed
    /// down.
    pub cpu_percent: u64,
    /// Processor time of one attempt in milliseconds, 1 to 900,000. Default 10,000. A tool that
    /// uses more is terminated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// The most attempts of a request, 1 to 10. Default 1: never run twice.
    pub max_attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout_ms: 30_000, memory_mb: 128, cpu_percent: 100, cpu_ms: None, max_attempts: 1 }
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
        within("cpu_ms", self.cpu_ms(), 1, MAX_TIMEOUT_MS);
        within("max_attempts", u64::from(self.max_attempts), 1, 10);
        found.into_result()
    }

    pub fn timeout(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.timeout_ms)
    }

    /// The processor time that one attempt can use, in milliseconds.
    pub fn cpu_ms(&self) -> u64 {
        self.cpu_ms.unwrap_or(DEFAULT_CPU_MS)
    }
}

/// A limit of a call, by its name in failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitName {
    TimeoutMs,
    CpuMs,
    MemoryMb,
    InputBytes,
    OutputBytes,
    ConsoleBytes,
    OpsInFlight,
    BreadcrumbsWritten,
    BytesWritten,
    Descendants,
}

/// The limit that a call exceeded. It appears in the failure's details as `{"limit": "memory_mb",
/// "allowed": 128}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReached {
    pub limit: LimitName,
    /// In the unit of `limit`.
    pub allowed: u64,
}
