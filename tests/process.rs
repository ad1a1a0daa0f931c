//! `rcrt` processes as an operator starts them, each with its own data folder.

use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rcrt_client::{Client, Credentials};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use url::Url;

/// The longest wait for a signal before the test fails.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A process that is killed (SIGKILL) when it goes out of scope.
pub struct Rcrt {
    child: Child,
    /// Finishes when the last process that holds the other end exits.
    reader: JoinHandle<()>,
}

impl Rcrt {
    /// Sends SIGKILL and waits until the process is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Sends SIGTERM and waits for the exit code.
    pub async fn stop(mut self) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("stops on SIGTERM");
        tokio::time::timeout(PATIENCE, &mut self.reader).await.expect("leaves no process behind").unwrap();
        ended.unwrap().code()
    }
}

impl Drop for Rcrt {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// A data folder and an address that outlive their processes, and the output of these processes.
pub struct Installation {
    pub data: TempDir,
    pub listen: SocketAddr,
    said: watch::Sender<String>,
    servers: AtomicUsize,
}

impl Installation {
    pub fn new() -> Self {
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self {
            data: tempfile::tempdir().unwrap(),
            listen,
            said: watch::Sender::default(),
            servers: AtomicUsize::default(),
        }
    }

    /// A new installation where `rcrt up` runs and its runner is ready, with a client that has the
    /// first token.
    pub async fn up() -> (Self, Rcrt, Arc<Client>) {
        let installation = Self::new();
        let up = installation.start(&["up", "--listen", &installation.listen.to_string()]);
        let client = installation.client().await;
        installation.ready().await;
        (installation, up, client)
    }

    pub fn start(&self, arguments: &[&str]) -> Rcrt {
        self.start_with(arguments, &[])
    }

    /// Like `start`, with further environment variables.
    pub fn start_with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Rcrt {
        rcrt_test_database::put_cluster_for(arguments, self.data.path());
        if matches!(arguments[0], "server" | "up") {
            self.servers.fetch_add(1, Ordering::Relaxed);
        }
        let (output, input) = std::io::pipe().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_rcrt"))
            .args(arguments)
            .env_remove("DATABASE_URL")
            .env("RCRT_DATA", self.data.path())
            .env("RCRT_LOG", "info")
            // They would use a processor for each server.
            .env("RCRT_EMBEDDINGS", "off")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(input.try_clone().unwrap())
            .stderr(input)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(Receiver::from_owned_fd(output.into()).unwrap()).lines();
        let said = self.said.clone();
        let reader = tokio::spawn(async move {
            while let Some(line) = lines.next_line().await.unwrap() {
                said.send_modify(|text| text.extend([&line, "\n"]));
            }
        });
        Rcrt { child, reader }
    }

    pub fn url(&self) -> Url {
        format!("http://{}", self.listen).parse().unwrap()
    }

    /// Waits until the server that was started last listens. Returns a client with the first token.
    pub async fn client(&self) -> Arc<Client> {
        self.said("the server is listening", self.servers.load(Ordering::Relaxed)).await;
        let token = std::fs::read_to_string(self.data.path().join("token")).unwrap().trim().to_owned();
        Arc::new(Client::new(self.url(), Credentials::Token(token)))
    }

    /// Waits until a runner has logged that it is ready.
    pub async fn ready(&self) {
        self.ready_again(1).await;
    }

    /// Waits until runners have logged this `times` times, over all starts on this folder.
    pub async fn ready_again(&self, times: usize) {
        self.said("the runner is ready", times).await;
    }

    /// Waits until the log contains this text `times` times.
    pub async fn said(&self, what: &str, times: usize) {
        let mut text = self.said.subscribe();
        let said = text.wait_for(|text| text.matches(what).count() >= times);
        let is_said = tokio::time::timeout(PATIENCE, said).await.is_ok();
        assert!(is_said, "{what:?} was not logged {times} times:\n{}", self.log());
    }

    pub fn log(&self) -> String {
        self.said.borrow().clone()
    }
}

/// Shows what the programs logged, if the test failed.
impl Drop for Installation {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}
