//! Servers that misbehave when a client connects to them or lists their tools.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::server::{Answer, Message, endless, events, flood, initialized, reply, tool};

pub struct Attack {
    pub name: &'static str,
    pub answer: fn(&Message) -> Answer,
    pub outcome: Outcome,
}

/// What the record of the server's state says.
#[derive(Clone, Copy)]
pub enum Outcome {
    /// It cannot be used, and the error has this text.
    Unusable(&'static str),
    /// It has this many tools.
    Usable(usize),
    /// One of both.
    Any,
}

use Outcome::{Any, Unusable, Usable};

impl Attack {
    /// Short if the server is given up anyway, because some of them never respond.
    pub fn connect_timeout_ms(&self) -> u64 {
        if matches!(self.outcome, Unusable("" | "3000 ms")) { 3000 } else { 60_000 }
    }
}

const fn attack(name: &'static str, answer: fn(&Message) -> Answer, outcome: Outcome) -> Attack {
    Attack { name, answer, outcome }
}

pub const ATTACKS: &[Attack] = &[
    attack("page", |_| html("<html>"), Unusable("the content type \"text/html\"; expected application/json")),
    attack("garbage", |_| body("<html>\u{7}not JSON"), Unusable("")),
    attack("cut", |_| body("{\"jsonrpc\": \"2.0\", \"id\""), Unusable("")),
    attack("binary", |_| Answer::Response(reply(vec![0xff, 0xfe, 0, 1, 2])), Unusable("")),
    attack("flood", |_| Answer::Response(flood("{\"jsonrpc\": \"", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")), Unusable("")),
    attack("never", |_| Answer::Never, Unusable("3000 ms")),
    attack("slow", |_| Answer::Response(endless("application/json", "{\"jsonrpc\"")), Unusable("3000 ms")),
    attack("silent", |_| Answer::Response(endless("text/event-stream", ": wait\n\n")), Unusable("3000 ms")),
    attack(
        "redirect",
        |message| redirect(format!("http://127.0.0.1:{}/mcp", message.inner)),
        Unusable("name it in transport.url"),
    ),
    attack("circle", |_| redirect("/circle".to_owned()), Unusable("redirects")),
    attack("headers", |_| Answer::Response(([("x-long", "x".repeat(200_000))], "").into_response()), Unusable("")),
    attack("deep", |message| in_result(message, &"[".repeat(100_000)), Unusable("")),
    attack("batch", |message| body(format!("[{}, {0}]", message.text("two"))), Unusable("")),
    attack("stranger", |message| on("initialize", message, |_| other_id(initialized("2025-06-18"))), Unusable("")),
    attack("future", |message| on("initialize", message, |m| m.result(initialized("2999-01-01"))), Any),
    attack("nothing", |message| on("initialize", message, |m| m.result(json!({}))), Unusable("")),
    attack("broken", |_| status(StatusCode::INTERNAL_SERVER_ERROR), Unusable("HTTP 500")),
    attack("locked", |_| challenge(), Unusable("rcrt mcp login")),
    attack(
        "shout",
        |message| on("tools/list", message, |m| m.error(-1, &"\u{1b}[31mx".repeat(100_000))),
        Unusable("[31m"),
    ),
    attack("others", |message| on("tools/list", message, |_| other_id(json!({"tools": []}))), Unusable("")),
    attack("pages", |message| on("tools/list", message, next_page), Unusable("more than 100 pages")),
    attack("many", |message| on("tools/list", message, |m| listed(m, many(401))), Unusable("more than 400 tools")),
    attack("large", |message| on("tools/list", message, large_page), Unusable("more than 8388608 bytes")),
    attack("untyped", |message| on("tools/list", message, |m| m.result(json!({"tools": "all"}))), Unusable("")),
    attack("collide", |message| on("tools/list", message, |m| listed(m, collisions())), Usable(1)),
    attack("names", |message| on("tools/list", message, |m| listed(m, names())), Usable(3)),
    attack("texts", |message| on("tools/list", message, |m| listed(m, vec![loud()])), Usable(1)),
    attack("reference", |message| on("tools/list", message, |m| listed(m, vec![remote(m), tool("good")])), Usable(1)),
    attack("shapes", |message| on("tools/list", message, |m| listed(m, shapes())), Usable(1)),
    attack("storm", |message| on("tools/list", message, storm), Usable(1)),
];

fn body(text: impl Into<String>) -> Answer {
    Answer::Response(reply(text.into()))
}

fn html(text: &'static str) -> Answer {
    Answer::Response(([("content-type", "text/html")], text).into_response())
}

fn status(status: StatusCode) -> Answer {
    Answer::Response((status, "\u{1b}[2Jno").into_response())
}

fn redirect(location: String) -> Answer {
    Answer::Response((StatusCode::TEMPORARY_REDIRECT, [("location", location)]).into_response())
}

fn challenge() -> Answer {
    let header = format!("Bearer realm=\"{}\"", "x".repeat(5000));
    Answer::Response((StatusCode::UNAUTHORIZED, [("www-authenticate", header)]).into_response())
}

/// Misbehaves with messages of this method only.
fn on(method: &str, message: &Message, answer: impl FnOnce(&Message) -> Response) -> Answer {
    if message.is(method) { Answer::Response(answer(message)) } else { Answer::Usual }
}

fn in_result(message: &Message, text: &str) -> Answer {
    body(format!("{{\"jsonrpc\": \"2.0\", \"id\": {}, \"result\": {text}", message.id))
}

/// The result of a request that nobody sent.
fn other_id(result: Value) -> Response {
    reply(json!({"jsonrpc": "2.0", "id": 987_654, "result": result}).to_string())
}

fn listed(message: &Message, tools: Vec<Value>) -> Response {
    message.result(json!({"tools": tools}))
}

fn next_page(message: &Message) -> Response {
    message.result(json!({"tools": [], "nextCursor": "again"}))
}

fn many(count: usize) -> Vec<Value> {
    (0..count).map(|index| tool(&format!("t{index}"))).collect()
}

/// Pages of 2 MB, each definition small enough.
fn large_page(message: &Message) -> Response {
    let large = |index: usize| {
        let mut tool = tool(&format!("t{}_{index}", message.lists));
        tool["description"] = "x".repeat(200_000).into();
        tool
    };
    message.result(json!({"tools": (0..10).map(large).collect::<Vec<_>>(), "nextCursor": "again"}))
}

fn collisions() -> Vec<Value> {
    vec![tool("a b"), tool("a_b"), tool("a/b"), tool("a b")]
}

fn names() -> Vec<Value> {
    let long = "x".repeat(200);
    vec![tool(""), tool("a\u{7}b"), tool(&"y".repeat(2000)), tool(&long), tool("../../etc/passwd"), tool("__proto__")]
}

fn loud() -> Value {
    let mut tool = tool("loud");
    tool["description"] = format!("\u{1b}]0;title\u{7}\u{0}{}", "y".repeat(100_000)).into();
    tool["title"] = "\u{202e}\u{1b}[2J".repeat(100).into();
    tool
}

/// A schema that is elsewhere.
fn remote(message: &Message) -> Value {
    let mut tool = tool("remote");
    let url = format!("http://127.0.0.1:{}/schema", message.inner);
    tool["inputSchema"] = json!({"$schema": url, "type": "object", "properties": {"a": {"$ref": url}}});
    tool["outputSchema"] = json!({"type": "object", "allOf": [{"$ref": url}]});
    tool
}

/// Definitions that are none, and one that is.
fn shapes() -> Vec<Value> {
    let mut large = tool("large");
    large["inputSchema"]["description"] = "x".repeat(300_000).into();
    let mut untyped = tool("untyped");
    untyped["inputSchema"] = "anything".into();
    vec![
        json!(null),
        json!(7),
        json!([]),
        json!({"name": 7}),
        json!({"name": "schemaless"}),
        large,
        untyped,
        tool("good"),
    ]
}

/// Announces that the list has changed, a thousand times with each list.
fn storm(message: &Message) -> Response {
    let announced = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let list = json!({"jsonrpc": "2.0", "id": message.id, "result": {"tools": [tool("attack")]}});
    events(std::iter::repeat_n(announced, 1000).chain([list]))
}
