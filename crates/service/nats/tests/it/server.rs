//! A NATS server on loopback, if one is installed.

use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;

use rcrt_nats::{Address, Connection};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The longest wait for what must happen.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// A server whose port and folder outlive its process.
pub struct Nats {
    program: &'static str,
    options: Vec<String>,
    child: Option<Child>,
    folder: TempDir,
    port: u16,
}

impl Nats {
    /// `None` where it is not installed. CI installs it if it can.
    pub async fn start(options: &[&str]) -> Option<Self> {
        let program = ["nats-server", "/usr/sbin/nats-server"]
            .into_iter()
            .find(|name| std::process::Command::new(name).arg("--version").stdout(Stdio::null()).status().is_ok());
        #[allow(clippy::print_stderr)]
        let Some(program) = program else {
            eprintln!("skipped: nats-server is not installed (on Debian: apt-get install nats-server)");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let options = options.iter().map(|&option| option.to_owned()).collect();
        let mut nats = Self { program, options, child: None, folder: tempfile::tempdir().unwrap(), port };
        nats.restart().await;
        Some(nats)
    }

    /// Starts it and waits until it says that it is ready.
    pub async fn restart(&mut self) {
        let mut child = Command::new(self.program)
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string(), "--store_dir"])
            .arg(self.folder.path())
            .args(&self.options)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if line.contains("Server is ready") {
                    return;
                }
            }
            panic!("nats-server does not start");
        };
        tokio::time::timeout(PATIENCE, ready).await.expect("nats-server becomes ready");
        // Read, so that the server does not block on a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.child = Some(child);
    }

    pub async fn kill(&mut self) {
        self.child.take().unwrap().kill().await.unwrap();
    }

    /// With `user:password@`, or without.
    pub fn address(&self, credentials: &str) -> Address {
        format!("nats://{credentials}127.0.0.1:{}", self.port).parse().unwrap()
    }
}

/// Waits until the stream has this many messages, and returns all as JetStream does.
pub async fn messages(nats: &Nats, stream: &str, count: u64) -> Vec<Value> {
    let mut connection = Connection::connect(&nats.address("")).await.unwrap();
    let info = format!("$JS.API.STREAM.INFO.{stream}");
    let waiting = async {
        loop {
            let found = connection.request(&info, &Value::Null).await.unwrap();
            if found["state"]["messages"].as_u64().unwrap_or_default() >= count {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the events are copied");
    let mut found = Vec::new();
    for sequence in 1..=count {
        let get = format!("$JS.API.STREAM.MSG.GET.{stream}");
        let got = connection.request(&get, &json!({"seq": sequence})).await.unwrap();
        found.push(got["message"].clone());
    }
    let state = connection.request(&info, &Value::Null).await.unwrap()["state"].clone();
    assert_eq!(state["messages"], json!(count), "no event is stored twice");
    found
}
