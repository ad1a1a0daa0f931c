//! A sandbox of this command, which runs tools from files.

use std::sync::Arc;

use anyhow::Context;
use rcrt_egress::{Egress, EgressOptions};
use rcrt_examples::ExampleRunner;
use rcrt_sandbox::{Level, Sandbox, SandboxOptions};

use crate::assembly::worker_command;

pub struct LocalSandbox {
    sandbox: Arc<Sandbox>,
    pub runner: ExampleRunner,
}

impl LocalSandbox {
    /// Starts it. Call [`Self::close`] at the end.
    pub async fn start(level: Level, egress: EgressOptions) -> anyhow::Result<Self> {
        let egress = Arc::new(Egress::new(egress)?);
        let options = SandboxOptions { level, ..SandboxOptions::new(worker_command()?) };
        let sandbox = Arc::new(Sandbox::start(options).await.context("the sandbox cannot start")?);
        Ok(Self { runner: ExampleRunner::new(sandbox.clone(), egress), sandbox })
    }

    pub async fn close(self) {
        self.sandbox.close().await;
    }
}
