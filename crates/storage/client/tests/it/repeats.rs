//! Responses that are lost.

use std::time::Duration;

use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, CallQueue, CallState, ClaimRequest, Lease, NewSecret, Records, Release,
    Secrets, StoreError, ToolRequest,
};
use rcrt_client::{Client, Credentials};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{ClientHarness, note, response};

async fn claimed(client: &Client) -> Lease {
    client.create(ToolRequest::record("echo", json!({}), None, None), None).await.unwrap();
    let claim = ClaimRequest::new(Uuid::new_v4(), 1, 60_000);
    client.claim(&claim).await.unwrap()[0].lease
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn safe_requests_are_repeated_and_processed_once() {
    let harness = ClientHarness::start().await;
    let (client, store, proxy) = harness.behind_proxy().await;
    client.secrets().await.unwrap();

    proxy.drop_responses(2);
    let created = client.create(note("once"), None).await.unwrap();
    assert!(!created.replayed);
    let all = store.list(&BreadcrumbQuery::default()).await.unwrap();
    assert_eq!(all.iter().map(|one| one.id).collect::<Vec<_>>(), [created.id]);

    proxy.drop_responses(1);
    assert_eq!(client.get(created.id).await.unwrap(), store.get(created.id).await.unwrap());

    proxy.drop_responses(1);
    client.delete(created.id, Some(1)).await.unwrap();
    assert!(matches!(store.get(created.id).await, Err(StoreError::NotFound { .. })));
    // Without a lost response, a missing record is an error.
    assert!(matches!(client.delete(created.id, None).await, Err(StoreError::NotFound { .. })));

    let lease = claimed(&client).await;
    proxy.drop_responses(1);
    client.start(lease, 2).await.unwrap();
    let call = store.call(lease.request).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Running, 1));
    proxy.drop_responses(1);
    let answer = client.complete(lease, response("yes")).await.unwrap();
    assert_eq!(store.call(lease.request).await.unwrap().response, Some(answer));

    let lease = claimed(&client).await;
    proxy.drop_responses(1);
    client.release(lease, Release::Unstarted).await.unwrap();
    assert_eq!(store.call(lease.request).await.unwrap().state, CallState::Queued);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_of_another_runner_is_not_taken_for_ours() {
    let harness = ClientHarness::start().await;
    let (client, store, proxy) = harness.behind_proxy().await;
    let lease = claimed(&client).await;
    client.start(lease, 1).await.unwrap();
    store.complete(lease, response("theirs")).await.unwrap();
    proxy.drop_responses(1);
    assert_eq!(client.complete(lease, response("ours")).await, Err(StoreError::LeaseLost { request: lease.request }));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsafe_requests_are_not_repeated() {
    let harness = ClientHarness::start().await;
    let (client, store, proxy) = harness.behind_proxy().await;
    let id = client.create(note("a"), None).await.unwrap().id;
    proxy.drop_responses(1);
    let changes = BreadcrumbChanges { title: Some("b".into()), ..BreadcrumbChanges::default() };
    let unsure = client.update(id, 1, changes).await;
    assert!(matches!(unsure, Err(StoreError::Unavailable(_))), "{unsure:?}");
    // It was processed once.
    assert_eq!(store.get(id).await.unwrap().version, 2);
    proxy.drop_responses(1);
    let unsure = client.create_secret(NewSecret::new("A", "a long value")).await;
    assert!(matches!(unsure, Err(StoreError::Unavailable(_))), "{unsure:?}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_wait_for_a_restart_of_the_server() {
    let mut harness = ClientHarness::start().await;
    let (client, _store, _proxy) = harness.behind_proxy().await;
    let id = client.create(note("a"), None).await.unwrap().id;
    let direct = {
        let agent = harness.new_agent(store_owner(&client, id).await, &rcrt_breadcrumb::Role::ALL).await;
        let token = Credentials::Token(harness.token(&agent, Duration::from_mins(10)));
        // It has no connection yet. With one that breaks during an update, it would be unknown
        // whether the update was made.
        Client::new(format!("http://{}", harness.address).parse().unwrap(), token)
    };
    harness.stop_server().await;
    // Also an update, because a refused connection changed nothing.
    let changing = tokio::spawn({
        let direct = direct.clone();
        async move { direct.update(id, 1, BreadcrumbChanges::default()).await }
    });
    tokio::task::yield_now().await;
    harness.start_server().await;
    changing.await.unwrap().unwrap();
    harness.stop_server().await;
    let gone = direct.get(id).await;
    assert!(matches!(gone, Err(StoreError::Unavailable(_))), "{gone:?}");
    harness.close().await;
}

async fn store_owner(client: &Client, id: Uuid) -> Uuid {
    client.get(id).await.unwrap().owner_id
}
