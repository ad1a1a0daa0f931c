//! The progress of a running call.

/// Where a call reports its progress. Cheap to call often: the reader takes the newest report from
/// time to time.
pub trait ProgressSink: Send + Sync + 'static {
    /// `fraction` is from 0 to 1, `None` where the tool cannot say; the message is one line for a person.
    fn report(&self, fraction: Option<f64>, message: &str);
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscardProgress;

impl ProgressSink for DiscardProgress {
    fn report(&self, _fraction: Option<f64>, _message: &str) {}
}
