//! `context.progress`, from the tool's side and the world's.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use breadcrumb::{ErrorCode, ToolFailure};
use sandbox::protocol::PROGRESS_INTERVAL;
use sandbox::{ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, OpError};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::fixture::{block_on, function, invocation, shared};

type Word = (Option<f64>, String);

/// `getBreadcrumb(message)` answers when a word with this message was heard.
#[derive(Default)]
struct Listener(watch::Sender<Vec<Word>>);

#[async_trait]
impl HostOps for Listener {
    async fn fetch(&self, _request: FetchRequest, _body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        Err(OpError::new("TypeError", "no network"))
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        let ApiCall::GetBreadcrumb { id } = call else { return Err(OpError::new("NotFound", "no such method")) };
        let mut heard = self.0.subscribe();
        let _ = heard.wait_for(|words| words.iter().any(|(_, message)| *message == id)).await;
        Ok(json!("heard"))
    }

    fn progress(&self, fraction: Option<f64>, message: &str) {
        self.0.send_modify(|words| words.push((fraction, message.to_owned())));
    }
}

fn run(body: &str, timeout_ms: u64) -> (Result<Value, ToolFailure>, Vec<Word>) {
    let world = Arc::new(Listener::default());
    let mut call = invocation(&function(body), Value::Null);
    call.limits.timeout_ms = timeout_ms;
    let outcome = block_on(shared().run(call, world.clone(), CancellationToken::new()));
    let words = world.0.borrow().clone();
    (outcome.result, words)
}

/// What is heard of one word.
fn heard(arguments: &str) -> Word {
    let (result, mut words) = run(&format!("context.progress({arguments}); return 0"), 20_000);
    result.unwrap();
    assert_eq!(words.len(), 1, "{arguments}: {words:?}");
    words.remove(0)
}

#[test]
fn a_word_reaches_the_world_as_the_tool_said_it() {
    assert_eq!(heard("0.25, 'a quarter'"), (Some(0.25), "a quarter".into()));
    assert_eq!(heard("1"), (Some(1.0), String::new()));
    assert_eq!(heard("null, 'who knows'"), (None, "who knows".into()));
    assert_eq!(heard(""), (None, String::new()));
    assert_eq!(heard("0 / 0, 'of nothing'"), (None, "of nothing".into()));
    assert_eq!(heard("1.0000000001, null"), (Some(1.0), String::new()));
    assert_eq!(heard("-3"), (Some(0.0), String::new()));
    assert_eq!(heard("0.5, 'half \\ud83d'"), (Some(0.5), "half \u{fffd}".into()));
    let (_, long) = heard("0.5, 'ü'.repeat(100000)");
    assert_eq!(long, "ü".repeat(500));
}

#[test]
fn wrong_arguments_are_errors_and_nothing_is_heard() {
    for arguments in ["'half'", "{}", "1n", "0.5, 5", "0.5, {}", "Symbol()"] {
        let (result, words) = run(&format!("context.progress({arguments})"), 20_000);
        let failure = result.unwrap_err();
        assert!(failure.message.starts_with("TypeError: progress: "), "{arguments}: {failure}");
        assert_eq!(words, [], "{arguments}");
    }
}

#[test]
fn of_words_that_come_quickly_the_newest_is_heard() {
    let begun = Instant::now();
    let (result, words) = run(
        "for (let i = 0; i < 5000; i++) context.progress(i / 5000, `step ${i}`);
         return await context.api.getBreadcrumb('step 4999')",
        20_000,
    );
    let most = begun.elapsed().as_millis() / PROGRESS_INTERVAL.as_millis() + 2;
    assert_eq!(result.unwrap(), "heard");
    assert_eq!(words.first(), Some(&(Some(0.0), "step 0".into())));
    assert_eq!(words.last(), Some(&(Some(0.9998), "step 4999".into())));
    assert!((words.len() as u128) <= most, "{} of {most}", words.len());
}

#[test]
fn words_do_not_keep_a_call_alive_nor_save_it_from_its_end() {
    let (result, words) = run("while (true) context.progress(Math.random(), 'x'.repeat(500))", 1_000);
    assert_eq!(result.unwrap_err().code, ErrorCode::Timeout);
    assert!((1..200).contains(&words.len()), "{}", words.len());
}

#[test]
fn nobody_can_change_what_progress_is_or_look_into_it() {
    let (result, words) = run(
        "const frozen = Object.isFrozen(context) && Object.isFrozen(context.progress);
         String.prototype.slice = () => 'stolen';
         context.progress.call(null, 0.5, 'mine');
         return [frozen, typeof context.progress, context.progress.length, 'prototype' in context.progress]",
        20_000,
    );
    assert_eq!(result.unwrap(), json!([true, "function", 0, false]));
    assert_eq!(words, [(Some(0.5), "mine".into())]);
}
