//! workerd: the tool is a worker's module, in an isolate that is reused. Nothing is stored of a
//! call.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tokio::process::Command;
use url::Url;

use super::child::{Child, Pipes};
use super::packages::{Packages, npm_arch, npm_os};
use super::web::WebTool;
use super::{Peer, Which};

pub async fn start(packages: &Packages, folder: &Path) -> anyhow::Result<Peer> {
    // workerd's packages say 64 instead of x64.
    let arch = if npm_arch() == "x64" { "64" } else { npm_arch() };
    let package = format!("@cloudflare/workerd-{}-{arch}", npm_os());
    let program = packages.program(&package, "bin/workerd")?;
    let mut command = Command::new(program);
    // It then prints first where it listens.
    command.args(["serve", "--control-fd=1"]).arg(packages.file("workerd.capnp"));
    let log = folder.join("workerd.log");
    let (child, mut pipes) = Child::start(command, &log)?;
    let listens = pipes.object_with("port", &log).await?;
    let port = listens["port"].as_u64().context("it printed no port")?;
    tokio::spawn(read_on(pipes));
    Ok(Peer {
        name: Which::Workerd.name(),
        version: packages.version(&package)?,
        is_durable: false,
        settings: "HTTP/1.1, persistent connections",
        target: Arc::new(WebTool::new(Url::parse(&format!("http://127.0.0.1:{port}/"))?)?),
        children: vec![child],
        database: None,
    })
}

/// Reads a process's output, because the process would block when the pipe is full.
pub async fn read_on(mut pipes: Pipes) {
    while let Ok(Some(_)) = pipes.stdout.next_line().await {}
}
