use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::flood::{self, REQUESTS};
use crate::process::Installation;
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

fn postmaster(installation: &Installation) -> Pid {
    let file = std::fs::read_to_string(installation.data.path().join("postgres").join("postmaster.pid")).unwrap();
    Pid::from_raw(file.lines().next().unwrap().trim().parse().unwrap())
}
