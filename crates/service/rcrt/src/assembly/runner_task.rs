//! The runner and its executors, as a task of this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use rcrt_authoring::Assessor;
use rcrt_breadcrumb::{Breadcrumbs, ToolDefinition};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_examples::ExampleRunner;
use rcrt_executors::{Executor, Executors, RestExecutor, SandboxExecutor, builtin, rest};
use rcrt_runner::{ClaimHealth, LocalRegistration, Runner, RunnerOptions};
use rcrt_sandbox::{Level, Sandbox, SandboxOptions, WorkerCommand};
use rcrt_schedule::Scheduler;
use rcrt_validate::Author;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{EgressLogChannel, EgressLogWriter, NativeToolOptions, NativeTools, protection};
use crate::cli::SANDBOX_WORKER;
use crate::host_options::{DeniedHosts, PrivateHosts};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Runner options")]
pub struct RunnerTaskOptions {
    /// Maximum number of concurrent calls that need a worker [default: suits this machine]
    #[arg(long, env = "RCRT_MAX_CALLS", value_name = "N", value_parser = at_least_one)]
    pub max_calls: Option<usize>,

    /// Maximum number of concurrent calls of one tool [default: suits this machine]
    #[arg(long, env = "RCRT_MAX_CALLS_PER_TOOL", value_name = "N", value_parser = at_least_one)]
    pub max_calls_per_tool: Option<usize>,

    /// Maximum number of concurrent calls that only wait for a service (http tools); they need no
    /// worker
    #[arg(long, env = "RCRT_MAX_WAITING", value_name = "N", default_value_t = 2000,
        value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub max_waiting: u32,

    /// How long a call stays with a runner that sends no heartbeat, in milliseconds [default:
    /// 15000]
    #[arg(long, env = "RCRT_LEASE_MS", value_name = "MS", value_parser = clap::value_parser!(u64).range(1_000..=600_000))]
    pub lease_ms: Option<u64>,

    /// How this process's runner gets a request that is written in this process: local (at once,
    /// also before it is stored), or queue (only from the queue, as requests of other processes)
    #[arg(long, env = "RCRT_DISPATCH", value_name = "MODE", value_enum, default_value_t)]
    pub dispatch: Dispatch,

    #[command(flatten)]
    pub private_hosts: PrivateHosts,

    #[command(flatten)]
    pub denied_hosts: DeniedHosts,

    #[command(flatten)]
    pub native: NativeToolOptions,

    /// The required protection around tools: strict (run no tool unless every required protection
    /// is in force), or minimal (use the protections that the machine has; never with tools that
    /// you do not trust)
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    pub sandbox: Level,

    /// What calls of one version of a tool share: shared (a process, as the tool's `isolation`
    /// says), or process (nothing: each call has a process of its own, whatever the tool says)
    #[arg(long, env = "RCRT_ISOLATION", value_name = "MODE", value_enum, default_value_t)]
    pub isolation: CallIsolation,

    /// Set from `--compat`, which is an option of the command.
    #[arg(skip)]
    pub rcrt_compat: bool,

    /// Set from `--drain-seconds`, which is an option of the command.
    #[arg(skip)]
    pub drain: Option<Duration>,

    /// Tells a probe whether the runner can claim calls.
    #[arg(skip)]
    pub claim_health: Arc<ClaimHealth>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Dispatch {
    #[default]
    Local,
    Queue,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CallIsolation {
    #[default]
    Shared,
    Process,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "must be a whole number, at least 1; without the option it suits this machine".to_owned())
}

/// Parses `--sandbox`, and lists its values for shell completion.
pub fn sandbox_level() -> impl TypedValueParser<Value = Level> {
    PossibleValuesParser::new(["strict", "minimal"]).try_map(|level| level.parse::<Level>())
}

/// The parts of a runner that need no store. They start while the database starts.
pub struct PreparedRunner {
    sandbox: Arc<Sandbox>,
    egress: Arc<Egress>,
    /// For MCP servers, whose connections stay open.
    mcp_egress: Arc<Egress>,
    egress_log_channel: EgressLogChannel,
    code: Arc<SandboxExecutor>,
    native: NativeTools,
    settings: RunnerOptions,
    dispatch: Dispatch,
}

/// A running runner.
pub struct RunnerTask {
    sandbox: Arc<Sandbox>,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
    /// Fires the scheduled tasks.
    scheduler: JoinHandle<()>,
    /// Follows the tasks of other agents, and keeps their cards.
    agents: JoinHandle<()>,
    /// Keeps the tools of MCP servers registered. Stopped after the last call.
    connector: JoinHandle<()>,
    connector_stop: CancellationToken,
    egress_log_writer: EgressLogWriter,
}

/// The command that starts this program as a sandbox worker.
pub fn worker_command() -> anyhow::Result<WorkerCommand> {
    Ok(WorkerCommand { program: this_program()?, args: vec![SANDBOX_WORKER.into()] })
}

/// The path of this program. On Linux `/proc/self/exe`, which works even if the file was replaced.
pub(super) fn this_program() -> anyhow::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Ok(running);
    }
    std::env::current_exe().context("the path of this program is not known")
}

