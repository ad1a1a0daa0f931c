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
//!
//! # Example
//! ```no_run
//! use rcrt_postgres::{
//!     DATABASE, PostgresError, PostgresOptions, SUPERUSER, default_cache_dir, start,
//! };
//!
//! async fn version() -> Result<String, PostgresError> {
//!     let (data_dir, cache_dir) = ("data".into(), default_cache_dir());
//!     let options = PostgresOptions { data_dir, cache_dir, durable: true };
//!     let postgres = start(options, &|step: &str| println!("{step}")).await?;
//!     println!("{}", postgres.url(SUPERUSER, DATABASE));
//!     let version = postgres.version().to_owned();
//!     postgres.stop().await;
//!     Ok(version)
//! }
//! ```

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

pub use error::PostgresError;
pub use lock::{DataLock, LockHolder};
pub use rcrt_wheel::{ProgressFn, default_cache_dir, make_private};
pub use server::Postgres;
pub use supervisor::State;

/// The cluster's superuser. It logs in without a password, like everybody who can enter the
/// socket's folder.
pub const SUPERUSER: &str = "postgres";

/// The database in every new cluster.
pub const DATABASE: &str = "rcrt";

/// The folders and the durability of the private Postgres.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// The data folder, created if it does not exist. The cluster is a folder in it.
    pub data_dir: PathBuf,
    /// The cache for installed servers, shared by all data folders. Usually [`default_cache_dir`].
    pub cache_dir: PathBuf,
    /// `false` is faster, but loses data when the machine crashes. For tests only.
    pub durable: bool,
}

/// Takes the lock of the data folder and starts its Postgres. In a new folder, Postgres is first
/// installed and initialised.
pub async fn start(options: PostgresOptions, progress: ProgressFn<'_>) -> Result<Postgres, PostgresError> {
    let lock = DataLock::acquire(&options.data_dir)?;
    start_locked(lock, options, progress).await
}

/// Like [`start`], with a lock that the caller already took. It is held until the server has
/// stopped.
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
    ownership::set_owner(&cluster, &account)?;
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

/// Returns a connection URL, over the Unix socket, for the server that another process runs on this
/// data folder.
pub fn url_beside(data_dir: &Path, user: &str, database: &str) -> Result<String, PostgresError> {
    let data_dir = data_dir.canonicalize().map_err(at("find the data folder", data_dir))?;
    Ok(server::url(&socket::choose(&data_dir), user, database))
}

/// Returns the folder of `pg_dump` and the other client programs, in the version of this data
/// folder's cluster, or of a new cluster if there is none. Installs them if needed.
pub async fn programs(data_dir: &Path, cache_dir: &Path, progress: ProgressFn<'_>) -> Result<PathBuf, PostgresError> {
    let major = cluster::major_version(&data_dir.join("postgres"))?;
    Ok(install::find(cache_dir, major, progress).await?.bin)
}

/// Adds the path to an I/O error.
fn at<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> PostgresError + 'a {
    move |source| PostgresError::Io { what, path: path.to_owned(), source }
}
