use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::flood::{self, REQUESTS};
use crate::process::Place;
use crate::watcher::Watcher;

/// The embedded Postgres is killed twice under a running house, which starts it again.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_500_requests() {
    let place = Place::new();
    let listen = place.listen.to_string();
    let up = place.start(&["up", "--listen", &listen, "--lease-ms", "2000"]);
    let store = place.client().await;
    let mut watcher = Watcher::start(store.clone()).await;

    let flood = tokio::spawn(flood::send(store.clone()));
    for (answered, starts) in [(100, 2), (300, 3)] {
        watcher.answered(answered).await;
        kill(postmaster(&place), Signal::SIGKILL).unwrap();
        place.said("Postgres takes connections", starts).await;
    }
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
    assert_eq!(up.stop().await, Some(0), "{}", place.log());
}

fn postmaster(place: &Place) -> Pid {
    let file = std::fs::read_to_string(place.data.path().join("postgres").join("postmaster.pid")).unwrap();
    Pid::from_raw(file.lines().next().unwrap().trim().parse().unwrap())
}
