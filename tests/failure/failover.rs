use super::flood::{self, REQUESTS};
use crate::process::Installation;
use crate::standby::Pair;
use crate::watcher::Watcher;

/// The primary is killed and its synchronous standby promoted.
#[tokio::test(flavor = "multi_thread")]
async fn promoted_in_the_middle_of_500_requests() {
    let pair = Pair::synchronous().await;
    let installation = Installation::new();
    let listen = installation.listen.to_string();
    let server = installation.start(&["server", "--listen", &listen, "--database-url", &pair.url()]);
    let store = installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;
    let url = installation.url().to_string();
    let _runners = [(); 2].map(|()| installation.start(&["runner", "--server", &url, "--lease-ms", "2000"]));

    let flood = tokio::spawn(flood::send(store.clone()));
    watcher.answered(150).await;
    pair.fail_over().await;
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
    assert_eq!(server.stop().await, Some(0), "{}", installation.log());
}
