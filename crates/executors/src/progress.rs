//! How far a running call is.

/// Where a call tells how far it is. Cheap to call often: who listens takes the newest word now and then.
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
