//! Streams that survive their connections.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use rcrt_breadcrumb::{Breadcrumbs, EventNumber, EventStream, Events, Role, StoreError};
use rcrt_client::{Client, Credentials};
use rcrt_conformance::Harness;
use rcrt_server::TokenKey;

use crate::harness::{ClientHarness, note};

async fn titles(stream: &mut EventStream, store: &Arc<dyn Breadcrumbs>, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let event = stream.next().await.unwrap().unwrap();
        seen.push(store.get(event.breadcrumb_id).await.unwrap().title);
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_before_the_first_event() {
    let harness = ClientHarness::start().await;
    let (client, store, proxy) = harness.behind_proxy().await;
    let mut stream = client.events(None).await.unwrap();
    proxy.cut();
    store.create(note("in the gap"), None).await.unwrap();
    assert_eq!(titles(&mut stream, &store, 1).await, ["in the gap"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_arrives_once_in_order_across_restarts() {
    let mut harness = ClientHarness::start().await;
    let (client, store, proxy) = harness.behind_proxy().await;
    let mut stream = client.events(None).await.unwrap();
    let listening = tokio::spawn(async move {
        let mut seen: Vec<(EventNumber, uuid::Uuid)> = Vec::new();
        while seen.len() < 300 {
            let event = stream.next().await.unwrap().unwrap();
            seen.push((event.number, event.breadcrumb_id));
        }
        seen
    });
    let mut written = Vec::new();
    for round in 0..6 {
        for number in 0..50 {
            written.push(store.create(note(format!("{round} {number}")), None).await.unwrap().id);
            if number == 25 {
                proxy.cut();
            }
        }
        if round % 2 == 0 {
            harness.stop_server().await;
            written.push(store.create(note("while the server is down"), None).await.unwrap().id);
            harness.start_server().await;
        }
    }
    let seen = listening.await.unwrap();
    assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert_eq!(seen.iter().map(|one| one.1).collect::<Vec<_>>(), written[..300]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_starts_after_any_number() {
    let harness = ClientHarness::start().await;
    let (client, store, _proxy) = harness.behind_proxy().await;
    store.create(note("a"), None).await.unwrap();
    let after = {
        let mut stream = client.events(Some(EventNumber(0))).await.unwrap();
        stream.next().await.unwrap().unwrap().number
    };
    store.create(note("b"), None).await.unwrap();
    store.create(note("c"), None).await.unwrap();
    let mut stream = client.events(Some(after)).await.unwrap();
    assert_eq!(titles(&mut stream, &store, 2).await, ["b", "c"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_whose_token_cannot_be_renewed_fails_with_the_reason() {
    let harness = ClientHarness::start().await;
    let agent = harness.new_agent(harness.tenant().await, &[Role::Subscriber]).await;
    let mut seconds = 2;
    let (client, mut stream) = loop {
        let token = Credentials::Token(harness.token(&agent, Duration::from_secs(seconds)));
        let client = Client::new(format!("http://{}", harness.address).parse().unwrap(), token);
        match client.events(None).await {
            Ok(stream) => break (client, stream),
            // On a busy machine, the token can expire before the stream is open.
            Err(StoreError::Unauthorized(_)) if seconds < 100 => seconds *= 4,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(stream.next().await.unwrap(), Err(StoreError::Unauthorized("the token has expired".into())));
    assert!(stream.next().await.is_none());
    let late = client.events(None).await.err();
    assert_eq!(late, Some(StoreError::Unauthorized("the token has expired".into())));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_with_an_agents_key_fetches_a_new_token() {
    let mut harness = ClientHarness::start().await;
    let (client, store, _proxy) = harness.behind_proxy().await;
    let mut stream = client.events(None).await.unwrap();
    harness.stop_server().await;
    // All tokens issued so far are invalid now.
    harness.key = TokenKey::from_bytes(&[2; 32]).unwrap();
    harness.start_server().await;
    store.create(note("after"), None).await.unwrap();
    assert_eq!(titles(&mut stream, &store, 1).await, ["after"]);
    client.latest_event().await.unwrap();
    harness.close().await;
}
