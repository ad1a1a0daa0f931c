//! Reads what `wrapper.py` wrote to the log of its container. The program can write there too, so
//! nothing is trusted: other lines are skipped, and everything is bounded.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcrt_jail::command::{Captured, ExitReason};
use serde::Deserialize;

/// The most bytes of a log that are read: both streams in base64, with room for the lines.
pub const MAX_LOG: usize = 8 * 1024 * 1024;
/// The longest version of Python, in characters.
const MAX_VERSION: usize = 30;

pub struct Report {
    /// The version of Python.
    pub python: Option<String>,
    pub stdout: Captured,
    pub stderr: Captured,
    /// `None` if the container ended before the program did.
    pub ended: Option<ExitReason>,
    /// Why the program was not started.
    pub failed: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StreamName {
    Stdout,
    Stderr,
}

#[derive(Deserialize)]
struct Line {
    python: Option<String>,
    stream: Option<StreamName>,
    data: Option<String>,
    omitted: Option<u64>,
    ended: Option<ExitReason>,
    failed: Option<String>,
}

impl Report {
    /// `kept`: the most bytes of each stream.
    pub fn read(log: &[u8], kept: usize) -> Self {
        let (stdout, stderr) = (Captured::at_most(kept), Captured::at_most(kept));
        let mut report = Self { python: None, stdout, stderr, ended: None, failed: None };
        // The last line of a container that was killed may be incomplete.
        for line in log.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
            report.add(line);
        }
        report
    }

    fn add(&mut self, line: Line) {
        let stream = match line.stream {
            Some(StreamName::Stdout) => Some(&mut self.stdout),
            Some(StreamName::Stderr) => Some(&mut self.stderr),
            None => None,
        };
        if let Some(stream) = stream {
            if let Some(data) = line.data.and_then(|data| STANDARD.decode(data).ok()) {
                stream.add(&data);
            }
            // A number that no program can write adds up to no overflow.
            stream.omit(line.omitted.unwrap_or(0).min(u64::from(u32::MAX)));
        }
        if let Some(version) = line.python {
            self.python.get_or_insert(version.chars().take(MAX_VERSION).collect());
        }
        self.ended = line.ended.or(self.ended);
        self.failed = line.failed.or(self.failed.take());
    }
}
