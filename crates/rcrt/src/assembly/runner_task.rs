//! The runner and its executors, as a task of this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use breadcrumb::Breadcrumbs;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use executors::egress::{Egress, EgressOptions};
use executors::{Executor, Executors, RestExecutor, SandboxExecutor, builtin, rest};
use runner::{Runner, RunnerOptions};
use sandbox::{Level, Sandbox, SandboxOptions, WorkerCommand};
use schedule::Scheduler;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{EgressLogChannel, EgressLogWriter, NativeToolOptions, NativeTools, protection};
use crate::cli::SANDBOX_WORKER;
use crate::denied_hosts::DeniedHosts;
use crate::private_hosts::PrivateHosts;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Runner options")]
pub struct RunnerTaskOptions {
    /// Calls side by side at most [default: what suits this machine]
    #[arg(long, env = "RCRT_MAX_CALLS", value_name = "N")]
    pub max_calls: Option<usize>,

    /// Calls of one tool side by side at most [default: what suits this machine]
    #[arg(long, env = "RCRT_MAX_CALLS_PER_TOOL", value_name = "N")]
    pub max_calls_per_tool: Option<usize>,

    /// Calls side by side at most that only wait for a service (http tools): those need no worker
    #[arg(long, env = "RCRT_MAX_WAITING", value_name = "N", default_value_t = 2000,
        value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub max_waiting: u32,

    /// How long a call stays with a runner that is not heard of, in milliseconds [default: 15000]
    #[arg(long, env = "RCRT_LEASE_MS", value_name = "MS", value_parser = clap::value_parser!(u64).range(1_000..=600_000))]
    pub lease_ms: Option<u64>,

    #[command(flatten)]
    pub private_hosts: PrivateHosts,

    #[command(flatten)]
    pub denied_hosts: DeniedHosts,

    #[command(flatten)]
    pub native: NativeToolOptions,

    /// How much protection there must be around tools: strict (all that is required, or no tool runs), or minimal
    /// (whatever this machine gives; never for strangers' tools)
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    pub sandbox: Level,

    /// Of `--compat`, which is the whole command's.
    #[arg(skip)]
    pub rcrt_compat: bool,
}

/// Reads `--sandbox`, and lets a shell complete it.
pub fn sandbox_level() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(["strict", "minimal"]).try_map(|level| level.parse::<Level>())
}

/// What runs tools, before there is a store: that takes as long as the database does, and needs nothing of it.
pub struct PreparedRunner {
    sandbox: Arc<Sandbox>,
    egress: Arc<Egress>,
    egress_log_channel: EgressLogChannel,
    native: NativeTools,
    settings: RunnerOptions,
}

/// A runner at work.
pub struct RunnerTask {
    sandbox: Arc<Sandbox>,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
    /// Fires the scheduled tasks.
    scheduler: JoinHandle<()>,
    egress_log_writer: EgressLogWriter,
}

/// How this program starts itself as a sandbox worker.
pub fn worker_command() -> anyhow::Result<WorkerCommand> {
    Ok(WorkerCommand { program: this_program()?, args: vec![SANDBOX_WORKER.into()] })
}

/// On Linux the running program itself, even where its file was replaced by a newer build meanwhile.
pub(super) fn this_program() -> anyhow::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Ok(running);
    }
    std::env::current_exe().context("the path of this program is not known")
}

