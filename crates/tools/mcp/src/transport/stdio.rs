//! A server that is a program in the jail: one JSON message per line.

use std::io;
use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;
use rcrt_egress::Vault;
use rcrt_jail::command::{Captured, LiveProgram};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::task::AbortOnDropHandle;

use super::RawLists;

/// The longest message, in bytes.
const MAX_LINE: usize = 10 * 1024 * 1024;
/// Messages that wait to be written.
const QUEUE: usize = 64;
/// How much of standard error is kept, for messages.
const STDERR_BYTES: usize = 8 * 1024;
/// The most lines that are not messages. Then the server is given up. Some programs print a banner.
const MAX_GARBAGE: usize = 100;

/// The first and the last bytes that the program wrote to standard error.
#[derive(Debug, Clone)]
pub struct StderrTail(Arc<Mutex<Captured>>);

impl StderrTail {
    /// Without the secrets of the vault.
    pub fn text(&self, vault: &Vault) -> String {
        let text = self.0.lock().text();
        crate::text::redacted(text.trim(), 2000, vault)
    }
}

pub struct StdioTransport {
    lines: FramedRead<ChildStdout, LinesCodec>,
    garbage: usize,
    lists: RawLists,
    writes: Option<mpsc::Sender<Vec<u8>>>,
    /// Write to the program and read its standard error, until the transport is dropped.
    _pumps: [AbortOnDropHandle<()>; 2],
    /// Owns the program, which is killed with its descendants when this is dropped.
    program: Option<AbortOnDropHandle<()>>,
}

impl StdioTransport {
    pub fn new(program: LiveProgram, lists: RawLists) -> (Self, StderrTail) {
        let LiveProgram { stdin, stdout, stderr, mut process } = program;
        let kept = StderrTail(Arc::new(Mutex::new(Captured::at_most(STDERR_BYTES))));
        let (writes, queued) = mpsc::channel(QUEUE);
        let pumps = [
            AbortOnDropHandle::new(tokio::spawn(write_all(stdin, queued))),
            AbortOnDropHandle::new(tokio::spawn(read_stderr(stderr, kept.clone()))),
        ];
        let held = AbortOnDropHandle::new(tokio::spawn(async move {
            if let Some(reason) = process.ended().await {
                tracing::debug!(?reason, "the program of an MCP server ended");
            }
        }));
        let lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(MAX_LINE));
        let transport = Self { lines, garbage: 0, lists, writes: Some(writes), _pumps: pumps, program: Some(held) };
        (transport, kept)
    }
}

async fn write_all(mut stdin: ChildStdin, mut queued: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queued.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read_stderr(mut stderr: ChildStderr, kept: StderrTail) {
    let mut buffer = vec![0; 4096];
    while let Ok(length) = stderr.read(&mut buffer).await
        && length > 0
    {
        kept.0.lock().add(&buffer[..length]);
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let line = serde_json::to_vec(&item);
        let writes = self.writes.clone();
        async move {
            let mut line = line.map_err(io::Error::other)?;
            line.push(b'\n');
            let closed = || io::Error::new(io::ErrorKind::BrokenPipe, "the server's program has ended");
            writes.ok_or_else(closed)?.send(line).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = match self.lines.next().await? {
                Ok(line) => line,
                Err(LinesCodecError::MaxLineLengthExceeded) => {
                    tracing::warn!(max_bytes = MAX_LINE, "an MCP server sent a message that is too long; it is closed");
                    return None;
                }
                Err(LinesCodecError::Io(error)) => {
                    tracing::debug!(%error, "an MCP server cannot be read");
                    return None;
                }
            };
            if line.trim().is_empty() {
                continue;
            }
            match self.lists.read(line.as_bytes()) {
                Ok(message) => return Some(message),
                Err(error) => {
                    self.garbage += 1;
                    tracing::debug!(%error, "an MCP server wrote a line that is not a message");
                    if self.garbage > MAX_GARBAGE {
                        tracing::warn!("an MCP server writes lines that are not messages; it is closed");
                        return None;
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.writes = None;
        self.program = None;
        Ok(())
    }
}
