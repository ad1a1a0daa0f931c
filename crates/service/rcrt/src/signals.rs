//! Ctrl-C and SIGTERM: the first requests an orderly shutdown, the second a fast one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The signals received so far.
pub struct Signals {
    /// Cancelled by the first signal: an orderly shutdown.
    pub stop: CancellationToken,
    /// Cancelled by the second signal: stop at once.
    pub hurry: CancellationToken,
    interrupted: Arc<AtomicBool>,
    listener: JoinHandle<()>,
}

impl Signals {
    /// Handles SIGINT and SIGTERM from now on, instead of their default action.
    pub fn listen() -> anyhow::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
        let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
        let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
        let interrupted = Arc::new(AtomicBool::new(false));
        let by_interrupt = interrupted.clone();
        let (first, second) = (stop.clone(), hurry.clone());
        let listener = tokio::spawn(async move {
            for token in [first, second] {
                tokio::select! {
                    _ = interrupt.recv() => by_interrupt.store(true, Ordering::Relaxed),
                    _ = terminate.recv() => {}
                }
                token.cancel();
            }
        });
        Ok(Self { stop, hurry, interrupted, listener })
    }

    /// Returns whether a signal was SIGINT (Ctrl-C).
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
