//! `rcrt` processes as an operator starts them, each with a data folder of its own.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, Credentials};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use url::Url;

/// The longest any wait for a signal may take before the test says so.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A process that is killed (SIGKILL) when it goes out of scope.
pub struct Rcrt {
    child: Child,
}

impl Rcrt {
    pub fn start(data: &Path, arguments: &[&str]) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(data.join("process.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_rcrt"))
            .args(arguments)
            .env_remove("DATABASE_URL")
            .env("RCRT_DATA", data)
            .env("RCRT_LOG", "info")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { child }
    }

    /// SIGKILL, and wait until the process is gone.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// SIGTERM, and wait for the exit code.
    pub async fn stop(mut self) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("stops on SIGTERM").unwrap().code()
    }
}

/// A data folder and an address that outlive the processes on them.
pub struct Place {
    pub data: TempDir,
    pub listen: SocketAddr,
}

impl Place {
    pub fn new() -> Self {
        let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { data: tempfile::tempdir().unwrap(), listen }
    }

    pub fn url(&self) -> Url {
        format!("http://{}", self.listen).parse().unwrap()
    }

    pub fn token_file(&self) -> PathBuf {
        self.data.path().join("token")
    }

    /// Waits until the server answers, then gives a client with the first token.
    pub async fn client(&self) -> Arc<Client> {
        self.healthy().await;
        let token = std::fs::read_to_string(self.token_file()).unwrap().trim().to_owned();
        Arc::new(Client::new(self.url(), Credentials::Token(token)))
    }

    /// Waits until `/health` answers well.
    pub async fn healthy(&self) {
        let health = self.url().join("health").unwrap();
        let asked = async {
            loop {
                let answer = reqwest::get(health.clone()).await;
                if answer.is_ok_and(|answer| answer.status().is_success()) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "no health:\n{}", self.log());
    }

    /// Waits until the runner of the last start has said that it is ready.
    pub async fn ready(&self) {
        self.ready_again(1).await;
    }

    /// Waits until a runner has said so this often, over all starts on this folder.
    pub async fn ready_again(&self, times: usize) {
        let said = async {
            while self.log().matches("the runner is ready").count() < times {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, said).await.is_ok(), "no runner:\n{}", self.log());
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data.path().join("process.log")).unwrap_or_default()
    }
}
