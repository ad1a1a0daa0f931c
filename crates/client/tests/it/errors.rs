//! An error over the wire is the error that the store gave.

use breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, Breadcrumbs, ClaimRequest, Lease, NewSecret, Release, StoreError, TextSearch,
};
use uuid::Uuid;

use crate::harness::{ClientHarness, note, response};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_error_comes_back_as_it_was() {
    let harness = ClientHarness::start().await;
    let (client, store, _proxy) = harness.behind_proxy().await;
    let id = store.create(note("a"), Some("key")).await.unwrap().id;
    let none = Uuid::new_v4();
    let lease = Lease { request: none, fence: 3 };
    let secret = |name: &str, value: &str| NewSecret { name: name.into(), value: value.into() };
    store.create_secret(secret("TAKEN", "v")).await.unwrap();
    let changes = BreadcrumbChanges::default;
    let claim = ClaimRequest { runner_id: none, limit: 0, lease_ms: 5, except_tools: Vec::new() };

    macro_rules! same {
        ($($call:ident($($argument:expr),*)),* $(,)?) => {$({
            let over_the_wire = client.$call($($argument),*).await.err().expect(stringify!($call));
            let directly = store.$call($($argument),*).await.err().expect(stringify!($call));
            assert_eq!(over_the_wire, directly, stringify!($call));
        })*};
    }
    same!(
        get(none),
        history(none),
        update(none, 1, changes()),
        update(id, 9, changes()),
        update(id, 1, BreadcrumbChanges { title: Some("\0".into()), ..changes() }),
        delete(none, None),
        delete(id, Some(9)),
        create(note("b"), Some("key")),
        create(note(""), None),
        create(note("x".repeat(501)), None),
        list(&BreadcrumbQuery { limit: 5000, ..BreadcrumbQuery::default() }),
        list(&BreadcrumbQuery::tagged("")),
        search(&TextSearch {
            q: "x".into(),
            nn: 5,
            selector: BreadcrumbQuery::tagged("\0").selector,
            include_context: false
        }),
        claim(&claim),
        start(lease, 1),
        complete(lease, response("x")),
        release(lease, Release::Unstarted),
        call(none),
        cancel(none),
        create_secret(secret("TAKEN", "w")),
        create_secret(secret("not a name", "")),
        rotate_secret(none, "v".into()),
        delete_secret(none),
        decrypt_secret(none, "why"),
    );
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_gone_is_unavailable() {
    let harness = ClientHarness::start().await;
    let (client, _store, _proxy) = harness.behind_proxy().await;
    client.secrets().await.unwrap();
    harness.store.close().await;
    let gone = client.secrets().await;
    assert!(matches!(gone, Err(StoreError::Unavailable(_))), "{gone:?}");
    harness.close().await;
}
