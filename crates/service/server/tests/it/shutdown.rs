use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    Breadcrumbs, BreadcrumbsDecorator, CallPage, CallQuery, Identity, Lease, Role, StoreError, Tenancy,
    TenancyDecorator,
};
use rcrt_server::{AuthMode, Server, ServerOptions};
use rcrt_store::Store;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{PATIENCE, World, key, note, request_for, response};

/// What a stream sends until it closes.
async fn rest_of(mut stream: reqwest::Response) -> String {
    let mut received = String::new();
    while let Some(chunk) = stream.chunk().await.unwrap() {
        received.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    received
}

/// A connection whose transaction delays the events of later ones until it closes.
async fn older_transaction(world: &World) -> PgConnection {
    let mut connection = world.admin().await;
    sqlx::raw_sql("BEGIN; SELECT pg_current_xact_id()").execute(&mut connection).await.unwrap();
    connection
}

#[tokio::test]
async fn streams_close_and_requests_in_progress_finish() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());

    // A request that is sent half when the shutdown begins.
    let mut half = TcpStream::connect(world.base.trim_start_matches("http://")).await.unwrap();
    let body = r#"{"title": "late"}"#;
    let head = format!(
        "POST /breadcrumbs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    half.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body, so the request is in its handler.
    let mut asked = [0; 25];
    half.read_exact(&mut asked).await.unwrap();
    assert!(asked.starts_with(b"HTTP/1.1 100 Continue"));

    world.shutdown.cancel();
    let last = rest_of(stream).await;
    assert!(last.contains("retry: 1000") || last.contains("retry:1000"), "{last}");
    half.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    half.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    world.serving.await.unwrap();
    assert!(TcpStream::connect(world.base.trim_start_matches("http://")).await.is_err());
    world.store.close().await;
}

#[tokio::test]
async fn a_draining_server_says_so_and_finishes_running_calls() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter, Role::Subscriber]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    let request = world.create(&token, request_for("slow")).await;
    let claim = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 60_000});
    let claims = world.post("/calls/claim", &runner, claim).await.ok().json();
    assert_eq!(claims[0]["request"]["id"], json!(request), "{claims}");

    world.draining.cancel();
    let refused = world.get("/health", "").await;
    refused.problem(503, "draining");
    assert_eq!(refused.header("retry-after"), "1");
    world.post("/breadcrumbs", &token, note("new")).await.problem(503, "draining");
    world.post("/tools/slow/invoke", &token, json!({})).await.problem(503, "draining");
    // Callers still read: a response that was just written, or the state of their call.
    world.get("/breadcrumbs", &token).await.ok();
    world.get(&format!("/calls/{request}"), &token).await.ok();

    // The running call is completed, and followers get the event.
    let lease = claims[0]["lease"].clone();
    world.post("/calls/start", &runner, json!({"lease": lease, "max_attempts": 1})).await.ok();
    world.post("/calls/complete", &runner, json!({"lease": lease, "response": response()})).await.ok();
    let mut received = String::new();
    while !received.contains("tool.response.v1") {
        received.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().expect("the stream stays open")).unwrap());
    }
    world.close().await;
    while stream.chunk().await.unwrap().is_some() {}
}

/// As `rcrt call` does, with a runner in another process.
#[tokio::test]
async fn a_server_that_stops_waits_for_running_calls_of_agents_with_a_stream() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter, Role::Subscriber]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    world.create(&token, request_for("slow")).await;
    let claim = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 60_000});
    let lease = world.post("/calls/claim", &runner, claim).await.ok().json()[0]["lease"].clone();

    world.shutdown.cancel();
    while world.get("/health", "").await.status.as_u16() != 503 {}
    world.post("/calls/start", &runner, json!({"lease": lease, "max_attempts": 1})).await.ok();
    world.post("/calls/complete", &runner, json!({"lease": lease, "response": response()})).await.ok();
    let received = rest_of(stream).await;
    assert!(received.contains("tool.response.v1"), "{received}");
    world.close().await;
}

/// Starts a claimed call after the first list of calls, as a runner may do at that moment.
#[derive(Clone)]
struct StartsAfterAList {
    store: Arc<Store>,
    runner: Arc<dyn Breadcrumbs>,
    claimed: Arc<Mutex<Option<Lease>>>,
    lists: Arc<Semaphore>,
}

