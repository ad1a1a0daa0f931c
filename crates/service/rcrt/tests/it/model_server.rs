//! A server that speaks the protocols of OpenRouter, Venice and Ollama, with their streams. The
//! model that a request names says how the server behaves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// A request as the server received it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub authorization: Option<String>,
    pub body: String,
}

impl Seen {
    /// The model that the body names.
    fn model(&self) -> &str {
        let after = self.body.split_once("\"model\":\"").map_or("", |(_, after)| after);
        after.split('"').next().unwrap_or_default()
    }
}

#[derive(Clone)]
pub struct ModelServer {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Whether the answer of the model `drips` can go on.
    goes_on: Arc<(Mutex<bool>, Condvar)>,
}

impl ModelServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { address: listener.local_addr().unwrap(), seen: Arc::default(), goes_on: Arc::default() };
        let serving = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = serving.clone();
                // An error means that the client closed the connection.
                std::thread::spawn(move || drop(server.respond(stream)));
            }
        });
        server
    }

    /// The requests to this path that named this model.
    pub fn seen(&self, path: &str, model: &str) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.path == path && seen.model() == model).cloned().collect()
    }

    /// Lets the answer of the model `drips` end.
    pub fn go_on(&self) {
        *self.goes_on.0.lock().unwrap() = true;
        self.goes_on.1.notify_all();
    }

    fn respond(&self, stream: TcpStream) -> std::io::Result<()> {
        let request = read(&stream)?;
        self.seen.lock().unwrap().push(request.clone());
        let (attempt, mut reply) = (self.seen(&request.path, request.model()).len(), Reply { stream });
        match (request.path.as_str(), request.model()) {
            ("/api/tags", _) => reply.whole("200 OK", "", r#"{"models":[{"name":"fine:latest"}]}"#),
            (_, "absent") => reply.whole("404 Not Found", "", r#"{"error":"model 'absent' not found"}"#),
            (_, "forbidden") => reply.whole("401 Unauthorized", "", r#"{"error":{"message":"No such key"}}"#),
            // Twice, once with the time to wait and once without.
            (_, model) if model.starts_with("busy") && attempt == 1 => {
                reply.whole("429 Too Many Requests", "retry-after: 0\r\n", "slow down")
            }
            (_, model) if model.starts_with("busy") && attempt == 2 => reply.whole("503 Service Unavailable", "", "{}"),
            (_, model) if model.starts_with("full") => {
                reply.whole("429 Too Many Requests", "retry-after: 3600\r\n", r#"{"error":{"message":"Later"}}"#)
            }
            ("/api/chat", model) => chat(model, &mut reply),
            (_, model) => self.completion(model, &mut reply),
        }
    }

    /// OpenRouter and Venice: server-sent events.
    fn completion(&self, model: &str, reply: &mut Reply) -> std::io::Result<()> {
        let text = |text: &str| delta(model, &format!(r#"{{"content":"{text}"}}"#));
        let end = format!(r#"data: {{"model":"{model}","choices":[{{"delta":{{}},"finish_reason":"stop"}}]}}"#);
        reply.head("text/event-stream")?;
        match model {
            "tools" => {
                let call =
                    |index: u8, rest: &str| delta(model, &format!(r#"{{"tool_calls":[{{"index":{index},{rest}}}]}}"#));
                reply.send(&call(0, r#""id":"c1","function":{"name":"calculator","arguments":"{\"expression\":"}"#))?;
                reply.send(&call(1, r#""id":"c2","function":{"name":"echo","arguments":"{}"}"#))?;
                reply.send(&call(0, r#""function":{"arguments":"\"6 * 7\"}"}"#))?;
                reply.send(
                    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
                )?;
            }
            "drips" => {
                reply.send(&text("Once upon a time"))?;
                let (lock, woken) = &*self.goes_on;
                drop(woken.wait_while(lock.lock().unwrap(), |goes_on| !*goes_on).unwrap());
                reply.send(&format!("{}{end}\n\n", text(", the end.")))?;
            }
            // Without the end of the body.
            "cut" => return reply.send(&text("Hel")),
            // The body ends, and the answer does not.
            "unfinished" => reply.send(&text("Hel"))?,
            "silent" => return reply.stall(),
            "malformed" => reply.send("data: {not JSON}\n\n")?,
            "failing" => {
                reply.send(&format!("{}data: {{\"error\":{{\"code\":502,\"message\":\"Lost\"}}}}\n\n", text("Hel")))?;
            }
            "endless" => loop {
                reply.send(&text(&"x".repeat(10_000)))?;
            },
            _ => {
                let usage = r#"{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"cost":0.25}"#;
                let all = format!(
                    ": OPENROUTER PROCESSING\r\n\r\n{}{}{end}\r\n\r\ndata: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n",
                    text("Grüß"),
                    text(" dich")
                );
                // The pieces end within characters and lines.
                for piece in all.as_bytes().chunks(7) {
                    reply.send_bytes(piece)?;
                }
            }
        }
        reply.end()
    }
}

/// Ollama: one JSON object in each line.
fn chat(model: &str, reply: &mut Reply) -> std::io::Result<()> {
    let line = |message: &str| format!("{{\"model\":\"{model}\",\"message\":{message},\"done\":false}}\n");
    let text = |text: &str| line(&format!(r#"{{"role":"assistant","content":"{text}"}}"#));
    let end = format!(
        "{{\"model\":\"{model}\",\"message\":{{\"content\":\"\"}},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":5,\"eval_count\":2}}\n"
    );
    reply.head("application/x-ndjson")?;
    match model {
        "tools" => {
            let call = r#"{"content":"","tool_calls":[{"function":{"name":"calculator","arguments":{"expression":"6 * 7"}}}]}"#;
            reply.send(&format!("{}{end}", line(call)))?;
        }
        "cut" => return reply.send(&text("Hel")),
        "unfinished" => reply.send(&text("Hel"))?,
        "silent" => return reply.stall(),
        "malformed" => reply.send("[not JSON\n")?,
        "failing" => reply.send(&format!("{}{{\"error\":\"out of memory\"}}\n", text("Hel")))?,
        "endless" => loop {
            reply.send(&text(&"x".repeat(10_000)))?;
        },
        _ => {
            for piece in format!("{}{}{end}", text("Grüß"), text(" dich")).as_bytes().chunks(7) {
                reply.send_bytes(piece)?;
            }
        }
    }
    reply.end()
}

fn delta(model: &str, delta: &str) -> String {
    format!(
        "data: {{\"model\":\"{model}\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":null}}]}}\n\n"
    )
}

fn read(stream: &TcpStream) -> std::io::Result<Seen> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut authorization, mut length) = (String::new(), None, 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Seen { path, authorization, body: String::from_utf8(body).unwrap() })
}

/// A response on a connection that is closed after it.
struct Reply {
    stream: TcpStream,
}

impl Reply {
    fn whole(&mut self, status: &str, headers: &str, body: &str) -> std::io::Result<()> {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n"
        );
        self.stream.write_all(format!("{head}{body}").as_bytes())
    }

    /// Begins a body of chunks.
    fn head(&mut self, content_type: &str) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        );
        self.stream.write_all(head.as_bytes())
    }

    fn send(&mut self, text: &str) -> std::io::Result<()> {
        self.send_bytes(text.as_bytes())
    }

    fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.stream.write_all(&chunk)
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.stream.write_all(b"0\r\n\r\n")
    }

    /// Sends nothing more, until the client closes the connection.
    fn stall(&mut self) -> std::io::Result<()> {
        self.stream.read(&mut [0]).map(drop)
    }
}
