//! A private Postgres with pgvector: finds or installs it, starts it, supervises it and stops it.
//!
//! It listens on a Unix socket in a folder that only its owner can enter, and on no TCP port. Every
//! process that can reach the socket is trusted. One process at a time owns a data folder, through
//! a lock file that names the owner. A server that dies is started again.
//!
//! This crate deliberately knows nothing about tables, migrations or tenants. It creates one empty
//! database in the cluster.
//!
//! A data folder contains `lock` (who owns the folder), `postgres/` (the cluster), `postgres.log`
//! and `postgres.log.1`, and `run/` (the socket).
//!
//! Begin with `server.rs`, `supervisor.rs` and `lock.rs`.

mod account;
mod cluster;
mod error;
mod install;
mod lock;
mod log_file;
mod orphans;
mod ownership;
mod pid_file;
mod server;
mod socket;
mod supervisor;
mod system_postgres;
mod wheel;

use std::path::{Path, PathBuf};

pub use ::wheel::{ProgressFn, default_cache_dir, make_private};
pub use error::PostgresError;
pub use lock::{DataLock, LockHolder};
pub use server::Postgres;
pub use supervisor::State;

/// The cluster's superuser; it logs in without a password, like everybody who can enter the socket's folder.
pub const SUPERUSER: &str = "postgres";

/// The database that every new cluster has.
pub const DATABASE: &str = "rcrt";

/// Where the private Postgres lives and how careful it is.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The folder that holds everything that must last; made when it is not there. Not the cluster itself, which is a folder in it.
    pub data_dir: PathBuf,
    /// Where installed servers are kept, shared by all data folders. [`default_cache_dir`] is the usual one.
    pub cache_dir: PathBuf,
    /// `false` trades safety against a crash of the machine for speed: for tests only.
    pub durable: bool,
}

/// Takes the data folder's lock, then starts its Postgres; on a new folder it is installed and initialised first.
pub async fn start(options: PostgresOptions, progress: ProgressFn<'_>) -> Result<Postgres, PostgresError> {
    let lock = DataLock::acquire(&options.data_dir)?;
    start_locked(lock, options, progress).await
}

/// Like [`start`], for who took the lock already; the lock is held until the server has stopped.
pub async fn start_locked(
    lock: DataLock,
    options: PostgresOptions,
    progress: ProgressFn<'_>,
) -> Result<Postgres, PostgresError> {
    let data_dir = lock.data_dir().to_owned();
    let cluster = data_dir.join("postgres");
    ownership::check(&cluster)?;
    let account = account::Account::choose().await?;
    let installed = install::find(&options.cache_dir, cluster::major_version(&cluster)?, progress).await?;
    ownership::adopt(&cluster, &account)?;
    cluster::create(&cluster, &installed, &account, options.durable, progress).await?;
    let socket_dir = socket::prepare(&data_dir, &account)?;
    orphans::stop(&cluster, &socket_dir, progress).await?;
    let supervisor = supervisor::Supervisor::start(supervisor::Launch {
        installed: installed.clone(),
        account,
        cluster,
        socket_dir: socket_dir.clone(),
        log: data_dir.join("postgres.log"),
        durable: options.durable,
        lock,
    })
    .await?;
    Ok(Postgres::new(supervisor, installed, socket_dir))
}

/// A connection URL for the server that another process runs on this data folder, over its Unix socket.
pub fn url_beside(data_dir: &Path, user: &str, database: &str) -> Result<String, PostgresError> {
    let data_dir = data_dir.canonicalize().map_err(at("find the data folder", data_dir))?;
    Ok(server::url(&socket::choose(&data_dir), user, database))
}

/// The folder of `pg_dump` and the like: of the version of this data folder's cluster, or where it has none, of the one that
/// a new cluster would get. Installed first where it is not there.
pub async fn programs(data_dir: &Path, cache_dir: &Path, progress: ProgressFn<'_>) -> Result<PathBuf, PostgresError> {
    let major = cluster::major_version(&data_dir.join("postgres"))?;
    Ok(install::find(cache_dir, major, progress).await?.bin)
}

/// Names a path in an I/O error, since the system's own text does not.
fn at<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> PostgresError + 'a {
    move |source| PostgresError::Io { what, path: path.to_owned(), source }
}
