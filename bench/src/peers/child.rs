//! A process of a peer.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout, Command};

/// How long a peer can take to start.
pub const START: Duration = Duration::from_mins(1);
/// How long a peer can take to stop.
const END: Duration = Duration::from_secs(10);

/// A running process. Dropping it kills it.
pub struct Child {
    process: tokio::process::Child,
}

/// The lines of a process's stdout.
pub type Said = Lines<BufReader<ChildStdout>>;

/// The stdin and stdout of a process.
pub struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: Said,
}

impl Child {
    /// Starts a program. Its stderr goes to the file `log`.
    pub fn start(mut command: Command, log: &Path) -> anyhow::Result<(Self, Pipes)> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", command.as_std().get_program().display()))?;
        let stdin = process.stdin.take().context("no stdin")?;
        let stdout = BufReader::new(process.stdout.take().context("no stdout")?).lines();
        Ok((Self { process }, Pipes { stdin, stdout }))
    }

    /// Asks it to stop, and waits.
    pub async fn stop(mut self) {
        if let Some(id) = self.process.id() {
            // It can have exited already.
            let _ = kill(Pid::from_raw(id.cast_signed()), Signal::SIGTERM);
        }
        if tokio::time::timeout(END, self.process.wait()).await.is_err() {
            // Nothing more can be done about a process that cannot be killed.
            let _ = self.process.kill().await;
        }
    }
}

impl Pipes {
    /// The first line that is a JSON object with this key.
    pub async fn object_with(&mut self, key: &str, log: &Path) -> anyhow::Result<Value> {
        let found = tokio::time::timeout(START, async {
            while let Some(line) = self.stdout.next_line().await? {
                if let Ok(value) = serde_json::from_str::<Value>(&line)
                    && value.get(key).is_some()
                {
                    return anyhow::Ok(Some(value));
                }
            }
            Ok(None)
        });
        match found.await {
            Ok(Ok(Some(value))) => Ok(value),
            Ok(Ok(None)) => bail!("it did not start: {}", last_lines(log)),
            Ok(Err(error)) => Err(error),
            Err(_) => bail!("it did not start within {} s: {}", START.as_secs(), last_lines(log)),
        }
    }
}

/// The last lines that a process wrote, joined to one line.
pub fn last_lines(log: &Path) -> String {
    last_lines_of(&std::fs::read(log).unwrap_or_default())
}

/// The same for output that was read already.
pub fn last_lines_of(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let mut lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).rev().take(6).collect();
    lines.reverse();
    if lines.is_empty() { "it printed nothing".into() } else { lines.join(" | ") }
}
