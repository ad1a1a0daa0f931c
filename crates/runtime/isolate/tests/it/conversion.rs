//! An http tool and the code made from it send the same requests and return the same, over many
//! generated definitions and inputs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rcrt_breadcrumb::{HostEntry, ToolDefinition};
use rcrt_egress::{Egress, EgressOptions, HeldSecret, Vault};
use rcrt_examples::{ExampleReport, ExampleRunner, ExampleStatus};
use rcrt_executors::rest::convert;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{block_on, start};

const CASES: u64 = 250;

/// A server that records each request, without the order of its headers, and answers as the number
/// in the path says.
struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Status line, content type and body, by the number in the path.
const REPLIES: [(&str, &str, &[u8]); 17] = [
    ("200 OK", "application/json", b"{\"a\":[1,2.5,\"x\",null,{\"b\":true}]}"),
    ("200 OK", "application/problem+json; charset=utf-8", b"{}"),
    ("200 OK", "text/plain", "plain \u{fc}".as_bytes()),
    ("200 OK", "text/plain", b"\xef\xbb\xbfmark \xff\xfe and \xe2\x82"),
    ("204 No Content", "text/plain", b""),
    ("200 OK", "application/json", b""),
    ("200 OK", "application/json", b"{oops"),
    ("200 OK", "application/json", b"\"\xff\""),
    ("200 OK", "application/json", b"\xef\xbb\xbf{}"),
    ("201 Created", "APPLICATION/JSON", b"[1]"),
    ("200 OK", "application/json", b"{\"__proto__\":{\"a\":1},\"b\":1,\"a\":2,\"a\":3}"),
    ("200 OK", "application/json", b"1.23456789012345678"),
    ("404 Not Found", "text/plain", b"nothing\0 here"),
    ("503 Service Unavailable", "application/json", b"{\"error\":\"busy\"}"),
    ("302 Found", "text/plain", b""),
    ("307 Temporary Redirect", "text/plain", b""),
    ("200 OK", "", b"no type"),
];

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let recorded = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let recorded = recorded.clone();
                std::thread::spawn(move || answer(stream, &recorded, port));
            }
        });
        Self { port, seen }
    }
}

fn answer(mut stream: TcpStream, seen: &Mutex<Vec<String>>, port: u16) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let first = lines.remove(0);
    lines.sort_unstable();
    seen.lock().unwrap().push(format!("{first}\n{}\n\n{}", lines.join("\n"), String::from_utf8_lossy(&body)));
    let path = first.split(' ').nth(1).unwrap();
    let number: usize = path.trim_start_matches('/').split(['/', '?']).next().unwrap().parse().unwrap_or(0);
    let (status, kind, body) = REPLIES[number];
    let location = match number {
        14 => format!("location: http://127.0.0.1:{port}/0/moved\r\n"),
        15 => format!("location: http://elsewhere.test:{port}/0\r\n"),
        _ => String::new(),
    };
    let kind = if kind.is_empty() { String::new() } else { format!("content-type: {kind}\r\n") };
    let length = if number == 4 { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    write!(stream, "HTTP/1.1 {status}\r\n{kind}{location}{length}connection: close\r\n\r\n").ok()?;
    let body = if first.starts_with("HEAD") { b"" } else { body };
    stream.write_all(body).ok()
}

/// Choices that are the same in each run of the test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn is_so(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A value that can be part of a URL.
    fn simple(&mut self) -> Value {
        self.one(&[
            json!("a/b?c#d"),
            json!(""),
            json!("\u{fc}\u{2603}\u{1f600}"),
            json!("x&y=z +1"),
            json!("%2F%"),
            json!("!'()*~-._"),
            json!("<>\"`{}|\\^[]@:$,;"),
            json!("line\r\n\ttab\u{0}\u{7f}\u{2028}"),
            json!("."),
            json!(".."),
            json!(0),
            json!(-42),
            json!(2.5),
            json!(9_007_199_254_740_991_u64),
            json!(true),
            json!(false),
        ])
    }

    fn value(&mut self) -> Value {
        match self.below(5) {
            0 => json!([self.simple(), null, {"k": self.simple()}, [1]]),
            1 => json!({"deep": self.simple(), "list": [self.simple()]}),
            2 => Value::Null,
            3 => json!([]),
            _ => self.simple(),
        }
    }

    fn headers(&mut self) -> Value {
        let mut headers = Map::new();
        for (name, value) in [
            ("X-Extra", "yes `${1}` \"q\" \\"),
            ("Accept", "text/plain"),
            ("content-type", "application/merge-patch+json"),
            ("x-empty", ""),
            ("Accept-Encoding", "br"),
        ] {
            if self.below(4) == 0 {
                headers.insert(name.to_owned(), value.into());
            }
        }
        Value::Object(headers)
    }
}

