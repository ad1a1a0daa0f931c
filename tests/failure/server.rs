use super::flood::{self, REQUESTS};
use crate::process::{Place, Rcrt};
use crate::watcher::Watcher;

/// The whole house in one process, killed with the flood half written: Postgres is left over and taken over.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_500_requests() {
    let place = Place::new();
    let listen = place.listen.to_string();
    let up = || Rcrt::start(place.data.path(), &["up", "--listen", &listen, "--lease-ms", "2000"]);
    let first = up();
    let store = place.client().await;
    let mut watcher = Watcher::start(store.clone()).await;

    let flood = tokio::spawn(flood::send(store.clone(), "timer", flood::short_wait, REQUESTS));
    watcher.answered(100).await;
    first.kill().await;
    let second = up();
    watcher.answered(300).await;
    second.kill().await;
    let third = up();
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
    assert_eq!(third.stop().await, Some(0), "{}", place.log());
}
