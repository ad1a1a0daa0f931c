use std::collections::HashSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcrt_breadcrumb::{Breadcrumbs, Event, Identity, NewBreadcrumb, Profile, Role, Sensitivity, Tenancy, Visibility};
use rcrt_nats::NatsCopy;
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use serde_json::{Map, Value, json};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::server::{Nats, PATIENCE, messages};

/// A store that copies, and a tenant whose copy has begun.
async fn store(nats: &Nats, database: &TestDatabase) -> (Arc<Store>, Arc<dyn Breadcrumbs>, Uuid) {
    let copy = NatsCopy::new(nats.address(""), "EVENTS".into());
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        acquire_timeout: PATIENCE,
        event_copy: Some(Arc::new(copy)),
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
    };
    let store = Store::open(options, &|_| {}).await.unwrap();
    let tenant = store.ensure_tenant("one").await.unwrap().id;
    let identity =
        Identity { owner_id: tenant, agent_id: Uuid::new_v4(), roles: vec![Role::Curator], profile: Profile::Main };
    let records = store.acting_as(identity);
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    let has_begun = "SELECT EXISTS (SELECT FROM event_cursors WHERE owner_id = $1 AND follower = 'event-copy')";
    let begun = async {
        while !sqlx::query_scalar::<_, bool>(has_begun).bind(tenant).fetch_one(&mut admin).await.unwrap() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, begun).await.expect("the copy begins");
    (store, records, tenant)
}

fn note(schema: Option<&str>, text: &str) -> NewBreadcrumb {
    let context = Map::from_iter([("text".to_owned(), json!(text))]);
    NewBreadcrumb { title: "A note".into(), schema_name: schema.map(str::to_owned), context, ..Default::default() }
}

/// The event in a message, and its header with this name.
fn event(message: &Value) -> Event {
    serde_json::from_slice(&STANDARD.decode(message["data"].as_str().unwrap()).unwrap()).unwrap()
}

fn header(message: &Value, name: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(message["hdrs"].as_str().unwrap()).unwrap()).unwrap();
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_is_copied_with_its_subject_number_and_content() {
    let Some(nats) = Nats::start(&["--jetstream"]).await else { return };
    let database = TestDatabase::new().await;
    let (store, records, tenant) = store(&nats, &database).await;
    let plain = records.create(note(Some("my.note.v1"), "plain"), None).await.unwrap().id;
    records.create(note(None, "without a schema"), None).await.unwrap();
    records.create(note(Some("odd name.*"), "odd"), None).await.unwrap();
    records
        .create(NewBreadcrumb { visibility: Visibility::Private, ..note(Some("x"), "private") }, None)
        .await
        .unwrap();
    records
        .create(NewBreadcrumb { sensitivity: Sensitivity::Secret, ..note(Some("x"), "secret") }, None)
        .await
        .unwrap();
    records.create(note(Some("x"), &"large ".repeat(300_000)), None).await.unwrap();
    records.delete(plain, None).await.unwrap();

    let copied = messages(&nats, "EVENTS", 7).await;
    let subjects: Vec<&str> = copied.iter().map(|message| message["subject"].as_str().unwrap()).collect();
    let expected = ["my.note.v1", "_", "odd%20name.%2A", "x", "x", "x", "my.note.v1"];
    assert_eq!(subjects, expected.map(|schema| format!("rcrt.{tenant}.{schema}")));
    let numbers: Vec<i64> =
        copied.iter().map(|message| header(message, "Nats-Msg-Id").unwrap().parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let events: Vec<Event> = copied.iter().map(event).collect();
    assert_eq!((events[0].breadcrumb_id, &events[0].context["text"]), (plain, &json!("plain")));
    assert!(events[3].private && events[3].context["text"] == "private");
    assert!(events[4].redacted && events[4].context.is_empty());
    assert!(events[5].context.is_empty(), "too large for the server");
    assert_eq!(header(&copied[5], "Rcrt-Context").as_deref(), Some("omitted"));
    assert_eq!(header(&copied[6], "Rcrt-Event").as_deref(), Some("breadcrumb.deleted"));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_outage_and_with_two_servers_each_event_is_copied_once() {
    let Some(mut nats) = Nats::start(&["--jetstream"]).await else { return };
    let database = TestDatabase::new().await;
    let (first, records, _) = store(&nats, &database).await;
    let (second, beside, _) = store(&nats, &database).await;
    let mut written = HashSet::new();
    let mut write = async |records: &dyn Breadcrumbs| {
        for _ in 0..20 {
            written.insert(records.create(note(Some("x"), "one of many"), None).await.unwrap().id);
        }
    };
    write(&*records).await;
    messages(&nats, "EVENTS", 20).await;
    nats.kill().await;
    write(&*records).await;
    write(&*beside).await;
    nats.restart().await;
    messages(&nats, "EVENTS", 60).await;
    // The other server continues.
    first.close().await;
    write(&*beside).await;
    let copied: Vec<Event> = messages(&nats, "EVENTS", 80).await.iter().map(event).collect();
    assert_eq!(copied.iter().map(|event| event.breadcrumb_id).collect::<HashSet<_>>(), written);
    second.close().await;
}
