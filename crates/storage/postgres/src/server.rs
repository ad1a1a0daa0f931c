use std::path::{Path, PathBuf};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::watch;

use crate::install::Installed;
use crate::supervisor::{State, Supervisor};
use crate::{DataLock, PostgresError};

/// A running private Postgres. Dropping it stops the server without waiting; [`Postgres::stop`]
/// waits.
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

    /// The server's version, such as `18.6`.
    pub fn version(&self) -> &str {
        &self.installed.version
    }

    /// The folder with `postgres` and usually `psql` and `pg_dump`.
    pub fn bin_dir(&self) -> &Path {
        &self.installed.bin
    }

    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    /// The state of the server, now and in the future, including crashes and restarts.
    pub fn state(&self) -> watch::Receiver<State> {
        self.supervisor.state()
    }

    /// Writes the address that this process listens on into the lock file, for processes that find
    /// the data folder locked.
    pub fn set_listening(&self, address: &str) -> Result<(), PostgresError> {
        self.supervisor.with_lock(|lock: &mut DataLock| lock.set_listening(address))
    }

    /// Returns when the server is down permanently, because restarts failed repeatedly. A single
    /// crash is not reported here.
    pub async fn wait_exit(&self) -> PostgresError {
        self.supervisor.wait_exit().await
    }

    /// Disconnects all clients, flushes all data, waits until the server has stopped, and releases
    /// the data folder. A server that does not stop in time is killed, and recovers at its next
    /// start.
    pub async fn stop(self) {
        self.supervisor.stop().await;
    }
}

pub(crate) fn url(socket_dir: &Path, user: &str, database: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let socket = encode(&socket_dir.to_string_lossy());
    format!("postgres://{}@localhost/{}?host={socket}&sslmode=disable", encode(user), encode(database))
}
