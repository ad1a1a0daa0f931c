//! A backup of a real store, taken while it works, and what comes back from it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backup::{BackupError, Database, Manifest};
use breadcrumb::{
    BreadcrumbQuery, Breadcrumbs, EventNumber, Identity, NewAgent, NewBreadcrumb, NewSecret, Profile, Role, StoreError,
    Tenancy,
};
use sqlx::{Connection, PgConnection};
use store::{SecretsKey, Store, StoreOptions, backup_facts, count_events_on};
use tempfile::TempDir;
use test_database::TestDatabase;
use tokio::sync::watch;

struct World {
    database: TestDatabase,
    store: Arc<Store>,
    identity: Identity,
}

async fn open(database: TestDatabase, key: u8, identity: Option<Identity>) -> World {
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([key; 32]))
    };
    let store = Store::open(options, &|_| {}).await.unwrap();
    let identity = match identity {
        Some(identity) => identity,
        None => {
            let owner_id = store.ensure_tenant("first").await.unwrap().id;
            let agent = NewAgent { name: "a".into(), roles: Role::ALL.to_vec(), profile: Profile::Main };
            let agent = store.create_agent(owner_id, agent).await.unwrap().agent;
            Identity { owner_id, agent_id: agent.id, roles: agent.roles, profile: agent.profile }
        }
    };
    World { database, store, identity }
}

impl World {
    fn agent(&self) -> Arc<dyn Breadcrumbs> {
        self.store.acting_as(self.identity.clone())
    }

    async fn write(&self, title: &str) {
        let note = NewBreadcrumb { title: title.into(), ..NewBreadcrumb::default() };
        self.agent().create(note, None).await.unwrap();
    }
}

async fn at(database: &TestDatabase) -> Database {
    Database { url: database.admin_url.clone(), programs: TestDatabase::server().await.bin_dir().to_owned() }
}

async fn back_up(database: &TestDatabase, folder: &TempDir) -> PathBuf {
    let facts = backup_facts(&database.admin_url).await.unwrap();
    let manifest = Manifest {
        format: Manifest::FORMAT,
        program: "0.0.0".into(),
        migration: facts.migration,
        postgres: facts.postgres,
        made_at: chrono::Utc::now(),
        event_horizon: facts.event_horizon,
        secrets_keys: facts.secrets_keys,
    };
    let path = folder.path().join("backup");
    let length = backup::write(&at(database).await, &manifest, &path).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    path
}

/// Also one that waits for a transaction of another test's database before subscribers see it.
async fn newest_event(database: &TestDatabase) -> EventNumber {
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    EventNumber(sqlx::query_scalar("SELECT max(number) FROM events").fetch_one(&mut admin).await.unwrap())
}

