//! One connection, in the text protocol of NATS. Only what it asked for arrives: replies to an
//! inbox, and the pings of the server.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter, ReadHalf, WriteHalf,
};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use uuid::Uuid;

use crate::message::header_text;
use crate::{Address, Message, NatsError};

const CONNECT_TIME: Duration = Duration::from_secs(5);
const REPLY_TIME: Duration = Duration::from_secs(10);
/// The longest line that is read. The first one describes the server.
const MAX_LINE: usize = 256 * 1024;
/// The largest reply that is read: above the largest message of a server.
const MAX_REPLY: usize = 128 * 1024 * 1024;
/// The status of a reply when the subject has no subscriber.
const NO_RESPONDERS: &str = "503";

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A connection to a server. Drop it after an error, and if one of its futures was dropped.
pub struct Connection {
    reader: BufReader<ReadHalf<Box<dyn Wire>>>,
    writer: BufWriter<WriteHalf<Box<dyn Wire>>>,
    inbox: String,
    /// How many messages with a reply were sent.
    sent: u64,
    max_payload: usize,
}

/// What a server says first.
#[derive(Deserialize)]
struct Info {
    max_payload: usize,
    #[serde(default)]
    tls_required: bool,
    #[serde(default)]
    headers: bool,
}

/// A message to the inbox.
struct Reply {
    subject: String,
    has_responders: bool,
    payload: Vec<u8>,
}

impl Connection {
    pub async fn connect(address: &Address) -> Result<Self, NatsError> {
        timeout(CONNECT_TIME, Self::open(address)).await.map_err(|_| NatsError::Silent)?
    }

    async fn open(address: &Address) -> Result<Self, NatsError> {
        let mut stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        stream.set_nodelay(true)?;
        let line = first_line(&mut stream).await?;
        let info = line.strip_prefix("INFO ").and_then(|text| serde_json::from_str::<Info>(text).ok());
        let info = info.filter(|info| info.headers).ok_or(NatsError::NotNats)?;
        let is_tls = address.is_tls || info.tls_required;
        let stream: Box<dyn Wire> =
            if is_tls { Box::new(secure(stream, &address.host).await?) } else { Box::new(stream) };
        let (reader, writer) = tokio::io::split(stream);
        let mut connection = Self {
            reader: BufReader::new(reader),
            writer: BufWriter::new(writer),
            inbox: format!("_INBOX.{}", Uuid::new_v4().simple()),
            sent: 0,
            max_payload: info.max_payload,
        };
        let mut hello = json!({
            "verbose": false, "pedantic": false, "headers": true, "no_responders": true, "tls_required": is_tls,
            "lang": "rust", "name": "rcrt", "version": env!("CARGO_PKG_VERSION"),
        });
        if let Some(fields) = hello.as_object_mut() {
            fields.extend(address.credentials.clone());
        }
        let begin = format!("CONNECT {hello}\r\nSUB {}.* 1\r\nPING\r\n", connection.inbox);
        connection.writer.write_all(begin.as_bytes()).await?;
        connection.writer.flush().await?;
        // The answer to the ping says that everything before was accepted.
        while connection.next().await?.is_some() {}
        Ok(connection)
    }

    /// The bytes of headers and payload that the server takes.
    pub fn max_payload(&self) -> usize {
        self.max_payload
    }

    /// Publishes to JetStream, and returns when all are stored.
    pub async fn publish(&mut self, messages: &[Message]) -> Result<(), NatsError> {
        let first = self.sent;
        for message in messages {
            self.send(message).await?;
        }
        self.writer.flush().await?;
        let mut waiting = messages.len();
        while waiting > 0 {
            let reply = self.reply_after(first).await.map_err(|error| match error {
                NatsError::NoJetStream => NatsError::NotStored { reason: "it does not take rcrt.>".into() },
                error => error,
            })?;
            if let Some(reason) = error_of(&reply) {
                return Err(NatsError::NotStored { reason });
            }
            waiting -= 1;
        }
        Ok(())
    }

    /// Asks an API of JetStream.
    pub async fn request(&mut self, subject: &str, payload: &Value) -> Result<Value, NatsError> {
        let first = self.sent;
        let payload = if payload.is_null() { Vec::new() } else { payload.to_string().into_bytes() };
        self.send(&Message { subject: subject.to_owned(), headers: Vec::new(), payload }).await?;
        self.writer.flush().await?;
        self.reply_after(first).await
    }

