//! `context.progress`: the first word leaves at once, later ones at most one in each interval, and always the newest.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use deno_core::unsync::JoinHandle;
use deno_core::{OpState, op2};
use sandbox::protocol::{Kind, MAX_PROGRESS_BYTES, PROGRESS_INTERVAL, ProgressUpdate, encode};

use crate::link::Link;

/// The progress that the running call has reported and has still to send.
#[derive(Default)]
pub struct Progress {
    told: Rc<SendState>,
    /// Sends the waiting report when it is due.
    later: RefCell<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct SendState {
    last: Cell<Option<Instant>>,
    waiting: RefCell<Option<ProgressUpdate>>,
    /// A task will send the waiting report.
    is_taken_care_of: Cell<bool>,
}

impl SendState {
    /// How long the next word has to wait; `None`: it may leave.
    fn wait(&self) -> Option<std::time::Duration> {
        PROGRESS_INTERVAL.checked_sub(self.last.get()?.elapsed()).filter(|wait| !wait.is_zero())
    }

    fn send(&self, link: &Link, word: &ProgressUpdate) {
        self.last.set(Some(Instant::now()));
        if let Ok(word) = encode(word) {
            // A socket that no longer takes frames ends the process from the reading side.
            let _ = link.send(Kind::Progress, 0, word);
        }
    }
}

impl Progress {
    fn tell(&self, link: &Link, word: ProgressUpdate) {
        if self.told.wait().is_none() {
            self.told.waiting.take();
            self.told.send(link, &word);
            return;
        }
        self.told.waiting.replace(Some(word));
        if !self.told.is_taken_care_of.replace(true) {
            let sends = deno_core::unsync::spawn(send_later(self.told.clone(), link.clone(), link.call()));
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

async fn send_later(told: Rc<SendState>, link: Link, call: u32) {
    while let Some(wait) = told.wait() {
        tokio::time::sleep(wait).await;
    }
    told.is_taken_care_of.set(false);
    if link.call() == call
        && let Some(word) = told.waiting.take()
    {
        told.send(&link, &word);
    }
}

/// A fraction that is no finite number: the tool cannot say.
#[op2(fast)]
pub fn op_sandbox_progress(state: &mut OpState, fraction: f64, #[string] message: &str) {
    let fraction = fraction.is_finite().then(|| fraction.clamp(0.0, 1.0));
    let message = message[..message.floor_char_boundary(MAX_PROGRESS_BYTES)].to_owned();
    state.borrow::<Progress>().tell(state.borrow::<Link>(), ProgressUpdate { fraction, message });
}