impl PreparedRunner {
    /// Starts the sandbox, and puts together what runs tools. `data` is the data folder.
    pub async fn start(options: &RunnerTaskOptions, data: &Path) -> anyhow::Result<Self> {
        let mut settings = RunnerOptions {
            allowed_private: options.private_hosts.allowed.clone(),
            max_waiting: options.max_waiting as usize,
            rcrt_compat: options.rcrt_compat,
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
        let allowed_private = options.private_hosts.allowed.clone();
        let egress_log_channel = EgressLogChannel::new();
        let egress = Arc::new(Egress::new(EgressOptions {
            allowed_private,
            denied: options.denied_hosts.shared(),
            log: Some(egress_log_channel.log.clone()),
            ..EgressOptions::default()
        })?);
        // A worker for every call that the runner takes: one that waited for a worker would hold its place in the runner.
        let workers = SandboxOptions {
            max_workers: settings.max_calls,
            level: options.sandbox,
            ..SandboxOptions::new(worker_command()?)
        };
        let sandbox = Arc::new(Sandbox::start(workers).await.context("the sandbox cannot start")?);
        match options.native.tools(data, egress.clone()) {
            Ok(native) => Ok(Self { sandbox, egress, egress_log_channel, native, settings }),
            Err(error) => {
                sandbox.close().await;
                Err(error)
            }
        }
    }

    pub async fn close(self) {
        self.sandbox.close().await;
    }
}

impl RunnerTask {
    /// `system_author` is the agent whose tools are the installation's own, where that is known.
    pub fn start(store: Arc<dyn Breadcrumbs>, prepared: PreparedRunner, system_author: Option<Uuid>) -> Self {
        let PreparedRunner { sandbox, egress, egress_log_channel, native, mut settings } = prepared;
        protection::tell(sandbox.report());
        let NativeTools { executor, schedule, clock, large_results } = native;
        settings.system_authors = system_author.into_iter().collect();
        settings.large_results = large_results;
        let rest: Arc<dyn Executor> = Arc::new(RestExecutor::new(egress.clone()));
        let code = Arc::new(SandboxExecutor::new(sandbox.clone(), egress).with_rcrt_compat(settings.rcrt_compat));
        let executors = rest::KINDS
            .into_iter()
            .fold(Executors::new().with_code(code), |executors, kind| executors.with_native(kind, rest.clone()))
            .with_native(builtin::KIND, Arc::new(executor));
        let runner = Runner::new(store.clone(), Arc::new(executors), settings);
        let stop = CancellationToken::new();
        let logged_in = store.clone();
        // A runner serves one tenant.
        let egress_log_writer = EgressLogWriter::start(egress_log_channel, move |_| logged_in.clone());
        let scheduler = tokio::spawn(Scheduler::new(store, clock, schedule).run(stop.clone()));
        let shutdown = stop.clone();
        let task = tokio::spawn(async move { runner.run(shutdown).await.context("the runner ended") });
        Self { sandbox, stop, task, scheduler, egress_log_writer }
    }

    /// Returns when the runner or the scheduler ends by itself, with the reason.
    pub async fn lost(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            ended = &mut self.task => ended.context("the runner ended badly")?,
            ended = &mut self.scheduler => {
                ended.context("the scheduler ended badly")?;
                anyhow::bail!("the scheduler ended by itself")
            }
        }
    }

    /// Lets running calls end; in a hurry leaves them to the store, which answers them when their leases end.
    pub async fn close(self, hurry: &CancellationToken) {
        let Self { sandbox, stop, task, scheduler, egress_log_writer } = self;
        stop.cancel();
        // One that has ended by itself was told already.
        if !scheduler.is_finished() {
            ended("scheduler", scheduler, hurry).await;
        }
        if !task.is_finished()
            && let Some(Err(error)) = ended("runner", task, hurry).await
        {
            tracing::error!(error = format!("{error:#}"), "the runner ended badly");
        }
        tokio::join!(sandbox.close(), egress_log_writer.close());
    }
}

/// Waits for a task, but not in a hurry.
async fn ended<T>(name: &'static str, mut task: JoinHandle<T>, hurry: &CancellationToken) -> Option<T> {
    tokio::select! {
        ended = &mut task => match ended {
            Ok(value) => return Some(value),
            Err(error) => tracing::error!(%error, part = name, "a part ended badly"),
        },
        () = hurry.cancelled() => task.abort(),
    }
    None
}