impl RunnerTaskOptions {
    /// RCRT's clients do not know large results: only what the operator or a request says shortens
    /// one.
    fn native_tools(&self, data: &Path, egress: Arc<Egress>, assessor: Assessor) -> anyhow::Result<NativeTools> {
        let mut native = self.native.tools(data, egress, assessor)?;
        if self.rcrt_compat && self.native.settings(data)?.is_default("results.max_chars") {
            native.large_results.max_result_chars = rcrt_large_results::MAX_RESULT_BYTES;
        }
        Ok(native)
    }
}

impl PreparedRunner {
    /// Starts the sandbox and creates the executors. `data` is the data folder.
    pub async fn start(options: &RunnerTaskOptions, data: &Path) -> anyhow::Result<Self> {
        let mut settings = RunnerOptions {
            allowed_private: options.private_hosts.allowed.clone(),
            max_waiting: options.max_waiting as usize,
            rcrt_compat: options.rcrt_compat,
            claim_health: options.claim_health.clone(),
            ..RunnerOptions::default()
        };
        if let Some(most) = options.max_calls {
            settings.max_calls = most;
            settings.max_calls_per_tool = RunnerOptions::share_of_one_tool(most);
        }
        if let Some(most) = options.max_calls_per_tool {
            settings.max_calls_per_tool = most;
        }
        if let Some(drain) = options.drain {
            settings.drain = drain;
        }
        if let Some(lease) = options.lease_ms {
            settings.lease = Duration::from_millis(lease);
        }
        let allowed_private = options.private_hosts.allowed.clone();
        let egress_log_channel = EgressLogChannel::new();
        let gate = EgressOptions {
            allowed_private,
            denied: options.denied_hosts.shared(),
            log: Some(egress_log_channel.log.clone()),
            ..EgressOptions::default()
        };
        let egress = Arc::new(Egress::new(gate.clone())?);
        // A stream of announcements can be silent for a long time.
        let (idle_timeout, total_timeout) = (Duration::from_mins(15), Duration::from_hours(24));
        let mcp_egress = Arc::new(Egress::new(EgressOptions { idle_timeout, total_timeout, ..gate })?);
        // One worker for each slot of the runner and for each call that can wait without one: a
        // call that waits for a worker would hold its slot.
        let workers = SandboxOptions {
            max_workers: settings.max_calls + RunnerOptions::max_parked(settings.max_calls),
            level: options.sandbox,
            process_per_call: options.isolation == CallIsolation::Process,
            ..SandboxOptions::new(worker_command()?)
        };
        let sandbox = Arc::new(Sandbox::start(workers).await.context("the sandbox cannot start")?);
        let code =
            Arc::new(SandboxExecutor::new(sandbox.clone(), egress.clone()).with_rcrt_compat(settings.rcrt_compat));
        let allowed = settings.allowed_private.clone();
        let rules = move |definition: &ToolDefinition| rcrt_validate::tool_allowing(definition, Author::User, &allowed);
        let assessor = Assessor::new(rules, ExampleRunner::new(sandbox.clone(), egress.clone()), code.clone());
        match options.native_tools(data, egress.clone(), assessor) {
            Ok(native) => {
                let dispatch = options.dispatch;
                Ok(Self { sandbox, egress, mcp_egress, egress_log_channel, code, native, settings, dispatch })
            }
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
    /// `local` is for a runner in the process of its store. `system_author` is the agent that seeds
    /// the tools of the installation, if it is known.
    pub fn start(
        store: Arc<dyn Breadcrumbs>,
        local: Option<LocalRegistration>,
        prepared: PreparedRunner,
        system_author: Option<Uuid>,
    ) -> Self {
        let PreparedRunner { sandbox, egress, mcp_egress, egress_log_channel, code, native, mut settings, dispatch } =
            prepared;
        protection::log(sandbox.report());
        let NativeTools { executor, schedule, clock, large_results, a2a, meaning_weight, workdir, mcp } = native;
        settings.protections = Some(protection::announced(sandbox.report()));
        settings.host = host_name();
        settings.working_folder = Some(workdir.display().to_string());
        settings.system_authors = system_author.into_iter().collect();
        settings.large_results = large_results;
        settings.meaning_weight = meaning_weight;
        let servers = rcrt_mcp::Servers::new(store.clone(), mcp_egress, mcp);
        let a2a = rcrt_a2a::A2a::new(store.clone(), egress.clone(), a2a);
        let executor = executor.with(rcrt_mcp::tools(&servers)).with(a2a.tools());
        let rest: Arc<dyn Executor> = Arc::new(RestExecutor::new(egress));
        let executors = rest::KINDS
            .into_iter()
            .fold(Executors::new().with_code(code), |executors, kind| executors.with_native(kind, rest.clone()))
            .with_native(builtin::KIND, Arc::new(executor))
            .with_native(rcrt_mcp::KIND, Arc::new(rcrt_mcp::McpExecutor::new(servers.clone())));
        let mut runner = Runner::new(store.clone(), Arc::new(executors), settings);
        if let Some(local) = local.filter(|_| dispatch == Dispatch::Local) {
            runner = runner.with_local_dispatch(local);
        }
        let stop = CancellationToken::new();
        let logged_in = store.clone();
        // A runner serves one tenant.
        let egress_log_writer = EgressLogWriter::start(egress_log_channel, move |_| logged_in.clone());
        let agents = tokio::spawn(a2a.run(stop.clone()));
        let scheduler = tokio::spawn(Scheduler::new(store, clock, schedule).run(stop.clone()));
        let connector_stop = CancellationToken::new();
        let connector = tokio::spawn(rcrt_mcp::Connector::new(servers).run(connector_stop.clone()));
        let shutdown = stop.clone();
        let task = tokio::spawn(async move { runner.run(shutdown).await.context("the runner failed") });
        Self { sandbox, stop, task, scheduler, agents, connector, connector_stop, egress_log_writer }
    }

    /// Returns when the runner or another task stops by itself, with the reason.
    pub async fn lost(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            ended = &mut self.task => ended.context("the runner failed")?,
            ended = &mut self.scheduler => {
                ended.context("the scheduler failed")?;
                anyhow::bail!("the scheduler stopped by itself")
            }
            ended = &mut self.connector => {
                ended.context("the connector of MCP servers failed")?;
                anyhow::bail!("the connector of MCP servers stopped by itself")
            }
            ended = &mut self.agents => {
                ended.context("the follower of agents failed")?;
                anyhow::bail!("the follower of agents stopped by itself")
            }
        }
    }

    /// Waits for running calls. If `hurry` is cancelled, leaves them to the store, which responds
    /// when their leases expire.
    pub async fn close(self, hurry: &CancellationToken) {
        let Self { sandbox, stop, task, scheduler, agents, connector, connector_stop, egress_log_writer } = self;
        stop.cancel();
        // If one has stopped by itself, `lost` already returned its error.
        for (name, part) in [("scheduler", scheduler), ("follower of agents", agents)] {
            if !part.is_finished() {
                finish(name, part, hurry).await;
            }
        }
        if !task.is_finished()
            && let Some(Err(error)) = finish("runner", task, hurry).await
        {
            tracing::error!(error = format!("{error:#}"), "the runner failed");
        }
        connector_stop.cancel();
        if !connector.is_finished() {
            finish("connector of MCP servers", connector, hurry).await;
        }
        tokio::join!(sandbox.close(), egress_log_writer.close());
    }
}

/// The name of this machine, for messages.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Waits for a task, or aborts it if `hurry` is cancelled.
async fn finish<T>(name: &'static str, mut task: JoinHandle<T>, hurry: &CancellationToken) -> Option<T> {
    tokio::select! {
        ended = &mut task => match ended {
            Ok(value) => return Some(value),
            Err(error) => tracing::error!(%error, part = name, "a part failed"),
        },
        () = hurry.cancelled() => task.abort(),
    }
    None
}
