//! The switch that ends the running call from another thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deno_core::v8;
use tokio::sync::Notify;

/// Why the running call must end; set by the first to detect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Cancelled,
    OutOfMemory,
}

/// The switch that ends the running call from another thread.
#[derive(Clone, Default)]
pub struct Stop(Arc<StopState>);

#[derive(Default)]
struct StopState {
    running: Mutex<Running>,
    requested: Notify,
}

#[derive(Default)]
struct Running {
    call: u32,
    engine: Option<v8::IsolateHandle>,
    reason: Option<Reason>,
    /// The request for this call arrived before the call began: its isolate was still being
    /// created.
    early: u32,
}

impl Stop {
    fn held(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, call: u32, engine: v8::IsolateHandle) {
        let mut running = self.held();
        let reason = (running.early == call).then_some(Reason::Cancelled);
        *running = Running { call, engine: Some(engine), reason, early: 0 };
    }

    /// Ends the call: later requests from outside do not reach the isolate.
    pub fn end(&self) -> Option<Reason> {
        std::mem::take(&mut *self.held()).reason
    }

    /// Handles the parent's request, from the reading thread.
    pub fn tell(&self, call: u32) {
        let mut running = self.held();
        if running.call != call {
            running.early = call;
            return;
        }
        running.reason.get_or_insert(Reason::Cancelled);
        if let Some(engine) = &running.engine {
            engine.terminate_execution();
        }
        self.0.requested.notify_one();
    }

    /// Waits until the running call must end.
    pub async fn wanted(&self) {
        // A request for a call that ended by itself may have left a notification.
        while self.held().reason.is_none() {
            self.0.requested.notified().await;
        }
    }

    /// Called on the engine's own thread, which ends the call itself.
    pub fn out_of_memory(&self) {
        self.held().reason.get_or_insert(Reason::OutOfMemory);
        self.0.requested.notify_one();
    }
}
