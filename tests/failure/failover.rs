use rcrt_breadcrumb::{BreadcrumbQuery, NewBreadcrumb, Records, Selector};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

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

/// Also while the replica does not apply anything, and when it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_from_a_replica_has_everything_that_was_written_before() {
    let mut pair = Pair::asynchronous().await;
    let installation = Installation::new();
    let listen = installation.listen.to_string();
    let replica = pair.standby_url();
    let url = pair.url();
    let options = ["server", "--listen", &listen, "--database-url", &url, "--read-database-url", &replica];
    let server = installation.start(&options);
    let store = installation.client().await;
    let write_and_list = async || {
        let tag = format!("tag:{}", Uuid::new_v4());
        let record = NewBreadcrumb { title: "A note".into(), tags: vec![tag.clone()], ..NewBreadcrumb::default() };
        let written = store.create(record, None).await.unwrap().id;
        let selector = Selector { all_tags: vec![tag], ..Selector::default() };
        let query = BreadcrumbQuery { selector, limit: 10, offset: 0, include_context: false };
        let listed: Vec<Uuid> = store.list(&query).await.unwrap().into_iter().map(|item| item.id).collect();
        assert_eq!(listed, [written]);
    };

    for _ in 0..50 {
        write_and_list().await;
    }
    let mut standby = PgConnection::connect(&replica).await.unwrap();
    let readers = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rcrt'";
    assert!(sqlx::query_scalar::<_, i64>(readers).fetch_one(&mut standby).await.unwrap() > 0, "it was read");
    sqlx::query("SELECT pg_wal_replay_pause()").execute(&mut standby).await.unwrap();
    for _ in 0..5 {
        write_and_list().await;
    }
    sqlx::query("SELECT pg_wal_replay_resume()").execute(&mut standby).await.unwrap();
    pair.stop_standby().await;
    for _ in 0..5 {
        write_and_list().await;
    }
    assert_eq!(server.stop().await, Some(0), "{}", installation.log());
}
