//! `rcrt scripts-manager`: a runner whose programs run in pods of a Kubernetes cluster.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::Breadcrumbs;
use rcrt_client::Client;
use rcrt_executors::{BuiltinExecutor, Executor, Executors, builtin, rest};
use rcrt_pods::Pods;
use rcrt_runner::{ClaimHealth, Runner, RunnerOptions};
use tokio_util::sync::CancellationToken;

use crate::assembly::{DrainOption, Elsewhere, MetricsOptions, PodOptions, host_name};
use crate::config::Config;
use crate::output::Output;
use crate::signals::Signals;

/// How long the pods of the last calls may take to be deleted. The next process deletes the rest.
const DELETING: Duration = Duration::from_secs(15);
const ELSEWHERE: &str = "A runner started by `rcrt runner` runs it, not the scripts manager.";

/// Run the programs of tools in pods of a Kubernetes cluster, for a server (--server)
#[derive(Debug, Args)]
#[command(after_long_help = "\
It claims only calls of the tools in --pod-tool and runs each in a fresh pod. It needs a service account that can create, \
get, list, watch and delete pods, get pods/log, and create secrets, all in the namespace of the pods.

Examples:
  rcrt scripts-manager --server http://rcrt-server:8081 --image registry.example.com/python@sha256:…
  rcrt scripts-manager --pod-tool execute_python_script,bash --workdir-claim rcrt-work")]
pub struct ScriptsManager {
    #[command(flatten)]
    drain: DrainOption,
    #[command(flatten)]
    metrics: MetricsOptions,
    #[command(flatten)]
    pods: PodOptions,
}

impl ScriptsManager {
    pub async fn run(self, config: &Config, _output: Output) -> anyhow::Result<()> {
        let settings = self.pods.settings()?;
        let claims = Arc::new(ClaimHealth::default());
        let metrics = self.metrics.listen(claims.clone()).await?;
        let signals = Signals::listen()?;
        let credentials = config.credentials_or(&config.runner_token_file())?;
        let store: Arc<dyn Breadcrumbs> = Arc::new(Client::new(config.server_url()?, credentials));
        // Report a wrong address or token now, instead of retrying forever.
        tokio::select! {
            found = store.latest_event() => { found.context("the store does not respond")?; }
            () = signals.stop.cancelled() => return metrics.close().await,
        }
        let pods = Pods::start(settings)?;
        let (stop, max_calls) = (CancellationToken::new(), self.pods.max_pods());
        let options = RunnerOptions {
            max_calls,
            max_calls_per_tool: max_calls,
            only_tools: self.pods.tools(),
            host: host_name(),
            drain: self.drain.time(),
            claim_health: claims,
            ..RunnerOptions::default()
        };
        let mut running = tokio::spawn(Runner::new(store, executors(&pods), options).run(stop.clone()));
        tracing::info!("the scripts manager is running");
        let ended = tokio::select! {
            ended = &mut running => Some(ended),
            () = signals.stop.cancelled() => {
                stop.cancel();
                tokio::select! {
                    ended = &mut running => Some(ended),
                    () = signals.hurry.cancelled() => {
                        running.abort();
                        None
                    }
                }
            }
        };
        if tokio::time::timeout(DELETING, pods.close()).await.is_err() {
            tracing::warn!("pods are left behind; the next scripts manager deletes them when they expire");
        }
        metrics.close().await?;
        tracing::info!("stopped");
        match ended {
            Some(ended) => ended.context("the runner failed")?.context("the runner failed"),
            None => Ok(()),
        }
    }
}

/// The tools in pods; all others are left to other runners.
fn executors(pods: &Pods) -> Executors {
    let tools = pods.tools();
    let mut native = BuiltinExecutor::new();
    for name in crate::embedded::native_tools() {
        if !tools.iter().any(|tool| tool.name() == name) {
            native = native.without(name, ELSEWHERE);
        }
    }
    let elsewhere: Arc<dyn Executor> = Arc::new(Elsewhere { why: ELSEWHERE });
    rest::KINDS
        .into_iter()
        .chain([rcrt_mcp::KIND])
        .fold(Executors::new().with_code(elsewhere.clone()), |all, kind| all.with_native(kind, elsewhere.clone()))
        .with_native(builtin::KIND, Arc::new(native.with(tools)))
}
