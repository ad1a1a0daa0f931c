//! The parts that run in this process, in the order of their start.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use rcrt_breadcrumb::{EgressLog, Identity, Profile, Role, Tenancy};
use rcrt_runner::LocalDispatch;
use rcrt_schemas::Schemas;
use rcrt_server::ServerOptions;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{
    Agents, DataFolder, Database, DatabaseInfo, DatabaseOptions, HttpServer, PreparedRunner, Pruning, RunnerTask,
    Stores, TokenFile, WebhookDelivery, WebhookHosts, WebhookOptions,
};
use crate::progress::ConsoleProgress;

/// How long the running calls can take to be counted at the shutdown.
const COUNT_TIME: Duration = Duration::from_secs(1);

/// The running parts. Each step of the start adds one part, so that an interrupted start stops only
/// these.
#[derive(Default)]
pub struct System {
    database: Option<Database>,
    schemas: Option<Arc<Schemas>>,
    /// The schemas, with requests dispatched to the runner of this process.
    tenancy: Option<Arc<LocalDispatch>>,
    postgres: Option<DatabaseInfo>,
    agents: Option<Agents>,
    token_files: Vec<TokenFile>,
    http_server: Option<HttpServer>,
    webhook_delivery: Option<WebhookDelivery>,
    runner_task: Option<RunnerTask>,
}

impl System {
    /// Opens the database and the store, and creates the agents of the tenant.
    pub async fn open_store(
        &mut self,
        folder: DataFolder,
        options: &DatabaseOptions,
        pruning: Pruning,
        progress: &ConsoleProgress,
    ) -> anyhow::Result<()> {
        let data = folder.path();
        let database = Database::open(folder.lock, &folder.keys, options, pruning, progress).await?;
        let database = self.database.insert(database);
        let used = match (&options.database_url, database.postgres_version()) {
            (Some(url), _) => DatabaseInfo::external(url).await?,
            (None, version) => DatabaseInfo::embedded(version.unwrap_or_default()),
        };
        used.write(&data)?;
        self.postgres = Some(used);
        let agents = Agents::ensure(&*database.stores.tenancy(), &options.tenant)
            .await
            .context("the tenant cannot be set up")?;
        self.agents = Some(agents);
        let schemas = self.schemas.insert(Schemas::over(database.stores.tenancy()));
        self.tenancy = Some(LocalDispatch::over(schemas.clone()));
        Ok(())
    }

    /// Starts the HTTP server and writes the token files in the data folder: for the first agent
    /// and the runner. Returns the first agent's token.
    pub fn start_http_server(&mut self, options: ServerOptions, data: &Path) -> anyhow::Result<String> {
        let Agents { first, runner, .. } = self.agents()?.clone();
        // Before the server starts: a script that waits for the server finds the token.
        let (file, token) = TokenFile::write(data.join("token"), options.token_key.clone(), first)?;
        self.token_files.push(file);
        let (file, _) = TokenFile::write(data.join("runner.token"), options.token_key.clone(), runner)?;
        self.token_files.push(file);
        let tenancy: Arc<dyn Tenancy> = self.tenancy()?;
        self.http_server = Some(HttpServer::open(options, tenancy)?);
        Ok(token)
    }

    /// Starts the delivery of webhooks.
    pub fn start_webhook_delivery(&mut self, options: &WebhookOptions, hosts: WebhookHosts) -> anyhow::Result<()> {
        let stores = self.stores()?;
        let (store, deliveries) = (stores.tenancy(), stores.deliveries());
        let store_of = move |owner_id| -> Arc<dyn EgressLog> {
            // No agent: the server itself makes the deliveries.
            let (agent_id, roles, profile) = (Uuid::nil(), vec![Role::Runner], Profile::Main);
            store.acting_as(Identity { owner_id, agent_id, roles, profile })
        };
        self.webhook_delivery = Some(WebhookDelivery::start(deliveries, options, hosts, store_of)?);
        Ok(())
    }

