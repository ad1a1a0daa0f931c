//! `context.progress`: the first report is sent at once, later ones at most once in each interval,
//! and always the newest.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use deno_core::unsync::JoinHandle;
use deno_core::{OpState, op2};
use rcrt_sandbox::protocol::{Kind, MAX_PROGRESS_BYTES, PROGRESS_INTERVAL, ProgressUpdate, encode};

use crate::link::Link;

/// The progress that the running call has reported and has still to send.
#[derive(Default)]
pub struct Progress {
    state: Rc<SendState>,
    /// Sends the waiting report when it is due.
    later: RefCell<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct SendState {
    last: Cell<Option<Instant>>,
    waiting: RefCell<Option<ProgressUpdate>>,
    /// A task will send the waiting report.
    is_scheduled: Cell<bool>,
}

impl SendState {
    /// How long the next report has to wait; `None`: it can be sent.
    fn wait(&self) -> Option<std::time::Duration> {
        PROGRESS_INTERVAL.checked_sub(self.last.get()?.elapsed()).filter(|wait| !wait.is_zero())
    }

    fn send(&self, link: &Link, report: &ProgressUpdate) {
        self.last.set(Some(Instant::now()));
        if let Ok(report) = encode(report) {
            // If the socket is closed, the reading thread exits the process.
            let _ = link.send(Kind::Progress, 0, report);
        }
    }
}

impl Progress {
    fn report(&self, link: &Link, report: ProgressUpdate) {
        if self.state.wait().is_none() {
            self.state.waiting.take();
            self.state.send(link, &report);
            return;
        }
        self.state.waiting.replace(Some(report));
        if !self.state.is_scheduled.replace(true) {
            let sends = deno_core::unsync::spawn(send_later(self.state.clone(), link.clone(), link.call()));
            self.later.replace(Some(sends));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(later) = self.later.take() {
            later.abort();
        }
    }
}

async fn send_later(state: Rc<SendState>, link: Link, call: u32) {
    while let Some(wait) = state.wait() {
        tokio::time::sleep(wait).await;
    }
    state.is_scheduled.set(false);
    if link.call() == call
        && let Some(report) = state.waiting.take()
    {
        state.send(&link, &report);
    }
}

/// A fraction that is not finite means that the tool does not know it.
#[op2(fast)]
pub fn op_sandbox_progress(state: &mut OpState, fraction: f64, #[string] message: &str) {
    let fraction = fraction.is_finite().then(|| fraction.clamp(0.0, 1.0));
    let message = message[..message.floor_char_boundary(MAX_PROGRESS_BYTES)].to_owned();
    state.borrow::<Progress>().report(state.borrow::<Link>(), ProgressUpdate { fraction, message });
}
