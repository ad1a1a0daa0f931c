//! A Postgres with a standby, at one address that moves to the standby when it is promoted, as with
//! a name that follows the primary.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcrt_postgres::{DATABASE, Postgres, PostgresOptions, SUPERUSER, default_cache_dir};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::process::Command;

use crate::process::PATIENCE;

/// The settings of a cluster that has standbys; the last of a name in the file counts. A standby is
/// promoted when it looks for the primary again.
const SETTINGS: &str = "wal_level = replica\nmax_wal_senders = 4\nwal_retrieve_retry_interval = 100ms\n";

pub struct Pair {
    /// Dropped to stop it.
    _primary: Postgres,
    standby: Option<Postgres>,
    folder: TempDir,
}

impl Pair {
    /// A commit waits until the standby has it.
    pub async fn synchronous() -> Self {
        let pair = Self::asynchronous().await;
        let mut primary = PgConnection::connect(&pair.url()).await.unwrap();
        for change in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
            sqlx::query(change).execute(&mut primary).await.unwrap();
        }
        let is_synchronous = "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
        let becomes = async {
            while !sqlx::query_scalar::<_, bool>(is_synchronous).fetch_one(&mut primary).await.unwrap() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, becomes).await.expect("the standby is synchronous");
        pair
    }

    pub async fn asynchronous() -> Self {
        // Short, so that the paths of the sockets are.
        let folder = tempfile::Builder::new().prefix("rcrt-pair-").tempdir().unwrap();
        let [primary_dir, standby_dir] = ["a", "b"].map(|name| folder.path().join(name));
        start(&primary_dir).await.stop().await;
        let settings = primary_dir.join("postgres").join("postgresql.conf");
        fs::OpenOptions::new().append(true).open(settings).unwrap().write_all(SETTINGS.as_bytes()).unwrap();
        let primary = start(&primary_dir).await;
        fs::create_dir(&standby_dir).unwrap();
        copy(&primary, &standby_dir.join("postgres")).await;
        let standby = start(&standby_dir).await;
        symlink(primary.socket_dir(), folder.path().join("at")).unwrap();
        Self { folder, _primary: primary, standby: Some(standby) }
    }

    /// The address that moves.
    pub fn url(&self) -> String {
        let socket = self.folder.path().join("at").to_string_lossy().replace('/', "%2F");
        format!("postgres://{SUPERUSER}@localhost/{DATABASE}?host={socket}&sslmode=disable")
    }

    /// The standby, which only answers reads until it is promoted.
    pub fn standby_url(&self) -> String {
        self.standby().url(SUPERUSER, DATABASE)
    }

    /// Stops the standby. The primary stays until the pair goes out of scope.
    pub async fn stop_standby(&mut self) {
        if let Some(standby) = self.standby.take() {
            standby.stop().await;
        }
    }

    fn standby(&self) -> &Postgres {
        self.standby.as_ref().expect("the standby was stopped")
    }

    /// Kills the primary for good, promotes the standby and moves the address there. All processes
    /// end as on a machine without power: one that outlives the first one does not wait for the
    /// standby any more, and shows others what the standby does not have.
    pub async fn fail_over(&self) {
        let primary = self.folder.path().join("a").join("postgres");
        let running = fs::read_to_string(primary.join("postmaster.pid")).unwrap();
        // Without this file it cannot be started again.
        fs::rename(primary.join("PG_VERSION"), primary.join("PG_VERSION.moved")).unwrap();
        let first = running.lines().next().unwrap().trim();
        let process = |pid: &str| Pid::from_raw(pid.parse().unwrap());
        // It starts no further one.
        kill(process(first), Signal::SIGSTOP).unwrap();
        let others = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap();
        for pid in others.split_whitespace().chain([first]) {
            // One may just have ended by itself.
            let _ = kill(process(pid), Signal::SIGKILL);
        }
        let mut standby = PgConnection::connect(&self.standby_url()).await.unwrap();
        let promoted: bool = sqlx::query_scalar("SELECT pg_promote()").fetch_one(&mut standby).await.unwrap();
        assert!(promoted);
        let [at, next] = ["at", "next"].map(|name| self.folder.path().join(name));
        symlink(self.standby().socket_dir(), &next).unwrap();
        fs::rename(next, at).unwrap();
    }
}

async fn start(folder: &Path) -> Postgres {
    let options = PostgresOptions { data_dir: PathBuf::from(folder), cache_dir: default_cache_dir(), durable: false };
    rcrt_postgres::start(options, &|_| {}).await.unwrap()
}

async fn copy(primary: &Postgres, to: &Path) {
    let copied = Command::new(primary.bin_dir().join("pg_basebackup"))
        .args(["--username", SUPERUSER, "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"])
        .arg("--no-sync")
        .arg("--host")
        .arg(primary.socket_dir())
        .arg("--pgdata")
        .arg(to)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
}
