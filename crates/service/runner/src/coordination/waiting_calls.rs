//! Calls that wait for a slot, by tool. A slot that becomes free wakes one call of each tool: more
//! of one tool could not have it, and waking all of a thousand would cost more than they do.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<String, WaitingTool>>);

#[derive(Default)]
struct WaitingTool {
    calls: usize,
    freed: Arc<Notify>,
}

/// One waiting call, until it is dropped.
pub(crate) struct WaitingCall<'w> {
    all: &'w WaitingCalls,
    tool: String,
    /// Notified when the call may find a slot.
    pub freed: Arc<Notify>,
}

impl WaitingCalls {
    pub fn join(&self, tool: &str) -> WaitingCall<'_> {
        let mut tools = self.0.lock();
        let waiting = tools.entry(tool.to_owned()).or_default();
        waiting.calls += 1;
        WaitingCall { all: self, tool: tool.to_owned(), freed: waiting.freed.clone() }
    }

    /// A slot became free. Each tool can take at most this one.
    pub fn notify(&self) {
        for waiting in self.0.lock().values() {
            waiting.freed.notify_one();
        }
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        let mut tools = self.all.0.lock();
        if let Some(waiting) = tools.get_mut(&self.tool) {
            waiting.calls -= 1;
            if waiting.calls == 0 {
                tools.remove(&self.tool);
            }
        }
    }
}
