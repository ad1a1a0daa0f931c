//! A server that is a program in the jail: one JSON message per line.

use std::io;
use std::sync::{Arc, OnceLock};

use futures::StreamExt;
use parking_lot::Mutex;
use rcrt_breadcrumb::OpError;
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

/// What is known of a program after its end.
#[derive(Debug, Clone)]
pub struct ProgramLog(Arc<Known>);

#[derive(Debug)]
struct Known {
    /// The first and the last bytes of its standard error.
    stderr: Mutex<Captured>,
    /// Why it was stopped, if it did not end by itself.
    stopped: OnceLock<OpError>,
}

impl ProgramLog {
    /// What it wrote to its standard error, without the secrets of the vault.
    pub fn stderr(&self, vault: &Vault) -> String {
        let text = self.0.stderr.lock().text();
        crate::text::redacted(text.trim(), 2000, vault)
    }

    /// Why it was stopped, because of what it sent.
    pub fn stopped(&self) -> Option<OpError> {
        self.0.stopped.get().cloned()
    }
}

pub struct StdioTransport {
    lines: FramedRead<ChildStdout, LinesCodec>,
    garbage: usize,
    lists: RawLists,
    log: ProgramLog,
    writes: Option<mpsc::Sender<Vec<u8>>>,
    /// Write to the program and read its standard error, until the transport is dropped.
    _pumps: [AbortOnDropHandle<()>; 2],
    /// Owns the program, which is killed with its descendants when this is dropped.
    program: Option<AbortOnDropHandle<()>>,
}

impl StdioTransport {
    pub fn new(program: LiveProgram, lists: RawLists) -> (Self, ProgramLog) {
        let LiveProgram { stdin, stdout, stderr, mut process } = program;
        let stderr_log = Mutex::new(Captured::at_most(STDERR_BYTES));
        let log = ProgramLog(Arc::new(Known { stderr: stderr_log, stopped: OnceLock::new() }));
        let (writes, queued) = mpsc::channel(QUEUE);
        let pumps = [
            AbortOnDropHandle::new(tokio::spawn(write_all(stdin, queued))),
            AbortOnDropHandle::new(tokio::spawn(read_stderr(stderr, log.clone()))),
        ];
        let held = AbortOnDropHandle::new(tokio::spawn(async move {
            if let Some(reason) = process.ended().await {
                tracing::debug!(?reason, "the program of an MCP server ended");
            }
        }));
        let lines = FramedRead::new(stdout, LinesCodec::new_with_max_length(MAX_LINE));
        let (writes, program) = (Some(writes), Some(held));
        let transport = Self { lines, garbage: 0, lists, log: log.clone(), writes, _pumps: pumps, program };
        (transport, log)
    }

    /// The end of a server that does not keep to the protocol.
    fn stop(&self, code: &str, why: String) {
        tracing::warn!(why, "the program of an MCP server is stopped");
        // Nothing was set before: it ends now.
        let _ = self.log.0.stopped.set(OpError::new(code, why));
    }
}

async fn write_all(mut stdin: ChildStdin, mut queued: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queued.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read_stderr(mut stderr: ChildStderr, log: ProgramLog) {
    let mut buffer = vec![0; 4096];
    while let Ok(length) = stderr.read(&mut buffer).await
        && length > 0
    {
        log.0.stderr.lock().add(&buffer[..length]);
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
                    let why = format!(
                        "its program sent a message of more than {} MB, the most that is accepted, and was stopped; ask \
                         for less in one call",
                        MAX_LINE >> 20
                    );
                    self.stop("ResourceExhausted", why);
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
                        let why = format!(
                            "its program wrote more than {MAX_GARBAGE} lines that are not messages, and was stopped; \
                             standard output is for messages only"
                        );
                        self.stop("TypeError", why);
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
