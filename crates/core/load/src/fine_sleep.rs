//! Sleeps with a precision of some tens of microseconds. The runtime's own sleeps end at the next
//! whole millisecond, which would add to every latency of an open loop.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The last part of each sleep, which a thread sleeps. The runtime's sleep before it can be one or
/// two milliseconds late.
const FINE: Duration = Duration::from_millis(4);

/// A thread that sleeps for a task. Dropping this stops it.
pub struct FineSleep {
    ask: mpsc::Sender<Instant>,
    next_wakeup: Arc<Notify>,
}

impl FineSleep {
    pub fn new() -> Self {
        let (ask, asked) = mpsc::channel::<Instant>();
        let next_wakeup = Arc::new(Notify::new());
        let wake = next_wakeup.clone();
        let thread = thread::Builder::new().name("fine-sleep".into()).spawn(move || {
            while let Ok(moment) = asked.recv() {
                thread::sleep(moment.saturating_duration_since(Instant::now()));
                wake.notify_one();
            }
        });
        // Without a thread the requests have no receiver, and `until` uses the runtime's sleep.
        drop(thread);
        Self { ask, next_wakeup }
    }

    /// Returns at that moment. One sleep at a time.
    pub async fn until(&mut self, moment: Instant) {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if let Some(coarse) = left.checked_sub(FINE) {
            tokio::time::sleep(coarse).await;
        }
        if self.ask.send(moment).is_ok() {
            self.next_wakeup.notified().await;
        } else {
            tokio::time::sleep_until(moment.into()).await;
        }
    }
}
