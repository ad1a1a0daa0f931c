//! Runs the program.

use std::io::{BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// The program with a clean environment, and without embeddings, which would use a processor for
/// each server.
pub fn rcrt() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rcrt"));
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("RCRT_") && name != "RCRT_CACHE" || name == "DATABASE_URL" {
            command.env_remove(name);
        }
    }
    command.env("RCRT_EMBEDDINGS", "off").stdin(Stdio::null());
    command
}

/// The result of a command.
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub fn ends_with(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

/// Runs the program in an empty folder and waits for it.
pub fn run(arguments: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    Ran::of(rcrt().args(arguments).current_dir(&folder).output().unwrap())
}

/// `up`, `server` or `runner`, running.
pub struct Running {
    child: Child,
    /// The first JSON value on stdout; null for a runner.
    pub hello: Value,
    stderr: Option<JoinHandle<String>>,
    pub data: PathBuf,
}

impl Running {
    /// Starts `rcrt <arguments>` on the data folder and waits until it is ready.
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        rcrt_test_database::put_cluster_for(arguments, data);
        let mut child = rcrt()
            .args(arguments)
            .args(["--output", "json", "--data"])
            .arg(data)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = watch(&mut child);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut values = serde_json::Deserializer::from_reader(stdout).into_iter::<Value>();
        let hello = values.next();
        let Some(Ok(hello)) = hello else {
            let _ = child.kill();
            let status = child.wait();
            panic!("rcrt {arguments:?} did not come up: {status:?}\n{}", stderr.join().unwrap());
        };
        Self { child, hello, stderr: Some(stderr), data: data.to_owned() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn api(&self) -> &str {
        self.hello["api"].as_str().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        self.api().strip_prefix("http://").unwrap().parse().unwrap()
    }

    /// A command for this server.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = rcrt();
        command.args(arguments).arg("--data").arg(&self.data).current_dir(self.data.parent().unwrap());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// As `run`, by the agent that `rcrt token --agent` created.
    pub fn run_as(&self, agent: &Value, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        command.env("RCRT_OWNER_ID", agent["owner_id"].as_str().unwrap());
        command.env("RCRT_AGENT_ID", agent["id"].as_str().unwrap());
        command.env("RCRT_AGENT_KEY", agent["agent_key"].as_str().unwrap());
        Ran::of(command.output().unwrap())
    }

    /// The JSON that a command prints, which must succeed.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--output", "json"]);
        self.run(&arguments).ends_with(0).json()
    }

    /// Posts JSON with the token of the data folder, and returns the response's JSON.
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let token = std::fs::read_to_string(self.data.join("token")).unwrap();
        let request = reqwest::Client::new().post(format!("{}{path}", self.api())).bearer_auth(token.trim()).json(body);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { request.send().await.unwrap().json().await.unwrap() })
    }

    pub fn run_with_stdin(&self, arguments: &[&str], stdin: &str) -> Ran {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Sends SIGTERM and waits. Returns the status and all of stderr.
    pub fn stop(self) -> (ExitStatus, String) {
        self.end_by(Signal::SIGTERM)
    }

    /// Sends this signal and waits, as [`Self::stop`].
    pub fn end_by(self, signal: Signal) -> (ExitStatus, String) {
        self.signal(signal);
        self.ends()
    }

    /// Waits for the end after a signal. A second signal would end it at once.
    pub fn ends(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        (status, self.stderr.take().unwrap().join().unwrap())
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.stderr.is_some() {
            // The test failed: an orderly shutdown also stops Postgres.
            self.signal(Signal::SIGTERM);
            let _ = self.child.wait();
            if let Some(stderr) = self.stderr.take() {
                eprintln!("--- stderr of rcrt:\n{}", stderr.join().unwrap_or_default());
            }
        }
    }
}

/// Reads stderr, so that the program never blocks on its pipe.
fn watch(child: &mut Child) -> JoinHandle<String> {
    let mut stderr = child.stderr.take().unwrap();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
