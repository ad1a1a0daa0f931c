//! The baseline for HTTP: an echo server in its own process.

use std::process::Stdio;

use anyhow::Context;
use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use rcrt_load::Target;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

/// Runs as that process: prints its address and serves until it is killed.
pub async fn serve() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    #[allow(clippy::print_stdout)]
    {
        println!("http://{}/", listener.local_addr()?);
    }
    axum::serve(listener, Router::new().route("/", post(async |body: Bytes| body))).await?;
    Ok(())
}

/// The running server, and the same kind of client as for the instance's calls.
pub struct Echo {
    http: reqwest::Client,
    url: String,
    body: String,
    _process: Child,
}

impl Echo {
    /// Each call sends `body`.
    pub async fn start(body: String) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("echo")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the echo server cannot be started")?;
        let stdout = process.stdout.take().context("the echo server has no output")?;
        let url = BufReader::new(stdout).lines().next_line().await?.context("the echo server printed no address")?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, url, body, _process: process })
    }
}

#[async_trait]
impl Target for Echo {
    async fn call(&self, _number: u64) -> Result<(), String> {
        let sent = self.http.post(&self.url).body(self.body.clone()).send().await.map_err(|error| error.to_string())?;
        let said = sent.bytes().await.map_err(|error| error.to_string())?;
        if said == self.body { Ok(()) } else { Err("the response has another body".into()) }
    }
}
