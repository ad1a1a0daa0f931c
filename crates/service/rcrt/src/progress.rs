//! Progress of long steps: a line on stderr for each step, with its duration.

use std::sync::Mutex;
use std::time::{Duration, Instant};

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

/// Prints a line on stderr.
#[allow(clippy::print_stderr)]
pub fn say(text: &str) {
    eprintln!("rcrt: {text}");
}
