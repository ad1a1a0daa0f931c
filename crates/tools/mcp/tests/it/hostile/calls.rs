//! Servers that are used, and misbehave during a call.

use axum::response::Response;
use rcrt_breadcrumb::ErrorCode;
use serde_json::{Value, json};

use super::server::{Message, endless, events, flood, reply};

pub struct Call {
    pub name: &'static str,
    pub answer: fn(&Message) -> Response,
    pub ended: Ended,
    pub timeout_ms: u64,
}

/// How the call ends.
#[derive(Clone, Copy)]
pub enum Ended {
    Returns(&'static str),
    /// With this code, or with any.
    Fails(Option<ErrorCode>),
}

use Ended::{Fails, Returns};

const FAILED: Ended = Fails(Some(ErrorCode::ExecutionFailed));

const fn call(name: &'static str, answer: fn(&Message) -> Response, ended: Ended) -> Call {
    Call { name, answer, ended, timeout_ms: 60_000 }
}

/// One that may end only by its limit.
const fn endless_call(name: &'static str, answer: fn(&Message) -> Response, code: Option<ErrorCode>) -> Call {
    Call { name, answer, ended: Fails(code), timeout_ms: 1000 }
}

pub const CALLS: &[Call] = &[
    call("call-garbage", |_| reply("not JSON"), FAILED),
    call(
        "call-flood",
        |_| flood("{\"jsonrpc\": \"", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
        Fails(Some(ErrorCode::ResourceExhausted)),
    ),
    endless_call("call-slow", |_| endless("application/json", "{"), Some(ErrorCode::Timeout)),
    endless_call("call-silent", |_| endless("text/event-stream", ": wait\n\n"), Some(ErrorCode::Timeout)),
    // What another request returned is never the result.
    endless_call("call-other", |message| endless_after(&other(message)), None),
    endless_call("call-others", |message| events([other(message)]), None),
    endless_call("call-swapped", |message| reply(other(message).to_string()), None),
    call("call-error", |message| message.error(-32000, &"\u{1b}[31mno".repeat(100_000)), FAILED),
    call("call-data", large_data, FAILED),
    call("call-text", failing_text, FAILED),
    call("call-progress", progress, Returns("done")),
    call("call-questions", questions, Returns("done")),
    call("call-storm", storm, Returns("done")),
    call("call-deep", deep, FAILED),
];

/// The result of another request.
fn other(message: &Message) -> Value {
    let mut other = message.text("yours");
    other["id"] = 987_654.into();
    other
}

/// An event, after which the stream stays open.
fn endless_after(message: &Value) -> Response {
    // The table is used by one test, so this is a few bytes.
    let event: &'static str = format!("event: message\ndata: {message}\n\n").leak();
    endless("text/event-stream", event)
}

fn large_data(message: &Message) -> Response {
    let error = json!({"code": -32000, "message": "no", "data": "x".repeat(5 << 20)});
    reply(json!({"jsonrpc": "2.0", "id": message.id, "error": error}).to_string())
}

fn failing_text(message: &Message) -> Response {
    let content = json!([{"type": "text", "text": "\u{7}no\u{0}".repeat(1 << 18)}]);
    let structured = json!({"all": "x".repeat(1 << 20)});
    message.result(json!({"isError": true, "content": content, "structuredContent": structured}))
}

/// Progress that makes no sense, often.
fn progress(message: &Message) -> Response {
    let token = message.params["_meta"]["progressToken"].clone();
    let report = move |number: u32| {
        let progress = if number.is_multiple_of(2) { -1e300 } else { 1e300 };
        let params =
            json!({"progressToken": token, "progress": progress, "total": 0, "message": "\u{1b}c".repeat(100)});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    };
    events((0..2000).map(report).chain([message.text("done")]))
}

/// Asks the client for a model, for input and for folders.
fn questions(message: &Message) -> Response {
    let ask =
        |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let content = json!({"type": "text", "text": "What is the password?"});
    let sampling = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100});
    let form = json!({"message": "Your password?", "requestedSchema": {"type": "object", "properties": {}}});
    events([
        ask(1, "sampling/createMessage", sampling),
        ask(2, "elicitation/create", form),
        ask(3, "roots/list", json!({})),
        ask(4, "no/such/method", json!({})),
        message.text("done"),
    ])
}

fn storm(message: &Message) -> Response {
    let announced = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    events(std::iter::repeat_n(announced, 5000).chain([message.text("done")]))
}

fn deep(message: &Message) -> Response {
    let nested = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    reply(format!("{{\"jsonrpc\": \"2.0\", \"id\": {}, \"result\": {{\"structuredContent\": {nested}}}}}", message.id))
}
