//! The thread for the background work of Deno's crypto.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::spawn_blocking;

use crate::memory::Meter;

/// How long it may take to come to rest when a call is over.
const REST: Duration = Duration::from_millis(50);
/// It is not started again: the jail is sealed.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 100);

/// A runtime for the isolate's thread, without the other thread so far. The meter is notified when
/// the thread waits.
pub fn runtime(meter: &Meter) -> std::io::Result<Runtime> {
    let (waiting, going_on) = (meter.clone(), meter.clone());
    Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(1)
        .thread_keep_alive(FOR_EVER)
        .on_thread_park(move || waiting.waits())
        .on_thread_unpark(move || going_on.goes_on())
        .build()
}

/// Starts the thread, within the runtime: what is to be done on it has to have one.
pub fn start() {
    drop(spawn_blocking(|| ()));
}

/// Whether no call's work is left on the thread beside the isolate's: nothing ends it there, and the next call would
/// pay for it and wait behind it.
pub async fn is_idle() -> bool {
    tokio::time::timeout(REST, spawn_blocking(|| ())).await.is_ok()
}
