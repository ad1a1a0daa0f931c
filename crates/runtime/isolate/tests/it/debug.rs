//! What the observer of a call receives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::ToolFailure;
use rcrt_sandbox::{
    ApiCall, BodyStream, CallObserver, ConsoleLevel, ConsoleLine, FetchRequest, FetchResponse, HostOps, OpError,
    ProcessUsage,
};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fixture::{PATIENCE_MS, block_on, function, invocation, shared};

/// `getBreadcrumb(message)` replies after a line with this message was received.
#[derive(Default)]
struct Watching {
    lines: watch::Sender<Vec<ConsoleLine>>,
    ended: Mutex<Vec<ProcessUsage>>,
}

impl CallObserver for Watching {
    fn console(&self, line: &ConsoleLine) {
        self.lines.send_modify(|lines| lines.push(line.clone()));
    }

    fn ended(&self, usage: ProcessUsage) {
        self.ended.lock().unwrap().push(usage);
    }
}

#[async_trait]
impl HostOps for Watching {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("TypeError", "no network"))
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        let ApiCall::GetBreadcrumb { id } = call else { return Err(OpError::new("NotFound", "no such method")) };
        let mut lines = self.lines.subscribe();
        let _ = lines.wait_for(|lines| lines.iter().any(|line| line.message == id)).await;
        Ok(json!("received"))
    }

    fn observer(&self) -> Option<&dyn CallObserver> {
        Some(self)
    }
}

fn run(body: &str, timeout_ms: u64) -> (Result<Value, ToolFailure>, Vec<ConsoleLine>, ProcessUsage) {
    let host = Arc::new(Watching::default());
    let mut call = invocation(&function(body), Value::Null);
    call.limits.timeout_ms = timeout_ms;
    let outcome = block_on(shared().run(call, host.clone(), CancellationToken::new()));
    let (lines, ended) = (host.lines.borrow().clone(), host.ended.lock().unwrap().clone());
    assert_eq!((lines.clone(), ended.len()), (outcome.console, 1));
    (outcome.result, lines, ended[0])
}

#[test]
fn lines_are_received_while_the_tool_runs() {
    let body = "console.warn('here'); await context.api.getBreadcrumb('here'); console.log('after'); return 1";
    let (result, lines, usage) = run(body, PATIENCE_MS);
    assert_eq!(result.unwrap(), 1);
    let line = |level, message: &str| ConsoleLine { level, message: message.into() };
    assert_eq!(lines, [line(ConsoleLevel::Warn, "here"), line(ConsoleLevel::Log, "after")]);
    assert_eq!(usage.omitted_lines, 0);
}

#[test]
fn lines_beyond_the_limit_are_counted() {
    let (result, lines, usage) = run("for (let i = 0; i < 1234; i++) console.log(i); return 1", PATIENCE_MS);
    assert_eq!(result.unwrap(), 1);
    assert_eq!((lines.len(), usage.omitted_lines), (1000, 234));
}

#[test]
#[cfg(target_os = "linux")]
fn processor_time_and_memory_are_measured() {
    let idle = run("return 0", PATIENCE_MS).2;
    let body = "const kept = []; for (let i = 0; i < 60; i++) kept.push(new Uint8Array(1 << 20).fill(i));
        const end = Date.now() + 100; while (Date.now() < end); return kept.length";
    let (result, _, busy) = run(body, PATIENCE_MS);
    assert_eq!(result.unwrap(), 60);
    // On a busy machine it gets less than all of the time.
    assert!(busy.cpu.unwrap() > Duration::from_millis(10) && busy.cpu.unwrap() > idle.cpu.unwrap(), "{busy:?}");
    let more = busy.peak_memory.unwrap() - idle.peak_memory.unwrap();
    assert!((50 << 20..200 << 20).contains(&more), "{idle:?} {busy:?}");
}

#[test]
fn a_call_that_is_stopped_is_reported_too() {
    let (result, _, usage) = run("for (;;) console.log('x')", 3000);
    result.unwrap_err();
    assert!(usage.omitted_lines > 0, "{usage:?}");
}
