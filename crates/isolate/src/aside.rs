//! The threads beside the isolate's, for what Deno's crypto does aside.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// How many there are.
const THREADS: usize = 2;
/// How long they may take to come to rest when a call is over.
const REST: Duration = Duration::from_millis(50);
/// They are not started again: the jail is sealed.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 100);

/// A runtime for the isolate's thread, without threads as yet.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().max_blocking_threads(THREADS).thread_keep_alive(FOR_EVER).build()
}

/// Starts the threads, within the runtime. Each is held until all are there, so that none does the work of two.
pub fn start() {
    let all = Arc::new(Barrier::new(THREADS + 1));
    for _ in 0..THREADS {
        let all = all.clone();
        tokio::task::spawn_blocking(move || all.wait());
    }
    all.wait();
}

/// Whether no call's work is left on the threads beside the isolate's: nothing ends it there, and the next call would
/// pay for it and wait behind it.
pub async fn rests() -> bool {
    let all = Arc::new(Barrier::new(THREADS));
    let rests: Vec<_> = (0..THREADS)
        .map(|_| {
            let all = all.clone();
            tokio::task::spawn_blocking(move || all.wait())
        })
        .collect();
    let rest = async {
        for rest in rests {
            let _ = rest.await;
        }
    };
    tokio::time::timeout(REST, rest).await.is_ok()
}