#[async_trait]
impl TenancyDecorator for StartsAfterAList {
    fn inner(&self) -> &dyn Tenancy {
        &*self.store
    }

    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        Arc::new(ListsCalls { inner: self.store.acting_as(identity), starts: self.clone() })
    }
}

struct ListsCalls {
    inner: Arc<dyn Breadcrumbs>,
    starts: StartsAfterAList,
}

#[async_trait]
impl BreadcrumbsDecorator for ListsCalls {
    fn inner(&self) -> &dyn Breadcrumbs {
        &*self.inner
    }

    async fn list_calls(&self, query: &CallQuery) -> Result<CallPage, StoreError> {
        let page = self.inner.list_calls(query).await?;
        let claimed = self.starts.claimed.lock().unwrap().take();
        if let Some(lease) = claimed {
            self.starts.runner.start(lease, 1).await?;
        }
        self.starts.lists.add_permits(1);
        Ok(page)
    }
}

#[tokio::test]
async fn a_server_that_stops_sees_a_call_that_starts_at_that_moment() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter, Role::Subscriber]).await;
    world.create(&token, request_for("slow")).await;
    let runner = world.runner(tenant);
    let claim = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 600_000});
    let lease = runner.claim(&serde_json::from_value(claim).unwrap()).await.unwrap()[0].lease;
    let lists = Arc::new(Semaphore::new(0));
    let claimed = Arc::new(Mutex::new(Some(lease)));
    let store = StartsAfterAList { store: world.store.clone(), runner: runner.clone(), claimed, lists: lists.clone() };

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/events/stream", listener.local_addr().unwrap());
    let mut options = ServerOptions::new(listener, AuthMode::Keys, key());
    options.streams.flush_time = PATIENCE;
    options.limits.drain_time = PATIENCE;
    let server = Server::new(options, Arc::new(store)).unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server.run(shutdown.clone()));
    let mut stream = world.http.get(url).bearer_auth(&token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());

    shutdown.cancel();
    let mut received = pin!(rest_of(stream));
    // A server that misses the call ends the stream after two lists.
    tokio::select! {
        received = &mut received => panic!("the stream ended before the call: {received}"),
        looked_again = lists.acquire_many(3) => looked_again.unwrap().forget(),
    }
    runner.complete(lease, serde_json::from_value(response()).unwrap()).await.unwrap();
    let received = received.await;
    assert!(received.contains("tool.response.v1"), "{received}");
    serving.await.unwrap();
    world.close().await;
}

/// The runner of the same process finishes its calls just before the shutdown.
#[tokio::test]
async fn a_stream_that_closes_has_all_events_until_the_shutdown() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    for number in 0..50 {
        world.create(&token, note(&format!("note {number}"))).await;
    }
    world.shutdown.cancel();
    let received = rest_of(stream).await;
    assert_eq!(received.matches("breadcrumb.created").count(), 50, "{received}");
    world.close().await;
}

/// A subscriber gets an event only when every transaction that began earlier has ended.
#[tokio::test]
async fn a_stream_that_closes_waits_for_events_behind_an_older_transaction() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    let older = older_transaction(&world).await;
    world.create(&token, note("held back")).await;
    world.shutdown.cancel();
    // The server stops listening when it begins to close the streams.
    while TcpStream::connect(world.base.trim_start_matches("http://")).await.is_ok() {}
    older.close().await.unwrap();
    let received = rest_of(stream).await;
    assert_eq!(received.matches("breadcrumb.created").count(), 1, "{received}");
    world.close().await;
}

#[tokio::test]
async fn a_stream_closes_even_if_an_older_transaction_does_not_end() {
    let world = World::start_as(|options| options.streams.flush_time = Duration::from_millis(1)).await;
    let token = world.token(&Role::ALL).await;
    let mut stream = world.request("GET", "/events/stream", &token).send().await.unwrap();
    assert!(stream.chunk().await.unwrap().is_some());
    let older = older_transaction(&world).await;
    world.create(&token, note("held back")).await;
    world.shutdown.cancel();
    let received = rest_of(stream).await;
    assert!(received.contains("the server is stopping") && !received.contains("breadcrumb.created"), "{received}");
    older.close().await.unwrap();
    world.close().await;
}
