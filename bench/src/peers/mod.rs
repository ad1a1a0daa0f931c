//! Programs that do what RCRT does, or a part of it, with the settings that their documentation
//! recommends. Each runs the same trivial tool, which adds two numbers, and is measured from the
//! client's request to the client's result.
//!
//! A durable peer is as durable as RCRT: the request and the result are on the disk before the
//! client gets the result. A peer that is not available on a machine is listed with the reason,
//! never left out.

mod child;
mod database;
mod deno;
mod graphile_worker;
mod packages;
mod pg_boss;
mod restate;
pub mod section;
mod sum;
mod waiting;
mod web;
mod workerd;

use std::path::Path;
use std::sync::Arc;

use rcrt_load::Target;

use self::child::Child;
use self::database::QueueDatabase;
use self::packages::Packages;

/// Which peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Deno,
    GraphileWorker,
    PgBoss,
    Restate,
    Workerd,
}

impl Which {
    pub const ALL: [Self; 5] = [Self::Deno, Self::GraphileWorker, Self::PgBoss, Self::Restate, Self::Workerd];

    pub fn name(self) -> &'static str {
        match self {
            Self::Deno => "deno",
            Self::GraphileWorker => "graphile-worker",
            Self::PgBoss => "pg-boss",
            Self::Restate => "Restate",
            Self::Workerd => "workerd",
        }
    }

    /// A short name, because the path of Postgres's socket starts with it.
    fn folder(self) -> &'static str {
        match self {
            Self::Deno => "deno",
            Self::GraphileWorker => "graphile",
            Self::PgBoss => "pgboss",
            Self::Restate => "restate",
            Self::Workerd => "workerd",
        }
    }
}

/// A running peer.
pub struct Peer {
    pub name: &'static str,
    pub version: String,
    /// Whether request and result are on the disk before the client gets the result.
    pub is_durable: bool,
    /// Its settings, in a few words.
    pub settings: &'static str,
    target: Arc<dyn Target>,
    children: Vec<Child>,
    database: Option<QueueDatabase>,
}

impl Peer {
    /// One call of the tool, checked for its sum.
    pub fn target(&self) -> Arc<dyn Target> {
        self.target.clone()
    }

    /// Stops its processes and waits for them.
    pub async fn stop(self) {
        drop(self.target);
        for child in self.children {
            child.stop().await;
        }
        if let Some(database) = self.database {
            database.stop().await;
        }
    }
}

/// A peer that is not available on this machine.
#[derive(Debug, Clone)]
pub struct Missing {
    pub name: &'static str,
    /// The reason, in one sentence.
    pub why: String,
}

/// Installs the peer if necessary, starts it, and makes one call. `folder` is an empty folder for
/// its files. It must be on the disk that RCRT is measured on.
pub async fn start(which: Which, folder: &Path) -> Result<Peer, Missing> {
    let missing = |error: anyhow::Error| Missing { name: which.name(), why: format!("{error:#}") };
    let peer = open(which, folder).await.map_err(missing)?;
    match peer.target.call(0).await {
        Ok(()) => Ok(peer),
        Err(why) => {
            peer.stop().await;
            Err(Missing { name: which.name(), why: format!("its first call failed: {why}") })
        }
    }
}

async fn open(which: Which, folder: &Path) -> anyhow::Result<Peer> {
    let packages = Packages::install().await?;
    std::fs::create_dir_all(folder)?;
    match which {
        Which::Deno => deno::start(&packages, folder),
        Which::GraphileWorker => Box::pin(graphile_worker::start(&packages, folder)).await,
        Which::PgBoss => Box::pin(pg_boss::start(&packages, folder)).await,
        Which::Restate => restate::start(&packages, folder).await,
        Which::Workerd => workerd::start(&packages, folder).await,
    }
}
