//! The instance that is measured: the built `rcrt`, started as a process on a fresh data folder and
//! used only through its public API. Only the code that fills a store beforehand, and the
//! baselines, use its database directly.

mod calling;
mod cpu_time;
mod database;
mod idle;
mod memory;
mod programs;
mod seeding;
mod slow_server;
mod tools;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcrt_client::{Client, Credentials};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use url::Url;

pub use calling::{Answers, ToolCalls};
pub use cpu_time::CpuTime;
pub use database::Database;
pub use idle::wait_until_idle;
pub use memory::{page_table_bytes, proportional_bytes, tree, wake_ups};
pub use programs::{program, versions};
pub use seeding::{Filling, QUIET, fill};
pub use slow_server::SlowServer;
pub use tools::{Tool, adding};

/// A first start can download Postgres.
const PATIENCE: Duration = Duration::from_mins(5);
const END: Duration = Duration::from_secs(30);

/// A running `rcrt up`. If it is dropped instead of stopped, it is killed. Its Postgres then exits
/// by itself.
pub struct Instance {
    child: Child,
    pub api: Url,
    pub data: PathBuf,
    pub token: String,
    /// The JSON that it printed when it was ready.
    pub hello: Value,
    /// From the start of the process to the response of its own first call.
    pub took: Duration,
}

impl Instance {
    /// Starts `rcrt up` on the data folder `data`, without this process's settings, and waits for
    /// the response of its first call. Its log goes to `<data>.log`.
    pub async fn start(data: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let log_path = data.with_extension("log");
        let log = std::fs::File::options().create(true).append(true).open(&log_path)?;
        let begun = Instant::now();
        let mut child = rcrt()?
            .args(["up", "--listen", "127.0.0.1:0", "--output", "json"])
            // The bench measures the system, not its rate limits.
            .args(["--rate-limit-agent", "off", "--rate-limit-tenant", "off", "--data"])
            .arg(data)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("rcrt cannot be started")?;
        let stdout = child.stdout.take().context("rcrt has no output")?;
        let hello = tokio::time::timeout(PATIENCE, first_value(stdout)).await;
        let took = begun.elapsed();
        let hello = hello.ok().flatten();
        let Some(hello) = hello else {
            let log = std::fs::read_to_string(&log_path).unwrap_or_default();
            let last: Vec<_> = log.lines().rev().take(10).collect();
            bail!("rcrt up did not start: {}", last.into_iter().rev().collect::<Vec<_>>().join(" | "));
        };
        let api = hello["api"].as_str().context("rcrt up printed no address that it listens on")?;
        let api = Url::parse(&format!("{api}/"))?;
        let token = std::fs::read_to_string(data.join("token")).context("rcrt up wrote no token")?.trim().to_owned();
        Ok(Self { child, api, data: data.to_owned(), token, hello, took })
    }

    pub fn client(&self) -> Client {
        Client::new(self.api.clone(), Credentials::Token(self.token.clone()))
    }

    pub fn process_id(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Its database, without the public API.
    pub fn database(&self) -> Database {
        Database::of(&self.data)
    }

    /// Stops it as an operator would, and waits for it.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(id) = self.child.id() {
            kill(Pid::from_raw(id.cast_signed()), Signal::SIGTERM)?;
        }
        match tokio::time::timeout(END, self.child.wait()).await {
            Ok(status) => {
                let status = status?;
                if !status.success() {
                    bail!("rcrt up exited with {status}");
                }
                Ok(())
            }
            Err(_) => bail!("rcrt up did not exit within {} s", END.as_secs()),
        }
    }
}

/// The program, without this process's settings except the cache.
pub fn rcrt() -> anyhow::Result<Command> {
    let mut command = Command::new(program("rcrt")?);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("RCRT_") && text != "RCRT_CACHE" || text == "DATABASE_URL" {
            command.env_remove(&name);
        }
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

/// Reads the first JSON value, which can have many lines.
async fn first_value(mut from: impl AsyncRead + Unpin) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        if from.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let mut values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::first_value;

    #[tokio::test]
    async fn the_first_value_is_read_from_any_pieces() {
        let text = "{\n  \"api\": \"http://127.0.0.1:1\"\n}\nmore";
        let (mut there, here) = tokio::io::duplex(3);
        let telling =
            tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut there, text.as_bytes()).await });
        assert_eq!(first_value(here).await.unwrap()["api"], "http://127.0.0.1:1");
        // The stream closes before the value is complete.
        let _ = telling.await.unwrap();
        assert!(first_value(&b"{\"api\": "[..]).await.is_none());
    }
}
