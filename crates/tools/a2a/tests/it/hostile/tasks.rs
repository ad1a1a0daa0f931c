//! Agents that attack when they are asked for the state of a task.

use axum::response::Response;
use serde_json::{Value, json};

use super::agents::{Answer, Asked, done, reply, said, task};
use super::attacks::Ending::{Asks, Completes, Fails, Returns};
use super::attacks::{Attack, Ending, attack, endless};

pub const TASKS: &[Attack] = &[
    // It is asked again.
    attack("state-garbage", |asked| at_first(asked, |_| reply("garbage")), Returns("done")),
    attack("state-large", |asked| at_first(asked, |_| reply("x".repeat((10 << 20) - 1))), Returns("done")),
    attack("state-untyped", |asked| at_first(asked, |asked| asked.result(json!(7))), Returns("done")),
    attack("state-unknown", |asked| at_first(asked, |asked| asked.result(task("DREAMING"))), Returns("done")),
    attack("state-error", |asked| at_first(asked, |asked| asked.error(-32603, "\u{1b}[2J")), Returns("done")),
    attack("state-stranger", |asked| at_first(asked, stranger), Returns("done")),
    attack("state-backwards", |asked| at_first(asked, |asked| asked.result(task("SUBMITTED"))), Returns("done")),
    endless("state-never", state_never, Returns("done")),
    // A task of somebody else is never the result.
    attack("state-other", |asked| at_first(asked, |asked| asked.result(other("COMPLETED"))), Returns("done")),
    attack("state-other-failed", |asked| at_first(asked, |asked| asked.result(other("FAILED"))), Returns("done")),
    attack("state-forgets", |asked| asked.on(GET, |asked| asked.error(-32001, "who?")), Fails("no longer knows")),
    attack("state-fails", |asked| shows(asked, said("FAILED", &loud())), Fails("did not do it (failed)")),
    attack("state-rejects", |asked| shows(asked, said("REJECTED", "\u{0}")), Fails("did not say why")),
    attack("asks", |asked| shows(asked, said("INPUT_REQUIRED", &loud())), Asks),
    attack("asks-nothing", |asked| shows(asked, task("INPUT_REQUIRED")), Asks),
    attack("asks-for-secrets", |asked| shows(asked, said("AUTH_REQUIRED", "Your password?")), Asks),
    attack("long-id", |asked| named(asked, &"i".repeat(100_000)), Returns("done")),
    attack("loud-id", |asked| named(asked, "t\u{0}\u{1b}[2J/../1"), Returns("done")),
    attack("result-control", |asked| ends(asked, json!([{"text": "a\u{0}\u{1b}[2J\u{202e}b\r\nc\u{85}"}])), CLEAN),
    attack("result-large", |asked| ends(asked, json!([{"text": "\u{1f600}".repeat(200_000)}])), Completes),
    attack("result-data", |asked| ends(asked, json!([{"data": "d".repeat(900_000)}])), Completes),
    attack("result-deep", |asked| ends(asked, json!([{"data": deep(100)}])), Completes),
    attack("result-keys", |asked| ends(asked, keys()), Completes),
    attack("result-many", |asked| ends(asked, json!(vec![json!({"data": 1}); 20_000])), Completes),
    attack("result-files", |asked| ends(asked, files()), Completes),
    attack("result-raw", |asked| ends(asked, json!([{"raw": "A".repeat(900_000)}])), Completes),
    attack("result-empty", |asked| ends(asked, json!([{"text": "a", "url": "b"}, {}])), Completes),
];

const GET: &str = "GetTask";
const CLEAN: Ending = Returns("a[2Jb\nc");

/// Misbehaves the first two times.
fn at_first(asked: &Asked, answer: fn(&Asked) -> Response) -> Answer {
    if asked.times < 2 { asked.on(GET, answer) } else { Answer::Usual }
}

fn shows(asked: &Asked, task: Value) -> Answer {
    asked.on(GET, |asked| asked.result(task))
}

/// Completes the task with these parts.
fn ends(asked: &Asked, parts: Value) -> Answer {
    shows(asked, done(parts))
}

/// Names its task so.
fn named(asked: &Asked, id: &str) -> Answer {
    let mut task = if asked.method == GET { done(json!([{"text": "done"}])) } else { task("WORKING") };
    task["id"] = id.into();
    match asked.method.as_str() {
        GET => asked.on(GET, |asked| asked.result(task)),
        _ => asked.on("SendMessage", |asked| asked.result(json!({"task": task}))),
    }
}

fn state_never(asked: &Asked) -> Answer {
    if asked.method == GET && asked.times == 0 { Answer::Never } else { Answer::Usual }
}

/// A task with another id.
fn other(state: &str) -> Value {
    let mut task = said(state, "yours");
    task["id"] = "t2".into();
    task
}

fn stranger(_: &Asked) -> Response {
    reply(json!({"jsonrpc": "2.0", "id": 987_654, "result": said("COMPLETED", "yours")}).to_string())
}

fn loud() -> String {
    format!("\u{1b}]0;title\u{7}{}", "y\u{200b}".repeat(100_000))
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!("v\u{7}"), |value, _| json!([value]))
}

fn keys() -> Value {
    json!([{"data": {"k\u{0}ey": "v\u{7}", "__proto__": {"a": 1}, "": 1, "x".repeat(5000): 1}}])
}

fn files() -> Value {
    json!(vec![json!({"url": "http://127.0.0.1/\n\u{1b}", "filename": "../../etc\u{0}", "mediaType": "\u{7}"}); 5000])
}
