//! The runner with everything it runs tools with, as a task of this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use breadcrumb::Breadcrumbs;
use clap::Args;
use executors::egress::{Egress, EgressOptions, HostEntry};
use executors::{Executor, Executors, RestExecutor, SandboxExecutor, rest};
use runner::{Runner, RunnerOptions};
use sandbox::{Sandbox, SandboxOptions, WorkerCommand};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cli::SANDBOX_WORKER;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Runner options")]
pub struct ExecutionOptions {
    /// Calls side by side at most [default: what suits this machine]
    #[arg(long, env = "RCRT_MAX_CALLS", value_name = "N")]
    pub max_calls: Option<usize>,

    /// Calls of one tool side by side at most [default: what suits this machine]
    #[arg(long, env = "RCRT_MAX_CALLS_PER_TOOL", value_name = "N")]
    pub max_calls_per_tool: Option<usize>,

    /// How long a call stays with a runner that is not heard of, in milliseconds [default: 15000]
    #[arg(long, env = "RCRT_LEASE_MS", value_name = "MS", value_parser = clap::value_parser!(u64).range(1_000..=600_000))]
    pub lease_ms: Option<u64>,

    /// A host (or host:port) with a non-public address that tools may reach all the same; again for more, or with
    /// commas in the environment
    #[arg(long = "allow-private-host", env = "RCRT_ALLOW_PRIVATE_HOST", value_name = "HOST", value_delimiter = ',',
        value_parser = HostEntry::parse)]
    pub allow_private_hosts: Vec<HostEntry>,
}

/// A runner at work.
pub struct Execution {
    sandbox: Arc<Sandbox>,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

/// How this program starts itself as a sandbox worker.
pub fn worker_command() -> anyhow::Result<WorkerCommand> {
    Ok(WorkerCommand { program: this_program()?, args: vec![SANDBOX_WORKER.into()] })
}

/// On Linux the running program itself, even where its file was replaced by a newer build meanwhile.
fn this_program() -> anyhow::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Ok(running);
    }
    std::env::current_exe().context("the path of this program is not known")
}

impl Execution {
    /// `system_author` is the agent whose tools are the installation's own, where that is known.
    pub async fn start(
        store: Arc<dyn Breadcrumbs>,
        options: &ExecutionOptions,
        system_author: Option<Uuid>,
    ) -> anyhow::Result<Self> {
        let mut settings = RunnerOptions {
            system_authors: system_author.into_iter().collect(),
            allowed_private: options.allow_private_hosts.clone(),
            ..RunnerOptions::default()
        };
        if let Some(most) = options.max_calls {
            settings.max_calls = most;
            settings.max_calls_per_tool = RunnerOptions::share_of_one_tool(most);
        }
        if let Some(most) = options.max_calls_per_tool {
            settings.max_calls_per_tool = most;
        }
        if let Some(lease) = options.lease_ms {
            settings.lease = Duration::from_millis(lease);
        }
        // A worker for every call that the runner takes: one that waited for a worker would hold its place in the runner.
        let workers = SandboxOptions { max_workers: settings.max_calls, ..SandboxOptions::new(worker_command()?) };
        let sandbox = Arc::new(Sandbox::start(workers).await.context("the sandbox cannot start")?);
        let allowed_private = options.allow_private_hosts.clone();
        let egress = Arc::new(Egress::new(EgressOptions { allowed_private, ..EgressOptions::default() })?);
        let rest: Arc<dyn Executor> = Arc::new(RestExecutor::new(egress.clone()));
        let code = Arc::new(SandboxExecutor::new(sandbox.clone(), egress));
        let executors = rest::KINDS
            .into_iter()
            .fold(Executors::new().with_code(code), |executors, kind| executors.with_native(kind, rest.clone()));
        let runner = Runner::new(store, Arc::new(executors), settings);
        let stop = CancellationToken::new();
        let shutdown = stop.clone();
        let task = tokio::spawn(async move { runner.run(shutdown).await.context("the runner ended") });
        Ok(Self { sandbox, stop, task })
    }

    /// Returns when the runner ends by itself, with the reason.
    pub async fn lost(&mut self) -> anyhow::Result<()> {
        (&mut self.task).await.context("the runner ended badly")?
    }

    /// Lets running calls end; in a hurry leaves them to the store, which answers them when their leases end.
    pub async fn close(mut self, hurry: &CancellationToken) {
        self.stop.cancel();
        if !self.task.is_finished() {
            tokio::select! {
                ended = self.lost() => {
                    if let Err(error) = ended {
                        tracing::error!(error = format!("{error:#}"), "the runner ended badly");
                    }
                }
                () = hurry.cancelled() => self.task.abort(),
            }
        }
        self.sandbox.close().await;
    }
}
