//! A subscriber that stops reading during very many events: it uses no memory, and later gets all
//! of them, or a notice of what it missed. Runs alone in its process, whose memory is measured.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{Breadcrumbs, Identity, NewAgent, NewBreadcrumb, Profile, Role, Tenancy};
use rcrt_server::{AuthMode, Server, ServerLimits, ServerOptions, StreamOptions, TokenKey};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const EVENTS: i64 = 50_000;
/// Bytes of each context. In total they are far above the memory limit.
const EACH: usize = 1024;
const MOST_GROWTH: usize = 48 * 1024 * 1024;

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Writes events as fast as the database can, and wakes the server with one more.
async fn flood(admin: &mut PgConnection, store: &dyn Breadcrumbs, tenant: Uuid) {
    for first in (0..EVENTS).step_by(4000) {
        let last = (first + 4000).min(EVENTS) - 1;
        let mut tx = admin.begin().await.unwrap();
        sqlx::query(
            "INSERT INTO breadcrumbs (id, owner_id, title, context, tags, schema_name, visibility, sensitivity, version,
                checksum, size_bytes, created_at, updated_at, words)
             SELECT md5($1::text || n)::uuid, $1, 'flood', json_build_object('n', n, 'text', repeat('x', $4)), '{}', 'flood.v1',
                'team', 'low', 1, '', $4, now(), now(), ''
             FROM generate_series($2::bigint, $3) n",
        )
        .bind(tenant)
        .bind(first)
        .bind(last)
        .bind(EACH as i32)
        .execute(&mut *tx)
        .await
        .unwrap();
        sqlx::query(
            "INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
             SELECT $1, event_number((n - $2)::integer), 'breadcrumb.created', md5($1::text || n)::uuid, 1, now(), $4
             FROM generate_series($2::bigint, $3) n",
        )
        .bind(tenant)
        .bind(first)
        .bind(last)
        .bind(EACH as i64)
        .execute(&mut *tx)
        .await
        .unwrap();
        tx.commit().await.unwrap();
    }
    store.create(NewBreadcrumb { title: "end".into(), ..NewBreadcrumb::default() }, None).await.unwrap();
}

/// Reads the socket directly, without read-ahead, so that only a small part of the events is
/// buffered.
struct Reader {
    socket: TcpStream,
    text: String,
}

impl Reader {
    async fn open(address: std::net::SocketAddr, token: &str) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        let request =
            format!("GET /events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        Self { socket, text: String::new() }
    }

    /// The next message's data. (Chunk headers are on separate lines; a long message can be split
    /// by one.)
    async fn next(&mut self) -> Value {
        loop {
            while let Some((line, rest)) = self.text.split_once("\n\n") {
                let data = line.rsplit_once("data: ").map(|(_, data)| data.to_owned());
                let rest = String::from(rest);
                self.text = rest;
                if let Some(value) = data.and_then(|data| serde_json::from_str(&data).ok()) {
                    return value;
                }
            }
            let mut bytes = vec![0; 64 * 1024];
            let read = tokio::time::timeout(Duration::from_mins(1), self.socket.read(&mut bytes)).await;
            let read = read.expect("data in time").unwrap();
            assert_ne!(read, 0, "the stream ended");
            self.text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_subscriber_uses_no_memory_and_is_notified_of_missed_events() {
    let database = TestDatabase::new().await;
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        acquire_timeout: Duration::from_mins(2),
        max_connections: 4,
        ..StoreOptions::new(database.admin_url.clone(), SecretsKey::from_bytes([3; 32]))
    };
    let store = Store::open(options, &|_| {}).await.unwrap();
    let tenant = store.ensure_tenant("one").await.unwrap().id;
    let agent = NewAgent { name: "a".into(), roles: Role::ALL.to_vec(), profile: Profile::Main, tools: None };
    let agent = store.create_agent(tenant, None, agent).await.unwrap().agent;
    let identity = Identity { owner_id: tenant, agent_id: agent.id, roles: agent.roles, profile: agent.profile };
    let hand = store.acting_as(identity.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let token_key = TokenKey::from_bytes(&[7; 32]).unwrap();
    let token = token_key.issue(&identity, Duration::from_mins(10)).unwrap();
    // It does not read until all events are written.
    let limits = ServerLimits { write_time: Duration::from_hours(1), ..ServerLimits::default() };
    // Each reader waits for its first ping.
    let streams = StreamOptions { ping_every: Duration::from_secs(1), ..StreamOptions::default() };
    let options = ServerOptions { limits, streams, ..ServerOptions::new(listener, AuthMode::Keys, token_key) };
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(Server::new(options, store.clone()).unwrap().run(shutdown.clone()));
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();

    // Five that stop reading, and one that keeps reading.
    let mut stopped = Vec::new();
    for _ in 0..5 {
        let mut reader = Reader::open(address, &token).await;
        assert_eq!(reader.next().await["type"], "ping");
        stopped.push(reader);
    }
    let mut live = hand.events(None).await.unwrap();
    let before = resident();
    let (seen, ()) = tokio::join!(
        async {
            let mut seen = 0;
            while live.next().await.unwrap().unwrap().schema_name.is_some() {
                seen += 1;
            }
            seen
        },
        flood(&mut admin, &*hand, tenant)
    );
    assert_eq!(seen, EVENTS, "the reading subscriber is not blocked");
    let grown = resident().saturating_sub(before);
    assert!(grown < MOST_GROWTH, "grew by {grown} bytes for {} bytes of events", EVENTS as usize * EACH);

    // All events, in order.
    let mut reader = stopped.pop().unwrap();
    for n in 0..EVENTS {
        let event = loop {
            let message = reader.next().await;
            if message["type"] != "ping" {
                break message;
            }
        };
        assert_eq!(event["context"]["n"], json!(n));
    }
    drop(reader);

    // After the events expire: some events, then the notice, then the remaining events.
    sqlx::query("UPDATE events SET at = at - interval '8 days'").execute(&mut admin).await.unwrap();
    while store.prune().await.unwrap() > 0 {}
    hand.create(NewBreadcrumb { title: "kept".into(), ..NewBreadcrumb::default() }, None).await.unwrap();
    let mut reader = stopped.pop().unwrap();
    let (mut next, mut missed) = (0, None);
    loop {
        let message = reader.next().await;
        match (message["type"].as_str().unwrap(), message["context"]["n"].as_i64()) {
            ("ping", _) => {}
            ("missed", _) => missed = Some(message),
            (_, Some(n)) => {
                assert_eq!(n, next, "in order until the notice");
                assert!(missed.is_none());
                next += 1;
            }
            (_, None) => break,
        }
    }
    assert!(next < EVENTS, "it did read further");
    let missed = missed.expect("a notice");
    assert!(missed["first"].as_i64().unwrap() > missed["after"].as_i64().unwrap(), "{missed}");
    shutdown.cancel();
    serving.await.unwrap();
    store.close().await;
}
