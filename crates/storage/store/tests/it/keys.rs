//! Rotation of the key-encryption key while stores run.

use std::sync::{Arc, Mutex};

use rcrt_breadcrumb::{NewSecret, SecretChanges, StoreError};
use rcrt_conformance::Harness;
use rcrt_store::{
    SecretsKey, SecretsKeys, Store, StoreOptions, UnreadableSecret, rewrap_secrets, secrets_by_key,
    secrets_under_other_keys, used_secrets_keys,
};
use rcrt_test_database::TestDatabase;
use sqlx::Connection;

use crate::harness::StoreHarness;

fn key(byte: u8) -> SecretsKey {
    SecretsKey::from_bytes([byte; 32])
}

async fn open(database: &TestDatabase, keys: SecretsKeys) -> StoreHarness {
    let options =
        StoreOptions { app_url: Some(database.app_url.clone()), ..StoreOptions::new(&database.admin_url, keys) };
    StoreHarness { database: database.clone(), store: Store::open(options, &|_| {}).await.unwrap() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_move_to_a_new_key_while_two_stores_use_them() {
    let database = TestDatabase::new().await;
    // The content of the keys' folder, for a store that reads it.
    let folder = Arc::new(Mutex::new(vec![key(1)]));
    let watching = || {
        let (folder, seen) = (folder.clone(), Mutex::new(vec![key(1).id()]));
        SecretsKeys::renewed_by(key(1), Vec::new(), move || {
            let (keys, mut seen) = (folder.lock().unwrap().clone(), seen.lock().unwrap());
            let ids: Vec<String> = keys.iter().map(SecretsKey::id).collect();
            (std::mem::replace(&mut *seen, ids.clone()) != ids).then_some(keys)
        })
    };
    let (one, other) = (open(&database, watching()).await, open(&database, watching()).await);
    let tenant = one.tenant().await;
    let (here, there) = (one.agent(tenant).await, other.agent(tenant).await);
    let mut ids = Vec::new();
    for n in 0..120 {
        let secret = NewSecret::new(format!("S{n}"), format!("the value {n}"));
        ids.push(here.create_secret(secret).await.unwrap().id);
    }
    let elsewhere = one.alone().await;
    let foreign = elsewhere.create_secret(NewSecret::new("S", "another tenant's")).await.unwrap().id;

    *folder.lock().unwrap() = vec![key(2), key(1)];
    // Written by a store that has not read the folder since.
    let changes = SecretChanges { value: Some("a new value".into()), ..SecretChanges::default() };
    there.update_secret(ids[0], changes).await.unwrap();
    let keys = SecretsKeys::new(key(2), vec![key(1)]);
    let rewrapped = rewrap_secrets(&database.admin_url, &keys).await.unwrap();
    assert_eq!((rewrapped.done, rewrapped.unreadable.len()), (120, 0));
    assert_eq!(secrets_by_key(&database.admin_url).await.unwrap(), [(key(2).id(), 121)]);
    assert_eq!(rewrap_secrets(&database.admin_url, &keys).await.unwrap().done, 0, "there is nothing left to do");

    // The old key can be removed.
    *folder.lock().unwrap() = vec![key(2)];
    for agent in [&here, &there] {
        assert_eq!(agent.decrypt_secret(ids[0], "to see it", None).await.unwrap(), "a new value");
        assert_eq!(agent.decrypt_secret(ids[119], "to see it", None).await.unwrap(), "the value 119");
    }
    assert_eq!(elsewhere.decrypt_secret(foreign, "to see it", None).await.unwrap(), "another tenant's");
    let audited: i64 = sqlx::query_scalar("SELECT count(*) FROM audit WHERE action = 'secret.rewrapped'")
        .fetch_one(&mut one.admin().await)
        .await
        .unwrap();
    assert_eq!(audited, 120);
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_under_a_missing_key_are_reported_and_unchanged() {
    let database = TestDatabase::new().await;
    let harness = open(&database, key(1).into()).await;
    let agent = harness.alone().await;
    let lost = agent.create_secret(NewSecret::new("LOST", "a lost value")).await.unwrap().id;
    let keys = SecretsKeys::new(key(3), vec![key(2)]);
    let rewrapped = rewrap_secrets(&database.admin_url, &keys).await.unwrap();
    let expected = UnreadableSecret { id: lost, name: "LOST".into(), key_id: key(1).id() };
    assert_eq!((rewrapped.done, &rewrapped.unreadable), (0, &vec![expected.clone()]));
    let under_other_keys = secrets_under_other_keys(&database.admin_url, &[key(2).id(), key(3).id()]).await.unwrap();
    assert_eq!(under_other_keys, [expected]);
    assert!(secrets_under_other_keys(&database.admin_url, &[key(1).id()]).await.unwrap().is_empty());
    // The store's role sees the ids, and no secret.
    assert_eq!(used_secrets_keys(&database.app_url).await.unwrap(), [key(1).id()]);
    let foreign = open(&database, key(2).into()).await;
    let there = foreign.agent(agent.identity.owner_id).await;
    let refused = there.decrypt_secret(lost, "to see it", None).await;
    assert!(matches!(&refused, Err(StoreError::SecretKeyMissing(why)) if why.contains(&key(1).id())), "{refused:?}");
    foreign.close().await;
    assert_eq!(agent.decrypt_secret(lost, "to see it", None).await.unwrap(), "a lost value");
    harness.admin().await.close().await.unwrap();
    harness.close().await;
}
