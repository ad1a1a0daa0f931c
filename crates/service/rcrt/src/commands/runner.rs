//! `rcrt runner`: runs calls, on the store or over HTTP.

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::{Breadcrumbs, Tenancy};
use rcrt_client::Client;
use rcrt_runner::LocalDispatch;
use rcrt_schemas::Schemas;
use rcrt_server::PublicUrl;

use crate::assembly::{
    self, Agents, DatabaseOptions, DrainOption, Embeddings, MetricsOptions, PreparedRunner, RunnerTask,
    RunnerTaskOptions, Stores,
};
use crate::compat::CompatOption;
use crate::config::Config;
use crate::keys::Keys;
use crate::output::Output;
use crate::progress::ConsoleProgress;
use crate::signals::Signals;

/// Start a runner, on the store (--database-url) or for a server (--server)
#[derive(Debug, Args)]
#[command(after_long_help = "\
With --server it works over HTTP, with the runner's token in the data folder, --token, or the key of an agent with the \
role runner (RCRT_OWNER_ID, RCRT_AGENT_ID, RCRT_AGENT_KEY). With --database-url it uses the store directly, with the keys \
of the data folder. Without either, it uses the server of the data folder.

Examples:
  rcrt runner --server http://127.0.0.1:8081
  rcrt runner --database-url postgres://rcrt@db/rcrt --max-calls 8")]
pub struct Runner {
    #[command(flatten)]
    compat: CompatOption,
    #[command(flatten)]
    database: DatabaseOptions,
    #[command(flatten)]
    runner_task: RunnerTaskOptions,
    /// The server's --public-url: agents that invoke_agent asks send push notifications there
    #[arg(long, env = "RCRT_PUBLIC_URL", value_name = "URL", value_parser = assembly::public_url)]
    public_url: Option<PublicUrl>,
    #[command(flatten)]
    drain: DrainOption,
    #[command(flatten)]
    metrics: MetricsOptions,
}

impl Runner {
    pub async fn run(mut self, config: &Config, _output: Output) -> anyhow::Result<()> {
        (self.runner_task.rcrt_compat, self.runner_task.drain) = (self.compat.is_rcrt(), Some(self.drain.time()));
        assembly::check_url(self.database.database_url.as_ref())?;
        let public_url = self.public_url.as_ref().map(|url| url.as_str().to_owned());
        let own_urls = config.server.iter().map(ToString::to_string).chain(public_url.clone()).collect();
        (self.runner_task.native.own_urls, self.runner_task.native.public_url) = (own_urls, public_url);
        self.runner_task.native.check(&config.data)?;
        let metrics = self.metrics.listen(self.runner_task.claim_health.clone()).await?;
        let signals = Signals::listen()?;
        let mut parts = Parts::default();
        let ended = tokio::select! {
            ended = self.work(config, &mut parts) => ended,
            () = signals.stop.cancelled() => Ok(()),
        };
        if let Some(runner_task) = parts.runner_task {
            runner_task.close(&signals.hurry).await;
        }
        if let Some(schemas) = parts.schemas {
            schemas.close().await;
        }
        if let Some(stores) = parts.stores {
            stores.close().await;
        }
        metrics.close().await?;
        tracing::info!("stopped");
        ended
    }

    async fn work(&self, config: &Config, parts: &mut Parts) -> anyhow::Result<()> {
        let (mut seeder, mut local) = (None, None);
        let breadcrumbs: Arc<dyn Breadcrumbs> = match (&config.server, &self.database.database_url) {
            (None, Some(url)) => {
                let progress = ConsoleProgress::new();
                let keys = Keys::open(&config.data)?;
                // The servers compute embeddings. A runner with another model would make them all
                // be computed again.
                let mut database = self.database.clone();
                database.embedding.or(Embeddings::Off);
                let stores = assembly::open_runner_store(url.clone(), &keys, &database, &progress).await?;
                let store = parts.stores.insert(stores).tenancy();
                let agents =
                    Agents::ensure(&*store, &self.database.tenant).await.context("the tenant cannot be set up")?;
                progress.done();
                seeder = Some(agents.seeder.agent_id);
                let schemas = parts.schemas.insert(Schemas::over(store)).clone();
                let dispatch = LocalDispatch::over(schemas);
                local = Some(dispatch.registration(&agents.runner));
                dispatch.acting_as(agents.runner)
            }
            // The runner's agent: concurrent runners of a tenant must use the same one.
            _ => {
                let credentials = config.credentials_or(&config.runner_token_file())?;
                Arc::new(Client::new(config.server_url()?, credentials))
            }
        };
        // Report a wrong address or token now, instead of retrying forever.
        breadcrumbs.latest_event().await.context("the store does not respond")?;
        let prepared = PreparedRunner::start(&self.runner_task, &config.data).await?;
        let runner_task = RunnerTask::start(breadcrumbs, local, prepared, seeder);
        tracing::info!("the runner is running");
        parts.runner_task.insert(runner_task).lost().await
    }
}

#[derive(Default)]
struct Parts {
    stores: Option<Stores>,
    schemas: Option<Arc<Schemas>>,
    runner_task: Option<RunnerTask>,
}
