//! Calls that wait for a slot, by tool, in their order. A slot that becomes free wakes the first
//! call of each tool: more of one tool could not have it, and waking all of a thousand would cost
//! more than they do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<String, WaitingTool>>);

#[derive(Default)]
struct WaitingTool {
    next_number: u64,
    /// By their number.
    calls: BTreeMap<u64, Arc<Notify>>,
}

/// One waiting call, until it is dropped.
pub(crate) struct WaitingCall<'w> {
    all: &'w WaitingCalls,
    tool: String,
    number: u64,
    /// Notified when the call may find a slot.
    pub freed: Arc<Notify>,
    /// Whether it has a slot.
    pub is_served: bool,
}

impl WaitingTool {
    fn wake_first(&self) {
        if let Some(freed) = self.calls.values().next() {
            freed.notify_one();
        }
    }
}

impl WaitingCalls {
    pub fn join(&self, tool: &str) -> WaitingCall<'_> {
        let (mut tools, freed) = (self.0.lock(), Arc::new(Notify::new()));
        let waiting = tools.entry(tool.to_owned()).or_default();
        let number = waiting.next_number;
        waiting.next_number += 1;
        waiting.calls.insert(number, freed.clone());
        WaitingCall { all: self, tool: tool.to_owned(), number, freed, is_served: false }
    }

    /// Whether a call of this tool waits.
    pub fn has(&self, tool: &str) -> bool {
        self.0.lock().contains_key(tool)
    }

    /// A slot became free. Each tool can take at most this one.
    pub fn wake(&self) {
        self.0.lock().values().for_each(WaitingTool::wake_first);
    }

    /// There may be a slot for a call of this tool.
    pub fn wake_one_of(&self, tool: &str) {
        if let Some(waiting) = self.0.lock().get(tool) {
            waiting.wake_first();
        }
    }
}

impl WaitingCall<'_> {
    pub fn is_first(&self) -> bool {
        let tools = self.all.0.lock();
        let first = tools.get(&self.tool).and_then(|waiting| waiting.calls.keys().next());
        first == Some(&self.number)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        let mut tools = self.all.0.lock();
        let Some(waiting) = tools.get_mut(&self.tool) else { return };
        waiting.calls.remove(&self.number);
        if waiting.calls.is_empty() {
            tools.remove(&self.tool);
        } else if !self.is_served {
            // It may have been woken for a slot that it no longer takes.
            waiting.wake_first();
        }
    }
}
