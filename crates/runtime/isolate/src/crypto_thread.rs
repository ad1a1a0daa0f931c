//! The thread for the background work of Deno's crypto.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

use crate::memory::Meter;

/// How long it may take to become idle when a call is over.
const REST: Duration = Duration::from_millis(50);
/// The thread is never stopped: the sealed jail would not allow another one.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 100);

/// A runtime for the isolate's thread; the other thread is not started yet. The meter is notified
/// when the isolate's thread waits.
pub fn runtime(meter: &Meter) -> std::io::Result<Runtime> {
    let (waiting, resuming) = (meter.clone(), meter.clone());
    Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(1)
        .thread_keep_alive(FOR_EVER)
        .on_thread_park(move || waiting.waits())
        .on_thread_unpark(move || resuming.resume())
        .build()
}

/// Starts the thread. Call it within the runtime.
pub fn start() {
    drop(spawn_blocking(|| ()));
}

/// Whether the thread has no work left. Work on it cannot be stopped, and the next call would pay
/// for it and wait for it.
pub async fn is_idle() -> bool {
    tokio::time::timeout(REST, spawn_blocking(|| ())).await.is_ok()
}
