use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::watch;

use crate::install::Installed;
use crate::supervisor::{State, Supervisor};
use crate::{DataLock, PostgresError};

/// A running private Postgres. Dropping it stops the server as well, without waiting for that; [`Postgres::stop`] waits.
#[derive(Debug)]
pub struct Postgres {
    supervisor: Supervisor,
    installed: Installed,
    socket_dir: PathBuf,
}

impl Postgres {
    pub(crate) fn new(supervisor: Supervisor, installed: Installed, socket_dir: PathBuf) -> Self {
        Self { supervisor, installed, socket_dir }
    }

    /// A connection URL for sqlx and libpq, over the Unix socket. It needs no password.
    pub fn url(&self, user: &str, database: &str) -> String {
        url(&self.socket_dir, user, database)
    }

    /// As the server gives it, such as `18.6`.
    pub fn version(&self) -> &str {
        &self.installed.version
    }

    /// The folder of `postgres` and, mostly, `psql` and `pg_dump`.
    pub fn bin_dir(&self) -> &Path {
        &self.installed.bin
    }

    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// What the server is doing, now and from now on: a crash and the restart after it are seen here.
    pub fn state(&self) -> watch::Receiver<State> {
        self.supervisor.state()
    }

    /// Tells who finds the data folder taken where this process serves.
    pub fn set_listening(&self, address: &str) -> Result<(), PostgresError> {
        self.supervisor.with_lock(|lock: &mut DataLock| lock.set_listening(address))
    }

    /// Ends only when the server is down for good: it was started again and again, and did not stay. A single crash is not reported
    /// here.
    pub async fn wait_exit(&self) -> PostgresError {
        self.supervisor.wait_exit().await
    }

    /// Disconnects everybody, writes everything down, and waits until the server has ended; then frees the data folder. Bounded: a
    /// server that does not end in time is made to, and recovers at its next start.
    pub async fn stop(self) {
        self.supervisor.stop().await;
    }
}

pub(crate) fn url(socket_dir: &Path, user: &str, database: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let socket = encode(&socket_dir.to_string_lossy());
    format!("postgres://{}@localhost/{}?host={socket}&sslmode=disable", encode(user), encode(database))
}
