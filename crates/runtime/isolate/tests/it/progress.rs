//! `context.progress`, on the tool's side and on the host's.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_sandbox::protocol::PROGRESS_INTERVAL;
use rcrt_sandbox::{ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, OpError};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fixture::{PATIENCE_MS, block_on, function, invocation, shared};

type Report = (Option<f64>, String);

/// `getBreadcrumb(message)` replies after a report with this message was received.
#[derive(Default)]
struct Listener(watch::Sender<Vec<Report>>);

#[async_trait]
impl HostOps for Listener {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("TypeError", "no network"))
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        let ApiCall::GetBreadcrumb { id } = call else { return Err(OpError::new("NotFound", "no such method")) };
        let mut reports = self.0.subscribe();
        let _ = reports.wait_for(|reports| reports.iter().any(|(_, message)| *message == id)).await;
        Ok(json!("received"))
    }

    fn progress(&self, fraction: Option<f64>, message: &str) {
        self.0.send_modify(|reports| reports.push((fraction, message.to_owned())));
    }
}

fn run(body: &str, timeout_ms: u64) -> (Result<Value, ToolFailure>, Vec<Report>) {
    let host = Arc::new(Listener::default());
    let mut call = invocation(&function(body), Value::Null);
    call.limits.timeout_ms = timeout_ms;
    let outcome = block_on(shared().run(call, host.clone(), CancellationToken::new()));
    let reports = host.0.borrow().clone();
    (outcome.result, reports)
}

/// Runs one report and returns what the host received.
fn received(arguments: &str) -> Report {
    let (result, mut reports) = run(&format!("context.progress({arguments}); return 0"), PATIENCE_MS);
    result.unwrap();
    assert_eq!(reports.len(), 1, "{arguments}: {reports:?}");
    reports.remove(0)
}

#[test]
fn a_report_reaches_the_host() {
    assert_eq!(received("0.25, 'a quarter'"), (Some(0.25), "a quarter".into()));
    assert_eq!(received("1"), (Some(1.0), String::new()));
    assert_eq!(received("null, 'unknown'"), (None, "unknown".into()));
    assert_eq!(received(""), (None, String::new()));
    assert_eq!(received("0 / 0, 'of nothing'"), (None, "of nothing".into()));
    assert_eq!(received("1.0000000001, null"), (Some(1.0), String::new()));
    assert_eq!(received("-3"), (Some(0.0), String::new()));
    assert_eq!(received("0.5, 'half \\ud83d'"), (Some(0.5), "half \u{fffd}".into()));
    let (_, long) = received("0.5, 'ü'.repeat(100000)");
    assert_eq!(long, "ü".repeat(500));
}

#[test]
fn invalid_arguments_are_errors_and_not_sent() {
    for arguments in ["'half'", "{}", "1n", "0.5, 5", "0.5, {}", "Symbol()"] {
        let (result, reports) = run(&format!("context.progress({arguments})"), PATIENCE_MS);
        let failure = result.unwrap_err();
        assert!(failure.message.starts_with("TypeError: progress: "), "{arguments}: {failure}");
        assert_eq!(reports, [], "{arguments}");
    }
}

#[test]
fn of_reports_in_quick_succession_the_newest_is_sent() {
    let begun = Instant::now();
    let (result, reports) = run(
        "for (let i = 0; i < 5000; i++) context.progress(i / 5000, `step ${i}`);
         return await context.api.getBreadcrumb('step 4999')",
        PATIENCE_MS,
    );
    let most = begun.elapsed().as_millis() / PROGRESS_INTERVAL.as_millis() + 2;
    assert_eq!(result.unwrap(), "received");
    assert_eq!(reports.first(), Some(&(Some(0.0), "step 0".into())));
    assert_eq!(reports.last(), Some(&(Some(0.9998), "step 4999".into())));
    assert!((reports.len() as u128) <= most, "{} of {most}", reports.len());
}

#[test]
fn reports_do_not_extend_the_timeout() {
    let mut timeout_ms = 1_000;
    loop {
        let begun = Instant::now();
        let (result, reports) = run("while (true) context.progress(Math.random(), 'x'.repeat(500))", timeout_ms);
        let most = begun.elapsed().as_millis() / PROGRESS_INTERVAL.as_millis() + 2;
        assert_eq!(result.unwrap_err().code, ErrorCode::Timeout);
        assert!((reports.len() as u128) <= most, "{} of {most}", reports.len());
        if !reports.is_empty() {
            return;
        }
        // On a busy machine, the time can end before the tool's first report.
        timeout_ms *= 4;
        assert!(timeout_ms <= PATIENCE_MS, "no report arrived");
    }
}

#[test]
fn progress_cannot_be_changed_or_inspected() {
    let (result, reports) = run(
        "const frozen = Object.isFrozen(context) && Object.isFrozen(context.progress);
         String.prototype.slice = () => 'stolen';
         context.progress.call(null, 0.5, 'mine');
         return [frozen, typeof context.progress, context.progress.length, 'prototype' in context.progress]",
        PATIENCE_MS,
    );
    assert_eq!(result.unwrap(), json!([true, "function", 0, false]));
    assert_eq!(reports, [(Some(0.5), "mine".into())]);
}
