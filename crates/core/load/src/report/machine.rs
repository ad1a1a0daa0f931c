//! The machine on which the numbers were measured.

use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// The machine that a report was made on, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processors that this process can use.
    pub processors: usize,
    pub processor: Option<String>,
    pub memory_bytes: Option<u64>,
    /// Such as `linux 6.8.0 x86_64`.
    pub system: String,
}

impl Machine {
    /// This machine.
    pub fn here() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let parts = [std::env::consts::OS, kernel.trim(), std::env::consts::ARCH];
        Self {
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            processor: field("/proc/cpuinfo", "model name"),
            memory_bytes: field("/proc/meminfo", "MemTotal")
                .and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok())
                .map(|kilobytes| kilobytes * 1024),
            system: parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.processors, self.processor.as_deref().unwrap_or("processor"))?;
        if let Some(bytes) = self.memory_bytes {
            write!(f, ", {:.1} GB", bytes as f64 / 1e9)?;
        }
        write!(f, ", {}", self.system)
    }
}

/// The first line `name : value` of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?.1.trim();
    (!value.is_empty()).then(|| value.to_owned())
}
