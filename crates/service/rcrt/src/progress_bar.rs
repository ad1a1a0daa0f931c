//! The progress of a call, as a bar on a terminal. Nothing is shown if stderr is a file.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::one_line;

/// Steps of the bar.
const FULL: u64 = 1000;
/// Characters of a tool's message, which must fit on one line with the bar.
const MESSAGE: usize = 60;

pub struct CallProgressBar {
    bar: ProgressBar,
}

impl CallProgressBar {
    /// Creates a hidden bar. It appears when the tool reports progress.
    pub fn new(tool: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(FULL), ProgressDrawTarget::hidden());
        bar.set_prefix(one_line(tool, 40));
        Self { bar }
    }

    /// `fraction` is from 0 to 1. Without it, only a spinner is shown.
    pub fn show(&self, fraction: Option<f64>, message: &str) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        if self.bar.is_finished() {
            self.bar.reset();
        }
        let template = match fraction {
            Some(_) => "{prefix} [{bar:30}] {percent:>3}% {msg}",
            None => "{prefix} {spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_message(one_line(message, MESSAGE));
        if let Some(fraction) = fraction {
            self.bar.set_position((fraction.clamp(0.0, 1.0) * FULL as f64) as u64);
        }
        // Last, so that the bar is never drawn with partial values.
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    /// Removes the bar, so that other output has its own lines.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for CallProgressBar {
    fn drop(&mut self) {
        self.clear();
    }
}
