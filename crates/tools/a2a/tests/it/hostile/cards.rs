//! Agents whose card is an attack.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::agents::{Answer, Asked, bomb, endless as never_ending, flood, redirect, reply};
use super::attacks::Ending::{Changed, Refused, Returns, Unknown};
use super::attacks::{Attack, Ending, attack, endless};

const UNREADABLE: Ending = Unknown("card cannot be read");
const LARGE: Ending = Unknown("is larger than");
const LATE: Ending = Unknown("did not answer completely");
const OLD: Ending = Unknown("agents of other versions are not supported");
const NO_URL: Ending = Unknown("no http or https URL");

pub const CARDS: &[Attack] = &[
    attack("card-page", |asked| shows(asked, "<html>\u{7}"), UNREADABLE),
    attack("card-empty", |asked| shows(asked, ""), UNREADABLE),
    attack("card-cut", |asked| shows(asked, "{\"name\": \"x\", \"skills\""), UNREADABLE),
    attack("card-list", |asked| shows(asked, "[]"), UNREADABLE),
    attack("card-binary", |asked| asked.on("card", |_| reply(vec![0xff, 0xfe, 0, 1])), UNREADABLE),
    attack("card-surrogate", |asked| shows(asked, "{\"name\": \"\\ud800\"}"), UNREADABLE),
    attack("card-deep", |asked| shows(asked, &format!("{{\"skills\": {}", "[".repeat(100_000))), UNREADABLE),
    attack("card-untyped", |asked| changed(asked, "supportedInterfaces", json!("all")), UNREADABLE),
    attack("card-nameless", |asked| changed(asked, "name", Value::Null), UNREADABLE),
    attack("card-large", |asked| shows(asked, &" ".repeat(10 << 20)), LARGE),
    attack("card-flood", |asked| asked.on("card", |_| flood("application/json", "{\"name\": \"", "xxxxxxxx")), LARGE),
    attack("card-bomb", |asked| asked.on("card", |_| bomb()), LARGE),
    attack("card-encoded", |asked| asked.on("card", encoded), Unknown("")),
    attack("card-headers", |asked| asked.on("card", long_header), Unknown("")),
    attack("card-missing", |asked| asked.on("card", |_| StatusCode::NOT_FOUND.into_response()), Unknown("404")),
    attack("card-broken", |asked| asked.on("card", broken), Unknown("500")),
    attack("card-inside", |asked| leads(asked, &format!("http://127.0.0.1:{}/", asked.inner)), Unknown("127.0.0.1")),
    attack("card-inside-6", |asked| leads(asked, &format!("http://[::1]:{}/", asked.inner)), Unknown("::1")),
    attack("card-metadata", |asked| leads(asked, "http://169.254.169.254/latest/"), Unknown("169.254.169.254")),
    attack("card-circle", |asked| leads(asked, &asked.url), Unknown("redirect")),
    attack("card-file", |asked| leads(asked, "file:///etc/passwd"), Unknown("")),
    endless("card-never", |asked| if asked.method == "card" { Answer::Never } else { Answer::Usual }, LATE),
    endless("card-slow", |asked| asked.on("card", |_| never_ending("application/json", "{\"name\"")), LATE),
    attack("card-old", |asked| shows(asked, r#"{"name": "Old", "url": "http://x/", "protocolVersion": "0.3"}"#), OLD),
    attack("card-grpc", |asked| interface(asked, "protocolBinding", "GRPC"), OLD),
    attack("card-future", |asked| interface(asked, "protocolVersion", "99.0"), OLD),
    attack("at-file", |asked| at(asked, "file:///etc/passwd"), NO_URL),
    attack("at-script", |asked| at(asked, "javascript:alert(1)"), NO_URL),
    attack("at-path", |asked| at(asked, "/rpc"), NO_URL),
    attack("at-password", |asked| at(asked, "https://user:password@agent.example/"), NO_URL),
    attack("at-length", |asked| at(asked, &format!("https://agent.example/{}", "x".repeat(3000))), NO_URL),
    attack("at-tenant", |asked| interface(asked, "tenant", "a\r\nb"), Unknown("a control character")),
    // These are registered, and the gate refuses the message.
    attack("at-loopback", |asked| at(asked, &format!("http://127.0.0.1:{}/", asked.inner)), Refused),
    attack("at-loopback-6", |asked| at(asked, &format!("http://[::1]:{}/", asked.inner)), Refused),
    attack("at-mapped", |asked| at(asked, &format!("http://[::ffff:127.0.0.1]:{}/", asked.inner)), Refused),
    attack("at-number", |asked| at(asked, &format!("http://0x7f000001:{}/", asked.inner)), Refused),
    attack("at-localhost", |asked| at(asked, &format!("http://localhost:{}/", asked.inner)), Refused),
    attack("at-metadata", |asked| at(asked, "http://169.254.169.254/latest/meta-data/"), Refused),
    attack("at-private", |asked| at(asked, "http://10.0.0.1/"), Refused),
    attack("at-mail", |asked| at(asked, "https://other.example:25/"), Refused),
    // These can be asked.
    attack("card-texts", |asked| shows(asked, &loud(asked).to_string()), Returns("done")),
    attack("card-skills", |asked| changed(asked, "skills", skills()), Returns("done")),
    attack("card-moves", moved, Changed),
];

fn shows(asked: &Asked, card: &str) -> Answer {
    asked.on("card", |_| reply(card.to_owned()))
}

fn changed(asked: &Asked, member: &str, value: Value) -> Answer {
    let mut card = asked.card();
    card[member] = value;
    shows(asked, &card.to_string())
}

fn interface(asked: &Asked, member: &str, value: &str) -> Answer {
    let mut card = asked.card();
    card["supportedInterfaces"][0][member] = value.into();
    shows(asked, &card.to_string())
}

fn at(asked: &Asked, url: &str) -> Answer {
    shows(asked, &asked.card_at(url).to_string())
}

fn leads(asked: &Asked, location: &str) -> Answer {
    asked.on("card", |_| redirect(location))
}

/// `{}` in an encoding that was not asked for.
fn encoded(_: &Asked) -> Response {
    ([(header::CONTENT_ENCODING, "br")], [0x0b, 0x01, 0x80, b'{', b'}', 0x03]).into_response()
}

fn long_header(asked: &Asked) -> Response {
    ([("x-long", "x".repeat(1 << 20))], asked.card().to_string()).into_response()
}

fn broken(_: &Asked) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, "\u{1b}[2Jno").into_response()
}

fn loud(asked: &Asked) -> Value {
    let mut card = asked.card();
    card["description"] = format!("{}\r\n\u{1b}]0;title\u{7}", "x".repeat(10_000)).into();
    card["version"] = "v\u{202e}".repeat(1000).into();
    card["skills"][0]["description"] = "d\u{0}".repeat(5000).into();
    card["skills"][0]["tags"] = json!(vec!["t\u{200b}"; 1000]);
    card
}

/// Some that are none, some that are one, and too many.
fn skills() -> Value {
    let many = (0..500).map(|index| json!({"id": format!("s{}", index / 2), "name": "\u{2066}"}));
    [json!(7), json!({}), json!({"id": {}}), json!({"id": ""})].into_iter().chain(many).collect()
}

/// The first card is right. The later ones lead to another place.
fn moved(asked: &Asked) -> Answer {
    if asked.times == 0 { Answer::Usual } else { at(asked, &format!("http://127.0.0.1:{}/", asked.inner)) }
}
