//! Whether an operator wants this runner to take no more calls. The reply to a report says so.

use std::sync::atomic::{AtomicBool, Ordering};

use metrics::gauge;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct DrainRequest {
    is_on: AtomicBool,
    /// Notified when it has changed.
    pub changed: Notify,
}

impl DrainRequest {
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Returns whether that is new.
    pub fn set(&self, is_on: bool) -> bool {
        let is_new = self.is_on.swap(is_on, Ordering::AcqRel) != is_on;
        if is_new {
            gauge!("rcrt_runner_draining").set(f64::from(u8::from(is_on)));
            self.changed.notify_one();
        }
        is_new
    }
}
