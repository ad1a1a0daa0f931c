//! Restate: its server, with the log as shipped, and a handler in Node.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;
use tokio::process::Command;
use url::Url;

use super::child::{Child, START, last_lines};
use super::packages::{Packages, npm_arch, npm_os};
use super::web::{self, WebTool};
use super::workerd::read_on;
use super::{Peer, Which};

/// Time between two checks whether it is ready.
const PAUSE: Duration = Duration::from_millis(100);

pub async fn start(packages: &Packages, folder: &Path) -> anyhow::Result<Peer> {
    let package = format!("@restatedev/restate-server-{}-{}", npm_os(), npm_arch());
    let program = packages.program(&package, "bin/restate-server")?;
    let [ingress, admin, node] = free_ports()?;
    let mut command = Command::new(program);
    command
        .args(["--no-logo", "--listen-mode", "tcp", "--log-disable-ansi-codes", "true", "--base-dir"])
        .arg(folder.join("restate"))
        // Otherwise it sends telemetry to its authors, and a bench has no network for that.
        .env("RESTATE_DISABLE_TELEMETRY", "true")
        // The default is 24, for clusters. On two processors 1 had the highest rate, of 1, 4 and
        // 24.
        .env("RESTATE_DEFAULT_NUM_PARTITIONS", "1")
        .env("RESTATE_INGRESS__BIND_ADDRESS", format!("127.0.0.1:{ingress}"))
        .env("RESTATE_ADMIN__BIND_ADDRESS", format!("127.0.0.1:{admin}"))
        .env("RESTATE_BIND_ADDRESS", format!("127.0.0.1:{node}"));
    let log = folder.join("restate.log");
    let (server, pipes) = Child::start(command, &log)?;
    tokio::spawn(read_on(pipes));

    let mut command = Command::new(packages.node().await?);
    command.arg(packages.file("restate.js"));
    let handler_log = folder.join("restate-handler.log");
    let (handler, mut pipes) = Child::start(command, &handler_log)?;
    let ready = pipes.object_with("ready", &handler_log).await?;
    tokio::spawn(read_on(pipes));
    let handler_port = ready["port"].as_u64().context("its handler printed no port")?;

    register(admin, handler_port).await.with_context(|| last_lines(&log))?;
    Ok(Peer {
        name: Which::Restate.name(),
        version: packages.version(&package)?,
        is_durable: true,
        settings: "one partition, its log as shipped with fsync on; HTTP/1.1 in, HTTP/2 to the handler",
        target: Arc::new(WebTool::new(Url::parse(&format!("http://127.0.0.1:{ingress}/calculator/add"))?)?),
        children: vec![server, handler],
        database: None,
    })
}

/// Ports that were free a moment ago. Restate does not report ports that it chose itself.
fn free_ports() -> anyhow::Result<[u16; 3]> {
    let listeners = [bind()?, bind()?, bind()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn bind() -> std::io::Result<TcpListener> {
    TcpListener::bind("127.0.0.1:0")
}

/// Waits for the server, and registers the handler.
async fn register(admin: u16, handler: u64) -> anyhow::Result<()> {
    let http = web::client()?;
    let deployments = format!("http://127.0.0.1:{admin}/deployments");
    let wanted = json!({"uri": format!("http://127.0.0.1:{handler}")});
    let begun = Instant::now();
    loop {
        let said = match http.post(&deployments).json(&wanted).send().await {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        if begun.elapsed() > START {
            bail!("it refused its handler: {said}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
