//! Threads that parse pages: a few at a time, each with a deadline. Hostile markup can make parsing
//! slow; only its own call waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use tokio::sync::Semaphore;

use crate::Settings;
use crate::failures::failed;

pub(crate) struct ReaderPool {
    readers: Arc<Semaphore>,
    time: Duration,
}

/// The deadline of parsing one page: its time is over, or its call has ended.
#[derive(Clone)]
pub(crate) struct ReadDeadline {
    ends: Instant,
    abandoned: Arc<AtomicBool>,
}

impl ReadDeadline {
    pub fn is_over(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.ends
    }
}

/// Signals the parser, when the call's future is dropped, that the result is no longer needed.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ReaderPool {
    pub fn new(settings: &Settings) -> Self {
        Self { readers: Arc::new(Semaphore::new(settings.readers.max(1))), time: settings.reading_time }
    }

    /// Waits for a free slot, then runs the work. The slot is free again when the work has actually
    /// ended.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ReadDeadline) -> T + Send + 'static,
    ) -> Result<T, ToolFailure> {
        let permit = self.readers.clone().acquire_owned().await;
        let permit = permit.map_err(|_| ToolFailure::new(ErrorCode::Cancelled, "the runner is shutting down"))?;
        let abandon = AbandonOnDrop(Arc::default());
        let until = ReadDeadline { ends: Instant::now() + self.time, abandoned: abandon.0.clone() };
        let reading = tokio::task::spawn_blocking(move || {
            let result = work(&until);
            drop(permit);
            result
        });
        reading.await.map_err(|error| {
            tracing::error!(%error, "a page could not be read");
            failed("the page cannot be read: its parser failed")
        })
    }
}
