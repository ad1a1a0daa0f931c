//! Agents whose answer to a message is an attack.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::agents::{Answer, Asked, bomb, done, endless as never_ending, flood, redirect, reply, task};
use super::attacks::Ending::{Completes, Fails, Returns};
use super::attacks::{Attack, Ending, attack, endless};

const NO_JSON: Ending = Fails("is not JSON");
const NO_A2A: Ending = Fails("is not what A2A describes");
const LARGE: Ending = Fails("is larger than");
const LATE: Ending = Fails("did not answer completely");

pub const ANSWERS: &[Attack] = &[
    attack("garbage", |asked| says(asked, "garbage \u{7}"), NO_JSON),
    attack("page", |asked| says(asked, "<html>"), NO_JSON),
    attack("nothing", |asked| says(asked, ""), NO_JSON),
    attack("cut", |asked| says(asked, "{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\""), NO_JSON),
    attack("binary", |asked| asked.on("SendMessage", |_| reply(vec![0xff, 0xfe, 0, 1, 2])), NO_JSON),
    attack("surrogate", |asked| says(asked, "{\"id\": 1, \"result\": \"\\udfff\"}"), NO_JSON),
    attack("number", |asked| says(asked, "{\"id\": 1, \"result\": 1e999}"), NO_JSON),
    attack("deep", |asked| says(asked, &"[".repeat(100_000)), NO_JSON),
    attack("twice", |asked| says(asked, "{\"id\": 1, \"result\": {}} {}"), NO_JSON),
    attack("list", |asked| says(asked, "[]"), Fails("is not an object")),
    attack("text", |asked| says(asked, "\"done\""), Fails("is not an object")),
    attack("empty", |asked| results(asked, json!({})), NO_A2A),
    attack("untyped", |asked| results(asked, json!({"task": {"id": 7}})), NO_A2A),
    attack("stateless", |asked| results(asked, json!({"task": {"id": "t", "status": {"state": ["x"]}}})), NO_A2A),
    attack("both", |asked| results(asked, json!({"task": done(json!([])), "message": {}})), NO_A2A),
    attack("unnamed", |asked| results(asked, json!({"task": {"id": "\u{7}"}})), Fails("a task without an id")),
    attack("stranger", |asked| says(asked, &other(json!({"task": task("COMPLETED")}))), Fails("not to this request")),
    attack("idless", |asked| says(asked, &json!({"result": {}}).to_string()), Fails("not to this request")),
    attack("large", |asked| says(asked, &"x".repeat((10 << 20) - 1)), LARGE),
    attack("flood", |asked| asked.on("SendMessage", |_| flood("application/json", "{\"id\": \"", "xxxxxxxx")), LARGE),
    attack("bomb", |asked| asked.on("SendMessage", |_| bomb()), LARGE),
    endless("never", |asked| if asked.method == "SendMessage" { Answer::Never } else { Answer::Usual }, LATE),
    endless("slow", |asked| asked.on("SendMessage", |_| never_ending("application/json", "{")), LATE),
    attack("headers", |asked| asked.on("SendMessage", long_header), Fails("may have received the message or not")),
    attack("unavailable", |asked| status(asked, StatusCode::SERVICE_UNAVAILABLE), Fails("503; the agent may have")),
    attack("missing", |asked| status(asked, StatusCode::NOT_FOUND), Fails("answered with 404")),
    attack("locked", |asked| status(asked, StatusCode::UNAUTHORIZED), Fails("answered with 401")),
    attack("inside", |asked| leads(asked, &format!("http://127.0.0.1:{}/", asked.inner)), Fails("redirect")),
    attack("metadata", |asked| leads(asked, "http://169.254.169.254/latest/"), Fails("redirect")),
    attack("circle", |asked| leads(asked, &format!("{}/rpc", asked.url)), Fails("redirect")),
    attack("refuses", |asked| refuses(asked, "bad\u{0}\u{1b}[31m"), Fails("the agent refused: bad [31m")),
    attack("shouts", |asked| refuses(asked, &"\u{1b}[31mno\n".repeat(50_000)), Fails("the agent refused: [31mno")),
    attack(
        "coded",
        |asked| asked.on("SendMessage", |asked| asked.answer(json!({"error": {"code": "x"}}))),
        Fails("refused"),
    ),
    attack("untitled", |asked| asked.on("SendMessage", untitled), Returns("done")),
    attack("message", |asked| message(asked, json!([{"text": "hi\u{0}\u{1b}[2J\u{202e}"}])), Returns("hi[2J")),
    attack("partless", |asked| message(asked, json!([])), Completes),
    attack("ambiguous", |asked| message(asked, json!([{"text": "a", "url": "b"}, {}])), Completes),
];

fn says(asked: &Asked, text: &str) -> Answer {
    asked.on("SendMessage", |_| reply(text.to_owned()))
}

fn results(asked: &Asked, result: Value) -> Answer {
    asked.on("SendMessage", |asked| asked.result(result))
}

fn message(asked: &Asked, parts: Value) -> Answer {
    results(asked, json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": parts}}))
}

fn refuses(asked: &Asked, text: &str) -> Answer {
    asked.on("SendMessage", |asked| asked.error(-32603, text))
}

fn status(asked: &Asked, status: StatusCode) -> Answer {
    asked.on("SendMessage", |_| (status, "\u{1b}[2Jno").into_response())
}

fn leads(asked: &Asked, location: &str) -> Answer {
    asked.on("SendMessage", |_| redirect(location))
}

/// The result of a request that nobody sent.
fn other(result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 987_654, "result": result}).to_string()
}

fn long_header(asked: &Asked) -> Response {
    ([("x-long", "x".repeat(1 << 20))], asked.result(json!({}))).into_response()
}

/// A right answer that is called a page.
fn untitled(asked: &Asked) -> Response {
    let text = json!({"jsonrpc": "2.0", "id": asked.id, "result": {"task": task("WORKING")}}).to_string();
    ([(header::CONTENT_TYPE, "text/html")], text).into_response()
}
