//! The progress of a running call.

/// Where a call reports its progress. Frequent calls are cheap: the reader samples the newest
/// report.
pub trait ProgressSink: Send + Sync + 'static {
    /// `fraction` is from 0 to 1, or `None` if the tool cannot tell. The message is one line for a
    /// person.
    fn report(&self, fraction: Option<f64>, message: &str);
}

/// Discards all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscardProgress;

impl ProgressSink for DiscardProgress {
    fn report(&self, _fraction: Option<f64>, _message: &str) {}
}
