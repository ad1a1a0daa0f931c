//! An HTTP server on loopback whose responses a test computes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::Value;

/// Starts a server that answers each request with what `answer` makes of the server's address, the
/// request's head, and its body if that is JSON. Without an answer, the response is 202.
pub fn start(answer: impl Fn(SocketAddr, &str, Option<Value>) -> Option<Value> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // An error means that the client closed the connection.
            std::thread::spawn(move || serve(stream, |head, body| answer(address, head, body)));
        }
    });
    address
}

fn serve(stream: TcpStream, answer: impl Fn(&str, Option<Value>) -> Option<Value>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let (mut length, mut head, mut line) = (0, String::new(), String::new());
        while reader.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head += &line;
            line.clear();
        }
        if head.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let answer = answer(&head, serde_json::from_slice(&body).ok()).map(|answer| answer.to_string());
        let (status, text) = answer.as_deref().map_or(("202 Accepted", ""), |text| ("200 OK", text));
        write!(
            writer,
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
            text.len()
        )?;
    }
}
