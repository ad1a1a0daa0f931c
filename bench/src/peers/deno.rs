//! Deno, started for every call, as the tool runner of the original RCRT does.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_load::Target;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::child::last_lines_of;
use super::packages::{Packages, npm_arch, npm_os};
use super::sum::Sum;
use super::{Peer, Which};

pub fn start(packages: &Packages, folder: &Path) -> anyhow::Result<Peer> {
    let libc = if npm_os() == "linux" { "-glibc" } else { "" };
    let package = format!("@deno/{}-{}{libc}", npm_os(), npm_arch());
    let program = packages.program(&package, "deno")?;
    let target = Spawned { program, script: packages.file("deno.js"), cache: folder.join("deno") };
    Ok(Peer {
        name: Which::Deno.name(),
        version: packages.version(&package)?,
        is_durable: false,
        settings: "a process for each call; no permissions, code cache on, nothing to transpile or to look up",
        target: Arc::new(target),
        children: Vec::new(),
        database: None,
    })
}

struct Spawned {
    program: PathBuf,
    script: PathBuf,
    /// Where Deno caches compiled code between runs.
    cache: PathBuf,
}

impl Spawned {
    async fn run(&self, sum: Sum) -> anyhow::Result<f64> {
        let mut child = Command::new(&self.program)
            .args(["run", "--no-prompt", "--no-config", "--no-lock", "--no-npm", "--no-remote", "--no-check"])
            .arg(&self.script)
            .env("DENO_DIR", &self.cache)
            .env("DENO_NO_UPDATE_CHECK", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&serde_json::to_vec(&sum)?).await?;
        }
        let output = child.wait_with_output().await?;
        if !output.status.success() {
            anyhow::bail!("{}: {}", output.status, last_lines_of(&output.stderr));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

#[async_trait]
impl Target for Spawned {
    async fn call(&self, number: u64) -> Result<(), String> {
        let sum = Sum::of(number);
        sum.check(self.run(sum).await.map_err(|error| format!("{error:#}"))?)
    }
}
