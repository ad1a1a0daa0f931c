//! File operations run on threads for blocking work, which cannot be stopped from outside. They
//! check regularly whether the call is still active.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcrt_breadcrumb::{ErrorCode, ToolFailure};

use crate::failure::failed;

/// Set when the call is over.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl CancelFlag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Check this right before a change.
    pub fn check(&self) -> io::Result<()> {
        if self.is_set() { Err(io::Error::other(Stopped)) } else { Ok(()) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the call is over")]
struct Stopped;

/// Runs blocking work. When the future is dropped, the work is asked to stop.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&CancelFlag) -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    let stop = CancelFlag::default();
    let _on_drop = CancelOnDrop(stop.clone());
    match tokio::task::spawn_blocking(move || work(&stop)).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => Err(failed("the file cannot be processed: internal error")),
        Err(_) => Err(ToolFailure::new(ErrorCode::Cancelled, "the runner is shutting down")),
    }
}

/// A reader that fails when the call is over.
pub struct CancellableReader<R> {
    inner: R,
    stop: CancelFlag,
}

impl<R> CancellableReader<R> {
    pub fn new(inner: R, stop: &CancelFlag) -> Self {
        Self { inner, stop: stop.clone() }
    }
}

impl<R: Read> Read for CancellableReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Not `Interrupted`: readers would retry.
        if self.stop.is_set() {
            return Err(io::Error::other(Stopped));
        }
        self.inner.read(buffer)
    }
}

impl<R: Seek> Seek for CancellableReader<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
