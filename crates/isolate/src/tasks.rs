//! The engine's own tasks for the isolate's thread: what a script registered for when its objects are gone, and work that
//! the engine puts off. Where isolates are copied, nobody else runs them.

use std::future::Future;
use std::pin::pin;

use deno_core::{JsRuntime, v8};

/// The isolate of a call.
#[derive(Clone, Copy)]
pub struct Tasks(v8::UnsafeRawIsolatePtr);

impl Tasks {
    /// Good for as long as the runtime lives.
    pub fn of(runtime: &mut JsRuntime) -> Self {
        // SAFETY: only an address as yet.
        #[allow(unsafe_code)]
        Self(unsafe { runtime.v8_isolate().as_raw_isolate_ptr() })
    }

    /// Runs the call, and after each of its turns the tasks that came of it.
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

    /// Whether there was one.
    fn run_one(mut self) -> bool {
        // SAFETY: the call that borrows the runtime is between two turns on this very thread, and holds it while it waits.
        #[allow(unsafe_code)]
        let isolate = unsafe { v8::Isolate::ref_from_raw_isolate_ptr_mut(&mut self.0) };
        v8::Platform::pump_message_loop(&v8::V8::get_current_platform(), isolate, false)
    }
}