async fn restore(path: &Path) -> TestDatabase {
    let fresh = TestDatabase::empty().await;
    let backup = backup::open(path).unwrap();
    backup::load(&backup, &at(&fresh).await).await.unwrap();
    count_events_on(&fresh.admin_url, backup.manifest.event_horizon).await.unwrap();
    fresh
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_working_store_is_of_one_moment_and_comes_back_whole() {
    let world = open(TestDatabase::new().await, 1, None).await;
    let secret = world.agent().create_secret(NewSecret::new("KEY", "a value to keep")).await.unwrap().id;
    let (count, mut counted) = watch::channel(0);
    let (stop, stopped) = watch::channel(false);
    let writer = {
        let agent = world.agent();
        tokio::spawn(async move {
            let mut n = 0;
            while !*stopped.borrow() {
                n += 1;
                let note = NewBreadcrumb { title: format!("note {n}"), ..NewBreadcrumb::default() };
                agent.create(note, None).await.unwrap();
                count.send_replace(n);
            }
        })
    };
    counted.wait_for(|count| *count >= 20).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let before = *counted.borrow();
    let path = back_up(&world.database, &folder).await;
    let seen = newest_event(&world.database).await;
    stop.send(true).unwrap();
    writer.await.unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(15).any(|window| window == b"a value to keep"));
    assert_eq!(backup::open(&path).unwrap().manifest.secrets_keys, [SecretsKey::from_bytes([1; 32]).id()]);

    let restored = open(restore(&path).await, 1, Some(world.identity.clone())).await;
    let agent = restored.agent();
    let query = BreadcrumbQuery { limit: 1000, ..BreadcrumbQuery::default() };
    let titles: Vec<String> = agent.list(&query).await.unwrap().into_iter().map(|item| item.title).collect();
    assert!(titles.len() >= before, "{} of {before}", titles.len());
    // Every record up to the last one: those after it were not there at that moment.
    for n in 1..=titles.len() {
        assert!(titles.contains(&format!("note {n}")), "{n} of {}", titles.len());
    }
    assert_eq!(agent.decrypt_secret(secret, "to see it", None).await.unwrap(), "a value to keep");

    // What was written while the backup was made is no less there than the rest.
    let present = newest_event(&restored.database).await;
    drop(agent.events(Some(present)).await.unwrap());
    drop(agent.events(Some(agent.latest_event().await.unwrap())).await.unwrap());

    // Numbers go on above those of before, and who has seen what is lost is told.
    restored.write("after").await;
    let newest = newest_event(&restored.database).await;
    assert!(newest.0 > seen.0 + (1 << 40), "{newest} after {seen}");
    let refused = agent.events(Some(EventNumber(newest.0 - 5_000_000))).await.err().unwrap();
    assert!(matches!(&refused, StoreError::Invalid(found) if found.to_string().contains("restore")), "{refused}");
    drop(agent.events(Some(newest)).await.unwrap());
    drop(agent.events(Some(EventNumber(1))).await.unwrap());
    restored.store.close().await;

    let keyless = open(restore(&path).await, 2, Some(world.identity.clone())).await;
    assert!(keyless.agent().decrypt_secret(secret, "to see it", None).await.is_err(), "another key opens nothing");
    keyless.store.close().await;
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_restored_twice_goes_on_counting_upwards() {
    let world = open(TestDatabase::new().await, 1, None).await;
    world.write("first").await;
    let folder = tempfile::tempdir().unwrap();
    let path = back_up(&world.database, &folder).await;
    let once = open(restore(&path).await, 1, Some(world.identity.clone())).await;
    once.write("second").await;
    let first = newest_event(&once.database).await;
    let (again, again_folder) = (once.database.clone(), tempfile::tempdir().unwrap());
    let path = back_up(&again, &again_folder).await;
    let twice = open(restore(&path).await, 1, Some(world.identity.clone())).await;
    twice.write("third").await;
    assert!(newest_event(&twice.database).await.0 > first.0 + (1 << 40));
    assert_eq!(twice.agent().list(&BreadcrumbQuery::default()).await.unwrap().len(), 3);
    for world in [world, once, twice] {
        world.store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_backup_is_refused_before_anything_is_written() {
    let world = open(TestDatabase::new().await, 1, None).await;
    world.write("a note").await;
    let folder = tempfile::tempdir().unwrap();
    let path = back_up(&world.database, &folder).await;
    let good = std::fs::read(&path).unwrap();
    let damaged = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        backup::open(&path).unwrap_err()
    };
    for place in [20, good.len() / 2, good.len() - 10] {
        let mut bytes = good.clone();
        bytes[place] ^= 1;
        let refused = damaged(&bytes);
        assert!(matches!(refused, BackupError::Damaged { .. }), "{place}: {refused}");
    }
    for length in [14, 100, good.len() / 2, good.len() - 1] {
        let refused = damaged(&good[..length]);
        assert!(matches!(refused, BackupError::Damaged { .. }), "{length}: {refused}");
    }
    for text in [&b""[..], b"a text", b"PGDMP and more of an archive without its manifest"] {
        assert!(matches!(damaged(text), BackupError::NoBackup { .. }));
    }
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_over_and_a_failure_leaves_no_file() {
    let world = open(TestDatabase::new().await, 1, None).await;
    let folder = tempfile::tempdir().unwrap();
    let path = back_up(&world.database, &folder).await;
    let manifest = backup::open(&path).unwrap().manifest;
    let again = backup::write(&at(&world.database).await, &manifest, &path).await.unwrap_err();
    assert!(matches!(again, BackupError::Exists { .. }), "{again}");

    let server = TestDatabase::server().await;
    let nowhere = Database { url: server.url(postgres::SUPERUSER, "no_such_database"), ..at(&world.database).await };
    let elsewhere = folder.path().join("other");
    let failed = backup::write(&nowhere, &manifest, &elsewhere).await.unwrap_err();
    assert!(matches!(&failed, BackupError::Failed { output, .. } if output.contains("no_such_database")), "{failed}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    // Into a database that is not empty: all of it is undone.
    let full = backup::open(&path).unwrap();
    let refused = backup::load(&full, &at(&world.database).await).await.unwrap_err();
    assert!(matches!(refused, BackupError::Failed { program: "pg_restore", .. }), "{refused}");
    world.write("it goes on").await;
    world.store.close().await;
}
