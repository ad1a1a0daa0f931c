//! Progress of long steps: a line on stderr for each step, with its duration.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use serde_json::json;

/// The duration is printed only for steps that take at least this long.
const MIN_SHOWN: Duration = Duration::from_secs(1);

/// Prints plain lines, for terminals and files.
pub struct ConsoleProgress {
    step: Mutex<Option<(String, Instant)>>,
}

impl ConsoleProgress {
    pub fn new() -> Self {
        Self { step: Mutex::new(None) }
    }

    /// Starts a step and finishes the previous one.
    pub fn step(&self, what: &str) {
        self.done();
        say(what);
        if let Ok(mut step) = self.step.lock() {
            *step = Some((what.to_owned(), Instant::now()));
        }
    }

    /// Finishes the current step.
    pub fn done(&self) {
        let Some((what, since)) = self.step.lock().ok().and_then(|mut step| step.take()) else { return };
        let took = since.elapsed();
        if took >= MIN_SHOWN {
            say(&format!("{what}: done in {:.1} s", took.as_secs_f64()));
        }
    }
}

/// Whether stderr has only JSON, one line for each entry of the log.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Makes the lines of [`say`] and [`fail`] entries of the log, as all others on stderr.
pub fn log_as_json() {
    IS_JSON.store(true, Ordering::Relaxed);
}

/// Prints a line on stderr.
pub fn say(text: &str) {
    print("INFO", text);
}

/// Prints the reason of a failure on stderr.
pub fn fail(text: &str) {
    print("ERROR", text);
}

fn print(level: &str, text: &str) {
    if IS_JSON.load(Ordering::Relaxed) {
        let at = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        eprintln!("{}", json!({"timestamp": at, "level": level, "message": text, "target": "rcrt"}));
    } else {
        eprintln!("rcrt: {text}");
    }
}
