//! Agents whose stream of updates is an attack.

use axum::response::Response;
use serde_json::{Value, json};

use super::agents::{Answer, Asked, done, endless as never_ending, events, flood, reply, said, task};
use super::attacks::Ending::{Completes, Fails, Returns};
use super::attacks::{Attack, Ending, attack, endless};

/// Nothing is known of the task, so the agent may work on it.
const LOST: Ending = Fails("may have received the message or not");

pub const STREAMS: &[Attack] = &[
    // Before the first update.
    attack("stream-empty", |asked| sends(asked, ""), LOST),
    attack("stream-garbage", |asked| sends(asked, "data: {\n\n"), LOST),
    attack("stream-pings", |asked| sends(asked, &": ping\n\n".repeat(1000)), LOST),
    attack("stream-line", |asked| sends(asked, &"x".repeat(5 << 20)), LOST),
    attack(
        "stream-flood",
        |asked| asked.on(SEND, |_| flood(EVENTS, ": ", ": wait wait wait wait wait wait\n\n")),
        LOST,
    ),
    attack("stream-field", |asked| asked.on(SEND, |_| flood(EVENTS, "data: ", "xxxxxxxxxxxxxxxx")), LOST),
    attack("stream-deep", |asked| sends(asked, &format!("data: {}\n\n", "[".repeat(100_000))), LOST),
    attack("stream-list", |asked| sends(asked, "data: []\n\n"), LOST),
    attack("stream-untyped", |asked| updates(asked, vec![json!({"task": {"id": 7}})]), LOST),
    attack("stream-unnamed", |asked| updates(asked, vec![json!({"task": {"id": ""}})]), LOST),
    attack("stream-stranger", |asked| sends(asked, &stranger()), LOST),
    attack("stream-none", |asked| asked.on(SEND, |asked| asked.result(json!({"task": task("WORKING")}))), LOST),
    attack("stream-page", |asked| asked.on(SEND, |_| reply("<html>")), LOST),
    endless("stream-never", |asked| if asked.method == SEND { Answer::Never } else { Answer::Usual }, LOST),
    endless("stream-silent", |asked| asked.on(SEND, |_| never_ending(EVENTS, ": wait\n\n")), LOST),
    // After it, the agent is asked for the state.
    attack("stream-then-garbage", |asked| then(asked, "data: garbage\n\n"), Returns("done")),
    attack("stream-then-line", |asked| then(asked, &"x".repeat(5 << 20)), Returns("done")),
    attack("stream-then-error", |asked| then(asked, "data: {\"error\": {\"code\": -1}}\n\n"), Returns("done")),
    attack("stream-then-nothing", |asked| then(asked, ""), Returns("done")),
    attack("stream-then-dream", |asked| updates(asked, vec![begun(), json!({"dream": {}})]), Returns("done")),
    // The first end of the task counts, and what is about another task does not.
    attack("stream-ends-twice", |asked| only_updates(asked, vec![begun(), ended("one"), ended("two")]), Returns("one")),
    attack(
        "stream-ends-badly",
        |asked| only_updates(asked, vec![begun(), ended("one"), state("FAILED")]),
        Returns("one"),
    ),
    attack("stream-backwards", |asked| only_updates(asked, backwards()), Returns("one")),
    attack("stream-others", |asked| only_updates(asked, others()), Returns("mine")),
    attack("stream-many", |asked| only_updates(asked, many()), Completes),
    attack("stream-grows", |asked| only_updates(asked, grows()), Completes),
    attack("stream-talks", |asked| only_updates(asked, talks()), Returns("one")),
];

const SEND: &str = "SendStreamingMessage";
const EVENTS: &str = "text/event-stream";

fn sends(asked: &Asked, text: &str) -> Answer {
    asked.on(SEND, |_| events(text.to_owned()))
}

fn updates(asked: &Asked, results: Vec<Value>) -> Answer {
    asked.on(SEND, |asked| asked.events(results))
}

/// The task ends in the stream only. On a slow machine the follower asks for its state while the
/// stream is read.
fn only_updates(asked: &Asked, results: Vec<Value>) -> Answer {
    match asked.method.as_str() {
        "GetTask" => Answer::Response(asked.result(task("WORKING"))),
        _ => updates(asked, results),
    }
}

/// The first update, and then this.
fn then(asked: &Asked, text: &str) -> Answer {
    let first = json!({"jsonrpc": "2.0", "id": asked.id, "result": begun()});
    asked.on(SEND, |_| -> Response { events(format!("data: {first}\n\n{text}")) })
}

/// The result of a request that nobody sent.
fn stranger() -> String {
    format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 987_654, "result": ended("yours")}))
}

fn begun() -> Value {
    json!({"task": task("WORKING")})
}

fn ended(text: &str) -> Value {
    json!({"task": done(json!([{"text": text}]))})
}

fn state(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t1", "status": task(state)["status"]}})
}

fn artifact(task: &str, id: &str, text: &str) -> Value {
    let artifact = json!({"artifactId": id, "parts": [{"text": text}]});
    json!({"artifactUpdate": {"taskId": task, "artifact": artifact, "append": true}})
}

fn backwards() -> Vec<Value> {
    vec![begun(), state("SUBMITTED"), state("WORKING"), state("DREAMING"), state("SUBMITTED"), ended("one")]
}

fn others() -> Vec<Value> {
    let mut other = done(json!([{"text": "yours"}]));
    other["id"] = "t2".into();
    let failed = json!({"statusUpdate": {"taskId": "t2", "status": {"state": "TASK_STATE_FAILED"}}});
    vec![begun(), json!({"task": other}), failed, artifact("t2", "b", "yours"), artifact("t1", "a", "mine"), end()]
}

fn end() -> Value {
    json!({"statusUpdate": {"taskId": "t1", "status": {"state": "TASK_STATE_COMPLETED"}}})
}

/// More artifacts than are kept.
fn many() -> Vec<Value> {
    let artifacts = (0..2000).map(|index| artifact("t1", &format!("a{index}"), "x"));
    [begun()].into_iter().chain(artifacts).chain([end()]).collect()
}

/// One artifact, of which more is sent than is kept.
fn grows() -> Vec<Value> {
    let pieces = (0..30).map(|_| artifact("t1", "a", &"x\u{0}".repeat(10_000)));
    [begun()].into_iter().chain(pieces).chain([end()]).collect()
}

/// Says more than anybody reads.
fn talks() -> Vec<Value> {
    let status = said("WORKING", &"\u{1b}[2J\u{7}".repeat(1000))["status"].clone();
    let said = json!({"statusUpdate": {"taskId": "t1", "status": status}});
    [begun()].into_iter().chain(vec![said; 100]).chain([ended("one")]).collect()
}
