use std::net::TcpListener;

use rcrt_breadcrumb::{Event, EventContext, EventKind, EventNumber, EventSink};
use rcrt_nats::{Address, NatsCopy};
use uuid::Uuid;

use crate::server::{Nats, messages};

fn event(number: i64) -> Event {
    Event {
        number: EventNumber(number),
        kind: EventKind::Created,
        breadcrumb_id: Uuid::from_u128(1),
        owner_id: Uuid::from_u128(2),
        version: 1,
        tags: Vec::new(),
        schema_name: Some("x".into()),
        updated_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        context: EventContext::default(),
        redacted: false,
        private: false,
    }
}

async fn error(address: Address) -> String {
    NatsCopy::new(address, "EVENTS".into()).send(&[event(1)]).await.unwrap_err().to_string()
}

#[tokio::test]
async fn an_event_that_comes_again_is_stored_once() {
    let Some(nats) = Nats::start(&["--jetstream"]).await else { return };
    let copy = NatsCopy::new(nats.address(""), "EVENTS".into());
    copy.send(&[event(1), event(2)]).await.unwrap();
    // By another process, and on a connection that was kept.
    let other = NatsCopy::new(nats.address(""), "EVENTS".into());
    other.send(&[event(2), event(3)]).await.unwrap();
    copy.send(&[event(3)]).await.unwrap();
    assert_eq!(messages(&nats, "EVENTS", 3).await.len(), 3);
}

#[tokio::test]
async fn the_error_says_why_nothing_is_copied() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = error(format!("nats://{closed}").parse().unwrap()).await;
    assert!(unreachable.contains("cannot be reached"), "{unreachable}");
    let Some(plain) = Nats::start(&[]).await else { return };
    let missing = error(plain.address("")).await;
    assert!(missing.contains("nats-server --jetstream"), "{missing}");
    let Some(closed) = Nats::start(&["--jetstream", "--user", "rcrt", "--pass", "right"]).await else { return };
    let refused = error(closed.address("rcrt:wrong@")).await;
    assert!(refused.contains("Authorization"), "{refused}");
    let copy = NatsCopy::new(closed.address("rcrt:right@"), "EVENTS".into());
    copy.send(&[event(1)]).await.unwrap();
}
