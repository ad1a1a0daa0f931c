//! pg-boss: its own client, in Node, sends the jobs. It gets the calls from this process on a pipe.
//! The result comes as a notification in the commit that completes the job.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use rcrt_load::Target;
use serde_json::json;
use sqlx::postgres::PgListener;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::child::{Child, Pipes};
use super::database::QueueDatabase;
use super::packages::Packages;
use super::sum::Sum;
use super::waiting::Waiting;
use super::{Peer, Which};

pub async fn start(packages: &Packages, folder: &Path) -> anyhow::Result<Peer> {
    let database = QueueDatabase::start(folder).await?;
    let mut command = Command::new(packages.node().await?);
    command.arg(packages.file("pg-boss.js")).env("DATABASE_URL", database.url());
    let log = folder.join("pg-boss.log");
    let (child, mut pipes) = Child::start(command, &log)?;
    pipes.object_with("ready", &log).await?;
    let mut listener = PgListener::connect(&database.url()).await.context("its Postgres cannot be reached")?;
    listener.listen("answers").await?;
    let waiting = Arc::new(Waiting::default());
    let Pipes { stdin, stdout } = pipes;
    let listening = tokio::spawn(listen(listener, waiting.clone()));
    let hearing = tokio::spawn(read_failures(stdout, waiting.clone()));
    Ok(Peer {
        name: Which::PgBoss.name(),
        version: packages.version("pg-boss")?,
        is_durable: true,
        settings: "LISTEN/NOTIFY, two workers, batches of 32 with a result for each job",
        target: Arc::new(Jobs { stdin: Mutex::new(stdin), waiting, tasks: [listening, hearing] }),
        children: vec![child],
        database: Some(database),
    })
}

async fn listen(mut listener: PgListener, waiting: Arc<Waiting>) {
    while let Ok(notification) = listener.recv().await {
        waiting.on_line(notification.payload());
    }
    waiting.close();
}

/// Reports jobs that could not be sent.
async fn read_failures(mut lines: super::child::Said, waiting: Arc<Waiting>) {
    while let Ok(Some(line)) = lines.next_line().await {
        waiting.on_line(&line);
    }
}

struct Jobs {
    stdin: Mutex<ChildStdin>,
    waiting: Arc<Waiting>,
    tasks: [JoinHandle<()>; 2],
}

#[async_trait]
impl Target for Jobs {
    async fn call(&self, number: u64) -> Result<(), String> {
        let sum = Sum::of(number);
        let call = self.waiting.begin();
        let mut job = json!(sum);
        job["call"] = json!(call.number);
        let line = format!("{job}\n");
        let written = self.stdin.lock().await.write_all(line.as_bytes()).await;
        written.map_err(|error| format!("the job was not sent: {error}"))?;
        sum.check(call.answer().await?)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
