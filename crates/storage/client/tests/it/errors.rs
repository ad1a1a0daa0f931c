//! An error arrives over HTTP as the error that the store returned.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AgentInfo, BreadcrumbChanges, BreadcrumbQuery, CallQueue, ClaimRequest, Lease, NewSecret, Records, Release, Role,
    Search, SearchMode, SecretChanges, Secrets, StoreError, Tenancy, TenancyDecorator, Violation, Violations,
};
use rcrt_client::{Client, Credentials};
use rcrt_server::{AuthMode, Server, ServerOptions, TokenKey};
use rcrt_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{ClientHarness, note, response};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_error_arrives_unchanged() {
    let harness = ClientHarness::start().await;
    let (client, store, _proxy) = harness.behind_proxy().await;
    let id = store.create(note("a"), Some("key")).await.unwrap().id;
    let none = Uuid::new_v4();
    let lease = Lease { request: none, fence: 3 };
    let secret = |name: &str, value: &str| NewSecret { readable: true, ..NewSecret::new(name, value) };
    store.create_secret(secret("TAKEN", "v")).await.unwrap();
    let changes = BreadcrumbChanges::default;
    let claim = ClaimRequest::new(none, 0, 5);

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
        search(&Search { selector: BreadcrumbQuery::tagged("\0").selector, ..Search::of("x") }),
        search(&Search { qvec: Some(vec![0.5, -1.0]), ..Search::default() }),
        search(&Search { mode: Some(SearchMode::Vector), ..Search::of("x") }),
        claim(&claim),
        start(lease, 1),
        complete(lease, response("x")),
        release(lease, Release::Unstarted),
        call(none),
        cancel(none),
        create_secret(secret("TAKEN", "w")),
        create_secret(secret("NO_VALUE", "")),
        update_secret(none, SecretChanges::value("v")),
        delete_secret(none),
        grant_secret(none, none),
        grant_secret(none, id),
        revoke_secret(none, none),
        decrypt_secret(none, "why", None),
        decrypt_secret(none, "why", Some(none)),
    );
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_is_unavailable() {
    let harness = ClientHarness::start().await;
    let (client, _store, _proxy) = harness.behind_proxy().await;
    client.secrets().await.unwrap();
    harness.store.close().await;
    let gone = client.secrets().await;
    assert!(matches!(gone, Err(StoreError::Unavailable(_))), "{gone:?}");
    harness.close().await;
}

/// The real store, except that its agents cannot be listed, for a reason that the test sets.
struct Refusing {
    store: Arc<Store>,
    reason: Mutex<StoreError>,
}

#[async_trait]
impl TenancyDecorator for Refusing {
    fn inner(&self) -> &dyn Tenancy {
        &*self.store
    }

    async fn agents(&self, _: Uuid) -> Result<Vec<AgentInfo>, StoreError> {
        Err(self.reason.lock().unwrap().clone())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_error_survives_http() {
    let harness = ClientHarness::start().await;
    let agent = harness.new_agent(rcrt_conformance::Harness::tenant(&harness).await, &[Role::Curator]).await;
    let refusing = Arc::new(Refusing { store: harness.store.clone(), reason: Mutex::new(StoreError::Full) });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let token_key = TokenKey::from_bytes(&[5; 32]).unwrap();
    let identity = crate::harness::identity(&agent);
    let token = token_key.issue(&identity, Duration::from_mins(5)).unwrap();
    let server = Server::new(ServerOptions::new(listener, AuthMode::Keys, token_key), refusing.clone()).unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server.run(shutdown.clone()));
    let client = Client::new(url.parse().unwrap(), Credentials::Token(token));

    let id = Uuid::new_v4();
    let several = vec![Violation::new("a.b[3]", "is wrong"), Violation::new("", "is odd")];
    let mut kept = vec![
        StoreError::VersionConflict { expected: 3, actual: i64::MAX },
        StoreError::Invalid(Violations(several)),
        StoreError::IdempotencyMismatch,
        StoreError::LeaseLost { request: id },
        StoreError::Unauthorized("why".into()),
        StoreError::Forbidden("why".into()),
        StoreError::TooLarge { limit: 77 },
        StoreError::QuotaExceeded { quota: "records".into(), limit: 7, used: 9 },
        StoreError::QueueFull { limit: 20_000 },
        StoreError::SecretKeyMissing("why".into()),
        StoreError::Full,
        StoreError::Busy("why".into()),
    ];
    kept.extend(
        ["breadcrumb", "request", "secret", "grant", "tool", "agent"].map(|what| StoreError::NotFound { what, id }),
    );
    for error in kept {
        *refusing.reason.lock().unwrap() = error.clone();
        assert_eq!(client.agents().await, Err(error));
    }
    // Only the kind of these is sent: their texts are internal to the server.
    for error in [StoreError::Internal("db text".into()), StoreError::Unavailable("db text".into())] {
        *refusing.reason.lock().unwrap() = error.clone();
        let arrived = client.agents().await.unwrap_err();
        assert_eq!(std::mem::discriminant(&arrived), std::mem::discriminant(&error), "{arrived}");
        assert!(!arrived.to_string().contains("db text"));
    }
    shutdown.cancel();
    serving.await.unwrap();
    harness.close().await;
}
