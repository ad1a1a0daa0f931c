use super::flood::{self, REQUESTS};
use super::runner::Apart;
use crate::process::Installation;
use crate::watcher::Watcher;

/// Only the server is killed. Two runners continue and reconnect to it.
#[tokio::test(flavor = "multi_thread")]
async fn killed_under_live_runners_in_the_middle_of_500_requests() {
    let apart = Apart::new().await;
    let mut server = apart.server();
    let store = apart.installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;
    let _runners = [apart.runner(), apart.runner()];

    let flood = tokio::spawn(flood::send(store.clone()));
    for answered in [80, 200, 320] {
        watcher.answered(answered).await;
        server.kill().await;
        server = apart.server();
    }
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
    assert_eq!(server.stop().await, Some(0), "{}", apart.installation.log());
}

/// `rcrt up`, with everything in one process, is killed when half of the requests are written.
#[tokio::test(flavor = "multi_thread")]
async fn killed_in_one_process_in_the_middle_of_500_requests() {
    let installation = Installation::new();
    let listen = installation.listen.to_string();
    let up = || installation.start(&["up", "--listen", &listen, "--lease-ms", "2000"]);
    let first = up();
    let store = installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;

    let flood = tokio::spawn(flood::send(store.clone()));
    watcher.answered(100).await;
    first.kill().await;
    let second = up();
    watcher.answered(300).await;
    second.kill().await;
    let third = up();
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
    assert_eq!(third.stop().await, Some(0), "{}", installation.log());
}
