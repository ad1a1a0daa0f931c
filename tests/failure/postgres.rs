use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use tokio::time::timeout;

use super::flood::{self, REQUESTS};
use crate::process::{Installation, PATIENCE};
use crate::watcher::Watcher;

/// The embedded Postgres is killed twice while `rcrt up` runs, which starts it again.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_500_requests() {
    let installation = Installation::new();
    let listen = installation.listen.to_string();
    let up = installation.start(&["up", "--listen", &listen, "--lease-ms", "2000"]);
    let store = installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;

    let flood = tokio::spawn(flood::send(store.clone()));
    for (answered, starts) in [(100, 2), (300, 3)] {
        watcher.answered(answered).await;
        kill(postmaster(&installation), Signal::SIGKILL).unwrap();
        installation.said("Postgres accepts connections", starts).await;
    }
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

/// The database ends connections of `rcrt up` when that serves clients already, and compares the
/// included tools with its records.
#[tokio::test(flavor = "multi_thread")]
async fn connections_lost_while_rcrt_up_starts() {
    let (installation, database) = (Installation::new(), TestDatabase::new().await);
    let mut connection = PgConnection::connect(&database.admin_url).await.unwrap();
    let mut lock = connection.begin().await.unwrap();
    sqlx::query("LOCK TABLE breadcrumbs IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let listen = installation.listen.to_string();
    let up = installation.start(&["up", "--listen", &listen, "--database-url", &database.admin_url]);
    installation.client().await;

    let end_blocked = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE NOT granted
                       AND relation = 'breadcrumbs'::regclass
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let losses = async {
        while !installation.log().contains("start_retry: the store is not available") {
            sqlx::query(end_blocked).execute(&mut *lock).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, losses).await.expect("`rcrt up` continues");
    lock.rollback().await.unwrap();

    installation.said("Ready after", 1).await;
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

fn postmaster(installation: &Installation) -> Pid {
    let file = std::fs::read_to_string(installation.data.path().join("postgres").join("postmaster.pid")).unwrap();
    Pid::from_raw(file.lines().next().unwrap().trim().parse().unwrap())
}