    /// Starts the runner in this process.
    pub fn start_runner(&mut self, prepared: PreparedRunner) -> anyhow::Result<()> {
        let Agents { runner, seeder, .. } = self.agents()?.clone();
        let local = self.tenancy()?.registration(&runner);
        let store = self.acting_as(runner)?;
        self.runner_task = Some(RunnerTask::start(store, Some(local), prepared, Some(seeder.agent_id)));
        Ok(())
    }

    pub fn agents(&self) -> anyhow::Result<&Agents> {
        self.agents.as_ref().context("the store is not open")
    }

    pub fn acting_as(&self, identity: Identity) -> anyhow::Result<Arc<dyn rcrt_breadcrumb::Breadcrumbs>> {
        Ok(self.tenancy()?.acting_as(identity))
    }

    /// The store without the checks of schema definitions, for seeding: the seeds include
    /// definitions. With the role of a runner: the tools that come with the program are no drafts.
    pub fn seeding_as(&self, mut identity: Identity) -> anyhow::Result<Arc<dyn rcrt_breadcrumb::Breadcrumbs>> {
        identity.roles.push(Role::Runner);
        Ok(self.stores()?.tenancy().acting_as(identity))
    }

    pub fn postgres(&self) -> Option<&DatabaseInfo> {
        self.postgres.as_ref()
    }

    fn tenancy(&self) -> anyhow::Result<Arc<LocalDispatch>> {
        Ok(self.tenancy.as_ref().context("the store is not open")?.clone())
    }

    fn stores(&self) -> anyhow::Result<Stores> {
        Ok(self.database.as_ref().context("the store is not open")?.stores.clone())
    }

    /// Returns when a required part stops by itself, with an error that names it.
    pub async fn lost(&mut self) -> anyhow::Error {
        let Self { database, http_server, webhook_delivery, runner_task, .. } = self;
        tokio::select! {
            () = async {
                match database {
                    Some(database) => database.lost().await,
                    None => std::future::pending().await,
                }
            } => anyhow!("Postgres stopped and cannot be restarted; its log is in the data folder"),
            () = async {
                match http_server {
                    Some(http_server) => http_server.lost().await,
                    None => std::future::pending().await,
                }
            } => anyhow!("the HTTP server stopped by itself"),
            () = async {
                match webhook_delivery {
                    Some(webhook_delivery) => webhook_delivery.lost().await,
                    None => std::future::pending().await,
                }
            } => anyhow!("the delivery of webhooks stopped by itself"),
            ended = async {
                match runner_task {
                    Some(runner_task) => runner_task.lost().await,
                    None => std::future::pending().await,
                }
            } => ended.err().unwrap_or_else(|| anyhow!("the runner stopped by itself")),
        }
    }

    /// Stops the parts in reverse order. The server first stops accepting new work; the runner then
    /// finishes its calls while the store and the server still accept their responses.
    pub async fn close(self, hurry: &CancellationToken) {
        if let Some(http_server) = &self.http_server {
            http_server.drain();
            // A runner of this process logs its own calls.
            if let Some(tenancy) = self.tenancy.as_ref().filter(|_| self.runner_task.is_none()) {
                log_running_calls(&**tenancy).await;
            }
        }
        if let Some(runner_task) = self.runner_task {
            runner_task.close(hurry).await;
        }
        if let Some(webhook_delivery) = self.webhook_delivery {
            webhook_delivery.close(hurry).await;
        }
        if let Some(http_server) = self.http_server {
            http_server.close(hurry).await;
        }
        for file in self.token_files {
            file.stop().await;
        }
        if let Some(schemas) = self.schemas {
            schemas.close().await;
        }
        if let Some(database) = self.database {
            database.close().await;
        }
        tracing::info!("stopped");
    }
}

/// Logs for how many calls the shutdown waits, if the database says it soon.
async fn log_running_calls(tenancy: &dyn Tenancy) {
    match timeout(COUNT_TIME, tenancy.unfinished_calls()).await {
        Ok(Ok(unfinished)) => {
            let calls: u64 = unfinished.iter().map(|calls| calls.claimed + calls.running).sum();
            tracing::info!(calls, "stopping: waiting for running calls");
        }
        _ => tracing::info!("stopping: waiting for running calls"),
    }
}
