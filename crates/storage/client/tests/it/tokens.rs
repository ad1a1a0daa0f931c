//! Tokens: fetched, renewed before they expire, and renewed after a refusal.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::join_all;
use rcrt_breadcrumb::{Events, NewAgent, Role, Secrets, StoreError};
use rcrt_client::{Client, Credentials, TokenRequest};
use rcrt_conformance::Harness;
use rcrt_server::TokenKey;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};
use uuid::Uuid;

use crate::harness::{ClientHarness, by_key};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_key_gets_tokens_and_a_refused_one_is_renewed() {
    let mut harness = ClientHarness::start().await;
    let agent = harness.new_agent(harness.tenant().await, &Role::ALL).await;
    let client = harness.client_at(harness.address, &agent);
    client.secrets().await.unwrap();
    let before = client.token().await.unwrap();
    assert_eq!(client.token().await.unwrap(), before);
    harness.stop_server().await;
    harness.key = TokenKey::from_bytes(&[2; 32]).unwrap();
    harness.start_server().await;
    client.secrets().await.unwrap();
    assert_ne!(client.token().await.unwrap(), before);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_key_a_forged_token_and_a_missing_role_are_distinct_errors() {
    let harness = ClientHarness::start().await;
    let mut agent = harness.new_agent(harness.tenant().await, &[Role::Subscriber]).await;
    let reader = harness.client_at(harness.address, &agent);
    assert!(matches!(reader.secrets().await, Err(StoreError::Forbidden(_))));
    agent.agent_key = "wrong".into();
    let stranger = harness.client_at(harness.address, &agent);
    assert!(matches!(stranger.secrets().await, Err(StoreError::Unauthorized(_))));
    assert!(matches!(stranger.events(None).await.err(), Some(StoreError::Unauthorized(_))));
    let url: url::Url = format!("http://{}", harness.address).parse().unwrap();
    for token in ["forged", "line\nbreak"] {
        let forged = Client::new(url.clone(), Credentials::Token(token.into()));
        assert!(matches!(forged.secrets().await, Err(StoreError::Unauthorized(_))), "{token:?}");
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_created_listed_and_deleted_over_http() {
    let harness = ClientHarness::start().await;
    let curator = harness.new_agent(harness.tenant().await, &[Role::Curator]).await;
    let client = harness.client_at(harness.address, &curator);
    assert_eq!(client.health().await.unwrap().status, "ok");
    let made = client
        .create_agent(NewAgent {
            name: "new".into(),
            roles: vec![Role::Emitter],
            profile: rcrt_breadcrumb::Profile::Main,
            tools: None,
        })
        .await
        .unwrap();
    assert_eq!(client.agents().await.unwrap().len(), 2);
    let ask = |roles| TokenRequest {
        owner_id: made.agent.owner_id,
        agent_id: made.agent.id,
        agent_key: made.agent_key.clone(),
        roles,
        profile: None,
        ttl_sec: Some(60),
    };
    let token = client.request_token(&ask(None)).await.unwrap();
    assert_eq!((token.roles, token.expires_in), (vec![Role::Emitter], 60));
    let greedy = client.request_token(&ask(Some(vec![Role::Curator]))).await.err();
    assert!(matches!(greedy, Some(StoreError::Forbidden(_))), "{greedy:?}");
    client.delete_agent(made.agent.id).await.unwrap();
    let gone = client.delete_agent(made.agent.id).await;
    assert_eq!(gone, Err(StoreError::NotFound { what: "agent", id: made.agent.id }));
    let ended = Client::new(format!("http://{}", harness.address).parse().unwrap(), by_key(&made));
    assert!(matches!(ended.secrets().await, Err(StoreError::Unauthorized(_))));
    harness.close().await;
}

/// A server that gives tokens of this validity in seconds, how many it gave, and its task. Not a
/// real server, because that would give them at least a minute.
async fn issuer(validity: u64) -> (Client, Arc<AtomicUsize>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let given = Arc::new(AtomicUsize::new(0));
    let counting = given.clone();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65536];
            let mut read = stream.read(&mut request).await.unwrap();
            while !request[..read].windows(4).any(|part| part == b"\r\n\r\n") {
                read += stream.read(&mut request[read..]).await.unwrap();
            }
            let body = if request.starts_with(b"POST /auth/token") {
                let number = counting.fetch_add(1, Ordering::SeqCst);
                let id = Uuid::nil();
                format!(
                    "{{\"token\":\"t{number}\",\"id\":\"{id}\",\"owner_id\":\"{id}\",\"agent_id\":\"{id}\",\"roles\":[],\"exp\":0,\"expires_in\":{validity}}}"
                )
            } else {
                "[]".into()
            };
            let length = body.len();
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let credentials = Credentials::AgentKey { owner_id: Uuid::nil(), agent_id: Uuid::nil(), key: "k".into() };
    (Client::new(url.parse().unwrap(), credentials), given, serving)
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let (client, given, serving) = issuer(0).await;
    for fetched in 1..=3 {
        client.secrets().await.unwrap();
        assert_eq!(given.load(Ordering::SeqCst), fetched);
    }
    serving.abort();
}

#[tokio::test]
async fn requests_at_once_share_one_token() {
    let (client, given, serving) = issuer(3600).await;
    for read in join_all((0..20).map(|_| client.secrets())).await {
        read.unwrap();
    }
    assert_eq!(given.load(Ordering::SeqCst), 1);
    serving.abort();
}
