//! graphile-worker: its SQL function adds a job. Its worker, in Node, stores the sum and then
//! notifies the client.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_load::Target;
use serde_json::json;
use sqlx::PgPool;
use tokio::process::Command;

use super::child::{Child, Pipes};
use super::database::QueueDatabase;
use super::packages::Packages;
use super::sum::Sum;
use super::waiting::Waiting;
use super::{Peer, Which};

pub async fn start(packages: &Packages, folder: &Path) -> anyhow::Result<Peer> {
    let database = QueueDatabase::start(folder).await?;
    let mut command = Command::new(packages.node().await?);
    command.arg(packages.file("graphile-worker.js")).env("DATABASE_URL", database.url());
    let log = folder.join("graphile-worker.log");
    let (child, mut pipes) = Child::start(command, &log)?;
    pipes.object_with("ready", &log).await?;
    let waiting = Arc::new(Waiting::default());
    let target = Jobs { clients: database.clients().await?, waiting: waiting.clone() };
    tokio::spawn(listen(pipes, waiting));
    Ok(Peer {
        name: Which::GraphileWorker.name(),
        version: packages.version("graphile-worker")?,
        is_durable: true,
        settings: "32 jobs at once, local queue of 500, completions batched, LISTEN/NOTIFY",
        target: Arc::new(target),
        children: vec![child],
        database: Some(database),
    })
}

/// Returns when the worker exits.
async fn listen(mut pipes: Pipes, waiting: Arc<Waiting>) {
    while let Ok(Some(line)) = pipes.stdout.next_line().await {
        waiting.on_line(&line);
    }
    waiting.close();
}

struct Jobs {
    clients: PgPool,
    waiting: Arc<Waiting>,
}

#[async_trait]
impl Target for Jobs {
    async fn call(&self, number: u64) -> Result<(), String> {
        let sum = Sum::of(number);
        let call = self.waiting.begin();
        let mut payload = json!(sum);
        payload["call"] = json!(call.number);
        sqlx::query("SELECT graphile_worker.add_job('add', $1::json)")
            .bind(payload)
            .execute(&self.clients)
            .await
            .map_err(|error| format!("the job was not added: {error}"))?;
        sum.check(call.answer().await?)
    }
}
