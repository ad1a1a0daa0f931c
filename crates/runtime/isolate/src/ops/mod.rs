//! Everything a tool can request from outside, as frames to the parent.

// The op macro generates code that the engine calls with raw pointers.
#![allow(unsafe_code)]

mod api;
mod body;
mod clock;
mod console;
mod fetch;
mod hidden;
mod platform;
mod progress;
mod timers;

use deno_core::OpDecl;
use rcrt_sandbox::OpError;
use serde::Serialize;

pub use clock::Clock;
pub use console::Console;
pub use fetch::Fetches;
pub use platform::admitted;
pub use progress::Progress;
pub use timers::Timers;

pub fn declarations() -> Vec<OpDecl> {
    vec![
        console::op_sandbox_console(),
        console::op_sandbox_uncaught(),
        api::op_sandbox_api(),
        fetch::op_sandbox_fetch_start(),
        fetch::op_sandbox_fetch_head(),
        fetch::op_sandbox_fetch_body(),
        fetch::op_sandbox_fetch_abort(),
        hidden::op_sandbox_hidden(),
        progress::op_sandbox_progress(),
        timers::op_sandbox_has_timers(),
    ]
}

/// JSON text `{"ok": …}` or `{"err": {name, message}}`, as the scripts read it.
fn answer<T: Serialize>(result: Result<T, OpError>) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    enum EncodedResult<T> {
        Ok(T),
        Err(OpError),
    }
    let answer = match result {
        Ok(value) => EncodedResult::Ok(value),
        Err(error) => EncodedResult::Err(error),
    };
    serde_json::to_string(&answer)
        .unwrap_or_else(|_| r#"{"err":{"name":"TypeError","message":"the reply cannot be encoded"}}"#.into())
}

/// The parent does not reply any more: the call is over.
fn gone() -> OpError {
    OpError::new("TypeError", "the operation was aborted")
}
