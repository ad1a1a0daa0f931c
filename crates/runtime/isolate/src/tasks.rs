//! The engine's own tasks for the isolate's thread: finalization callbacks of scripts, and deferred
//! work of the engine. In forked isolates nothing else runs them.

use std::future::Future;
use std::pin::pin;

use deno_core::{JsRuntime, v8};

/// The isolate of a call.
#[derive(Clone, Copy)]
pub struct Tasks(v8::UnsafeRawIsolatePtr);

impl Tasks {
    /// Valid for as long as the runtime lives.
    pub fn of(runtime: &mut JsRuntime) -> Self {
        // SAFETY: the pointer is only stored here.
        #[allow(unsafe_code)]
        Self(unsafe { runtime.v8_isolate().as_raw_isolate_ptr() })
    }

    /// Runs the call, and after each of its polls the tasks that it created.
    pub async fn beside<T>(self, call: impl Future<Output = T>) -> T {
        let mut call = pin!(call);
        std::future::poll_fn(|context| {
            loop {
                let polled = call.as_mut().poll(context);
                if polled.is_ready() || !self.run_one() {
                    return polled;
                }
            }
        })
        .await
    }

    /// Runs one task. Returns whether there was one.
    fn run_one(mut self) -> bool {
        // SAFETY: the call that borrows the runtime is between two polls on this thread, and holds
        // it while it waits.
        #[allow(unsafe_code)]
        let isolate = unsafe { v8::Isolate::ref_from_raw_isolate_ptr_mut(&mut self.0) };
        v8::Platform::pump_message_loop(&v8::V8::get_current_platform(), isolate, false)
    }
}