/// The context of an http tool with one example, whose secret is granted.
fn http_tool(dice: &mut Dice, port: u16) -> Value {
    let paths = [
        "",
        "/users/{id}",
        "/{a}/x/{b-c}.json",
        "/p%20q/{id}/",
        "?fixed=a%20b'&x",
        "/?q={q}&q2={id}",
        "/x?",
        "?a=1&",
        "/`$\\'\"/{id}",
        "/{a}-{id}/z",
        "/\u{fc}/{q}?\u{fc}={id}",
        "//{id}//",
    ];
    let (reply, path) = (dice.below(REPLIES.len()), dice.one(&paths));
    let mut input = Map::new();
    for name in ["id", "a", "b-c", "q"] {
        // Sometimes one that the URL needs is missing.
        if path.contains(&format!("{{{name}}}")) && dice.below(30) > 0 {
            input.insert(name.to_owned(), dice.simple());
        }
    }
    for name in ["n", "other name", "__proto__", "\u{fc}&="] {
        if dice.is_so() {
            input.insert(name.to_owned(), dice.value());
        }
    }
    let mut implementation = json!({
        "type": dice.one(&["http", "rest"]),
        "url": format!("http://127.0.0.1:{port}/{reply}{path}"),
        "method": dice.one(&["", "GET", "get", "HEAD", "POST", "Put", "PATCH", "DELETE"]),
        "headers": dice.headers(),
    });
    let auth = [
        Value::Null,
        json!({"type": "bearer", "secret": "KEY"}),
        json!({"type": "api_key", "secret": "KEY"}),
        json!({"type": "api_key", "secret": "KEY", "header": "x-other-key"}),
    ];
    implementation["auth"] = dice.one(&auth);
    json!({
        "name": "tried",
        "description": "d",
        "definition": {"examples": [{"description": "one", "input": input}]},
        "implementation": implementation,
        "required_secrets": ["KEY"],
    })
}

struct Compared {
    runner: ExampleRunner,
    server: Server,
}

impl Compared {
    fn new() -> Self {
        let server = Server::start();
        let runner = block_on(async {
            let allowed_private = vec![format!("127.0.0.1:{}", server.port).parse().unwrap()];
            let egress = Arc::new(Egress::new(EgressOptions { allowed_private, ..EgressOptions::default() }).unwrap());
            ExampleRunner::new(Arc::new(start(|_| {}).await), egress)
        });
        Self { runner, server }
    }

    /// Runs both tools with the example on the server.
    fn run(&self, context: &Value, readable: bool) -> ExampleReport {
        let context = context.as_object().unwrap();
        let legacy = ToolDefinition::read("tool.v1", context, None, None).unwrap();
        let converted = convert(context, None).unwrap_or_else(|problems| panic!("{problems}: {context:?}"));
        let mut code = converted.context;
        code.insert("code".into(), json!({"language": "typescript", "source": converted.source}));
        let code = Arc::new(ToolDefinition::read("tool.code.v1", &code, None, None).unwrap());
        let hosts = vec![HostEntry::parse(&format!("127.0.0.1:{}", self.server.port)).unwrap()];
        let held = HeldSecret { name: "KEY".into(), value: "hunter2-hunter2".into(), hosts, readable };
        let vault = Vault::new(vec![held]).unwrap();
        self.server.seen.lock().unwrap().clear();
        block_on(self.runner.compare(&legacy, &code, Some(vault), &CancellationToken::new()))
            .unwrap_or_else(|failure| panic!("{failure}: {context:?}"))
            .remove(0)
    }
}

#[test]
fn code_does_what_its_http_tool_did() {
    let (compared, mut dice) = (Compared::new(), Dice(0x9e37_79b9_7f4a_7c15));
    let (mut sent, mut failed) = (0, 0);
    for case in 0..CASES {
        let tool = http_tool(&mut dice, compared.server.port);
        let readable = dice.is_so();
        let report = compared.run(&tool, readable);
        assert_eq!(report.status, ExampleStatus::Passed, "case {case}: {tool:#}\n{report:#?}");
        let seen = compared.server.seen.lock().unwrap().clone();
        let (legacy, code) = seen.split_at(seen.len() / 2);
        assert_eq!(legacy, code, "case {case}: {tool:#}");
        sent += usize::from(!seen.is_empty());
        failed += usize::from(report.actual.unwrap().get("error").is_some());
    }
    // Most cases reach the server, and some fail: else the test compares nothing.
    assert!(sent > CASES as usize * 3 / 4 && failed > 20 && failed < sent, "{sent} {failed}");
}

/// A result that code cannot hold is not returned as another one.
#[test]
fn an_integer_that_javascript_rounds_is_a_failure() {
    let compared = Compared::new();
    let tool = |body: &str| {
        let context = json!({
            "name": "tried",
            "description": "d",
            "definition": {"examples": [{"description": "one", "input": {}, "http": [{
                "request": {"url": "https://api.test/"},
                "response": {"headers": {"content-type": "application/json"}, "body": body},
            }]}]},
            "implementation": {"type": "http", "url": "https://api.test/"},
        });
        let legacy = ToolDefinition::read("tool.v1", context.as_object().unwrap(), None, None).unwrap();
        let converted = convert(context.as_object().unwrap(), None).unwrap();
        let mut code = converted.context;
        code.insert("code".into(), json!({"language": "typescript", "source": converted.source}));
        let code = Arc::new(ToolDefinition::read("tool.code.v1", &code, None, None).unwrap());
        block_on(compared.runner.compare(&legacy, &code, None, &CancellationToken::new())).unwrap().remove(0)
    };
    assert!(tool("[9007199254740991, 1e300]").passed);
    let report = tool("[9007199254740993]");
    assert_eq!(report.status, ExampleStatus::Failed);
    assert_eq!(report.actual.unwrap()["error"], "ExecutionFailed");
    assert!(report.differences.iter().any(|one| one.path == "$.output"), "{:?}", report.differences);
}