    async fn send(&mut self, message: &Message) -> Result<(), NatsError> {
        let Message { subject, headers, payload } = message;
        let (inbox, number) = (&self.inbox, self.sent);
        let head = if headers.is_empty() {
            format!("PUB {subject} {inbox}.{number} {}\r\n", payload.len())
        } else {
            let headers = header_text(headers);
            format!("HPUB {subject} {inbox}.{number} {} {}\r\n{headers}", headers.len(), headers.len() + payload.len())
        };
        self.writer.write_all(head.as_bytes()).await?;
        self.writer.write_all(payload).await?;
        self.writer.write_all(b"\r\n").await?;
        self.sent += 1;
        Ok(())
    }

    /// The next reply to a message from this one on, as JSON.
    async fn reply_after(&mut self, first: u64) -> Result<Value, NatsError> {
        loop {
            let reply = timeout(REPLY_TIME, self.next()).await.map_err(|_| NatsError::Silent)??;
            let Some(Reply { subject, has_responders, payload }) = reply else { continue };
            let number = subject.rsplit('.').next().and_then(|number| number.parse::<u64>().ok());
            if number.is_none_or(|number| number < first) {
                continue;
            }
            if !has_responders {
                return Err(NatsError::NoJetStream);
            }
            return serde_json::from_slice(&payload).map_err(|_| NatsError::NotNats);
        }
    }

    /// The next message to the inbox. `None`: the answer to a ping.
    async fn next(&mut self) -> Result<Option<Reply>, NatsError> {
        loop {
            let line = self.line().await?;
            let (verb, rest) = line.split_once(' ').unwrap_or((line.as_str(), ""));
            match verb {
                "PING" => {
                    self.writer.write_all(b"PONG\r\n").await?;
                    self.writer.flush().await?;
                }
                "PONG" => return Ok(None),
                "INFO" | "+OK" => {}
                "-ERR" => return Err(NatsError::Refused { reason: rest.trim_matches('\'').to_owned() }),
                "MSG" | "HMSG" => {
                    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
                    let has_headers = verb == "HMSG";
                    return self.body(&fields, has_headers).await.map(Some);
                }
                _ => return Err(NatsError::NotNats),
            }
        }
    }

    /// The rest of a message: `fields` are its subject, subscription, optional reply, the bytes of
    /// the headers if it has some, and the bytes in all.
    async fn body(&mut self, fields: &[&str], has_headers: bool) -> Result<Reply, NatsError> {
        let number = |at_end: usize| {
            let index = fields.len().checked_sub(at_end)?;
            fields.get(index)?.parse::<usize>().ok().filter(|bytes| *bytes <= MAX_REPLY)
        };
        let (Some(subject), Some(total)) = (fields.first(), number(1)) else { return Err(NatsError::NotNats) };
        let head = if has_headers { number(2).ok_or(NatsError::NotNats)? } else { 0 };
        let mut payload = vec![0; total];
        self.reader.read_exact(&mut payload).await?;
        let mut end = [0; 2];
        self.reader.read_exact(&mut end).await?;
        if head > total || end != *b"\r\n" {
            return Err(NatsError::NotNats);
        }
        let headers = String::from_utf8_lossy(&payload[..head]).into_owned();
        let status = headers.lines().next().and_then(|line| line.split_ascii_whitespace().nth(1));
        let has_responders = status != Some(NO_RESPONDERS);
        payload.drain(..head);
        Ok(Reply { subject: (*subject).to_owned(), has_responders, payload })
    }

    async fn line(&mut self) -> Result<String, NatsError> {
        let mut line = Vec::new();
        let read = (&mut self.reader).take(MAX_LINE as u64).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Err(closed().into());
        }
        text(line)
    }
}

/// The error in a reply of JetStream.
pub(crate) fn error_of(reply: &Value) -> Option<String> {
    let error = reply.get("error")?;
    Some(error["description"].as_str().map_or_else(|| error.to_string(), str::to_owned))
}

/// Byte by byte: what comes after it may be encrypted.
async fn first_line(stream: &mut TcpStream) -> Result<String, NatsError> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        line.push(stream.read_u8().await?);
        if line.len() > MAX_LINE {
            return Err(NatsError::NotNats);
        }
    }
    text(line)
}

fn text(line: Vec<u8>) -> Result<String, NatsError> {
    let line = String::from_utf8(line).map_err(|_| NatsError::NotNats)?;
    // Without its end it was too long, or cut off.
    line.strip_suffix("\r\n").map(str::to_owned).ok_or(NatsError::NotNats)
}

fn closed() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "it closed the connection")
}

async fn secure(stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, NatsError> {
    let failed = |error: rustls::Error| NatsError::Connection(std::io::Error::other(error));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone()).map_err(failed)?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| NatsError::Address)?;
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}
