//! Backups of a real store under load, and their restore.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcrt_backup::{BackupError, BackupKey, Database, Manifest, Proof};
use rcrt_breadcrumb::{
    BreadcrumbQuery, Breadcrumbs, EventNumber, Identity, NewAgent, NewBreadcrumb, NewSecret, Profile, Role, StoreError,
    Tenancy, hex,
};
use rcrt_store::{SecretsKey, Store, StoreOptions, backup_facts, continue_event_numbers, empty_for_restore};
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tokio::sync::watch;

struct World {
    database: TestDatabase,
    store: Arc<Store>,
    identity: Identity,
}

async fn open(database: TestDatabase, key: u8, identity: Option<Identity>) -> World {
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        acquire_timeout: std::time::Duration::from_mins(2),
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([key; 32]))
    };
    let store = Store::open(options, &|_| {}).await.unwrap();
    let identity = match identity {
        Some(identity) => identity,
        None => {
            let owner_id = store.ensure_tenant("first").await.unwrap().id;
            let agent = NewAgent { name: "a".into(), roles: Role::ALL.to_vec(), profile: Profile::Main, tools: None };
            let agent = store.create_agent(owner_id, None, agent).await.unwrap().agent;
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
        authenticated_by: None,
    };
    let path = folder.path().join("backup");
    let length = rcrt_backup::write(&at(database).await, &manifest, &path, &key(1)).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    path
}

/// The backup key for a secrets key of 32 times this byte.
fn key(byte: u8) -> BackupKey {
    BackupKey::derive(SecretsKey::from_bytes([byte; 32]).id(), &[byte; 32]).unwrap()
}

fn open_backup(path: &Path) -> Result<rcrt_backup::Backup, BackupError> {
    rcrt_backup::open(path, Proof::Keys(&[key(1)]))
}

/// The newest event, including one that subscribers do not see yet because a transaction of another
/// test's database is open.
async fn newest_event(database: &TestDatabase) -> EventNumber {
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    EventNumber(sqlx::query_scalar("SELECT max(number) FROM events").fetch_one(&mut admin).await.unwrap())
}

async fn restore(path: &Path) -> TestDatabase {
    let backup = open_backup(path).unwrap();
    let fresh = TestDatabase::empty().await;
    let fresh = TestDatabase { admin_url: empty_for_restore(&fresh.admin_url, true).await.unwrap(), ..fresh };
    rcrt_backup::load(&backup, &at(&fresh).await).await.unwrap();
    continue_event_numbers(&fresh.admin_url, backup.manifest.event_horizon).await.unwrap();
    fresh
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_is_consistent_and_restores_completely() {
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
    assert_eq!(open_backup(&path).unwrap().manifest.secrets_keys, [SecretsKey::from_bytes([1; 32]).id()]);

    let restored = open(restore(&path).await, 1, Some(world.identity.clone())).await;
    let agent = restored.agent();
    let query = BreadcrumbQuery { limit: 1000, ..BreadcrumbQuery::default() };
    let titles: Vec<String> = agent.list(&query).await.unwrap().into_iter().map(|item| item.title).collect();
    assert!(titles.len() >= before, "{} of {before}", titles.len());
    // Records 1 to n without a gap: later ones did not exist at that moment.
    for n in 1..=titles.len() {
        assert!(titles.contains(&format!("note {n}")), "{n} of {}", titles.len());
    }
    assert_eq!(agent.decrypt_secret(secret, "to see it", None).await.unwrap(), "a value to keep");

    // Events that were written during the backup can be subscribed to like all others.
    let present = newest_event(&restored.database).await;
    drop(agent.events(Some(present)).await.unwrap());
    drop(agent.events(Some(agent.latest_event().await.unwrap())).await.unwrap());

    // Numbers continue above the earlier ones, and a subscriber that has seen a lost event gets an
    // error.
    restored.write("after").await;
    let newest = newest_event(&restored.database).await;
    assert!(newest.0 > seen.0 + (1 << 40), "{newest} after {seen}");
    let refused = agent.events(Some(EventNumber(newest.0 - 5_000_000))).await.err().unwrap();
    assert!(matches!(&refused, StoreError::Invalid(found) if found.to_string().contains("restore")), "{refused}");
    drop(agent.events(Some(newest)).await.unwrap());
    drop(agent.events(Some(EventNumber(1))).await.unwrap());
    restored.store.close().await;

    let keyless = open(restore(&path).await, 2, Some(world.identity.clone())).await;
    assert!(keyless.agent().decrypt_secret(secret, "to see it", None).await.is_err(), "another key decrypts nothing");
    keyless.store.close().await;
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_numbers_increase_across_two_restores() {
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
        open_backup(&path).unwrap_err()
    };
    for offset in [20, good.len() / 2, good.len() - 80] {
        let mut bytes = good.clone();
        bytes[offset] ^= 1;
        let refused = damaged(&bytes);
        assert!(matches!(refused, BackupError::Damaged { .. }), "{offset}: {refused}");
    }
    for length in [14, 100, good.len() / 2, good.len() - 70] {
        let refused = damaged(&good[..length]);
        assert!(matches!(refused, BackupError::Damaged { .. }), "{length}: {refused}");
    }
    for text in [&b""[..], b"a text", b"PGDMP and more of an archive without its manifest"] {
        assert!(matches!(damaged(text), BackupError::NoBackup { .. }));
    }
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_is_overwritten_and_a_failure_leaves_none() {
    let world = open(TestDatabase::new().await, 1, None).await;
    let folder = tempfile::tempdir().unwrap();
    let path = back_up(&world.database, &folder).await;
    let manifest = open_backup(&path).unwrap().manifest;
    let again = rcrt_backup::write(&at(&world.database).await, &manifest, &path, &key(1)).await.unwrap_err();
    assert!(matches!(again, BackupError::Exists { .. }), "{again}");

    let server = TestDatabase::server().await;
    let nowhere =
        Database { url: server.url(rcrt_postgres::SUPERUSER, "no_such_database"), ..at(&world.database).await };
    let elsewhere = folder.path().join("other");
    let failed = rcrt_backup::write(&nowhere, &manifest, &elsewhere, &key(1)).await.unwrap_err();
    assert!(matches!(&failed, BackupError::Failed { output, .. } if output.contains("no_such_database")), "{failed}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);

    // Into a database that is not empty: the transaction is rolled back.
    let full = open_backup(&path).unwrap();
    let refused = rcrt_backup::load(&full, &at(&world.database).await).await.unwrap_err();
    assert!(matches!(refused, BackupError::Failed { program: "pg_restore", .. }), "{refused}");
    world.write("still works").await;
    world.store.close().await;
}

/// The parts of a backup's file: head lines, archive, trailer.
fn parts(bytes: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let lines: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let (head, trailer) = (lines[1] + 1, bytes.len() - 131);
    (bytes[..head].to_vec(), bytes[head..trailer].to_vec(), bytes[trailer..].to_vec())
}

/// A file of these lines and this archive, with a correct checksum and the HMAC of another file.
fn with_correct_sum(head: &[u8], archive: &[u8], old_trailer: &[u8]) -> Vec<u8> {
    let mut file = [head, archive].concat();
    let sum = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &file);
    file.extend(format!("\n{}\n", hex(sum.as_ref())).as_bytes());
    file.extend(&old_trailer[66..]);
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_is_opened_only_with_the_key_that_wrote_it() {
    let world = open(TestDatabase::new().await, 1, None).await;
    world.write("a note").await;
    let folder = tempfile::tempdir().unwrap();
    let path = back_up(&world.database, &folder).await;
    let other_folder = tempfile::tempdir().unwrap();
    world.write("another note").await;
    let other = std::fs::read(back_up(&world.database, &other_folder).await).unwrap();
    let good = std::fs::read(&path).unwrap();
    assert_eq!(open_backup(&path).unwrap().manifest.authenticated_by.as_deref(), Some(key(1).id()));

    let refused = rcrt_backup::open(&path, Proof::Keys(&[key(2)])).unwrap_err();
    assert!(matches!(&refused, BackupError::KeyMissing { key: wanted, .. } if wanted == key(1).id()), "{refused}");
    assert!(matches!(rcrt_backup::open(&path, Proof::Keys(&[])).unwrap_err(), BackupError::KeyMissing { .. }));
    rcrt_backup::open(&path, Proof::Keys(&[key(2), key(1)])).unwrap();

    let (head, archive, trailer) = parts(&good);
    let (_, other_archive, other_trailer) = parts(&other);
    let changed_head = String::from_utf8(head.clone()).unwrap().replace("\"0.0.0\"", "\"9.9.9\"").into_bytes();
    assert_ne!(changed_head, head);
    let mut changed_archive = archive.clone();
    changed_archive[archive.len() / 2] ^= 1;
    let mut changed_proof = good.clone();
    changed_proof[good.len() - 3] ^= 1;
    for (what, forged) in [
        ("a changed manifest", with_correct_sum(&changed_head, &archive, &trailer)),
        ("a changed archive", with_correct_sum(&head, &changed_archive, &trailer)),
        ("another backup's archive", with_correct_sum(&head, &other_archive, &trailer)),
        ("another backup's archive and proof", with_correct_sum(&head, &other_archive, &other_trailer)),
        ("a changed proof", changed_proof),
    ] {
        std::fs::write(&path, &forged).unwrap();
        let refused = open_backup(&path).unwrap_err();
        assert!(matches!(refused, BackupError::Forged { .. }), "{what}: {refused}");
        // Without a proof the changed file is accepted.
        rcrt_backup::open(&path, Proof::Undamaged).unwrap();
    }
    // Naming another key, or the format without authentication, does not help.
    let named = String::from_utf8(head.clone()).unwrap().replace(key(1).id(), key(3).id()).into_bytes();
    std::fs::write(&path, with_correct_sum(&named, &archive, &trailer)).unwrap();
    assert!(matches!(open_backup(&path).unwrap_err(), BackupError::KeyMissing { .. }));
    let older = String::from_utf8(head).unwrap().replace("\"format\":2", "\"format\":1").into_bytes();
    let mut file = with_correct_sum(&older, &archive, &trailer);
    file.truncate(file.len() - 65);
    std::fs::write(&path, &file).unwrap();
    assert!(matches!(open_backup(&path).unwrap_err(), BackupError::Unauthenticated { .. }));
    let accepted = rcrt_backup::open(&path, Proof::Undamaged).unwrap();
    assert_eq!(accepted.manifest.format, 1);
    world.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_changes_after_it_was_opened_is_not_restored() {
    let world = open(TestDatabase::new().await, 1, None).await;
    world.write("a note").await;
    let folder = tempfile::tempdir().unwrap();
    let path = back_up(&world.database, &folder).await;
    let opened = open_backup(&path).unwrap();
    let good = std::fs::read(&path).unwrap();
    let (head, mut archive, trailer) = parts(&good);
    // A change in the archive's header that pg_restore ignores.
    let offset = archive.windows(7).position(|window| window == b"default").unwrap_or(archive.len() - 1);
    archive[offset] ^= 1;
    std::fs::write(&path, [head, archive, trailer].concat()).unwrap();
    let fresh = TestDatabase::empty().await;
    let fresh = TestDatabase { admin_url: empty_for_restore(&fresh.admin_url, true).await.unwrap(), ..fresh };
    let refused = rcrt_backup::load(&opened, &at(&fresh).await).await.unwrap_err();
    assert!(matches!(refused, BackupError::Run { .. } | BackupError::Failed { .. }), "{refused}");
    let mut connection = PgConnection::connect(&fresh.admin_url).await.unwrap();
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(tables, 0);
    world.store.close().await;
}

/// Actions that need a superuser, each in a database whose backup triggers it, during the restore
/// or later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_runs_nothing_as_superuser() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = folder.path().join("owned");
    let program = format!("COPY (SELECT 1) TO PROGRAM 'touch {}'", hostile.display());
    let check = format!(
        "CREATE FUNCTION check_row(a int) RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN
            IF current_setting('application_name') = 'pg_restore' THEN EXECUTE $p${program}$p$; END IF; RETURN true; END $f$;
         CREATE TABLE bait (a int CHECK (check_row(a))); INSERT INTO bait VALUES (1)"
    );
    for (name, statements) in [
        ("a check that runs while rows are loaded", check),
        (
            "a function in C",
            "CREATE FUNCTION c() RETURNS int LANGUAGE c AS '$libdir/plpgsql', 'plpgsql_call_handler'".into(),
        ),
        (
            "an event trigger",
            "CREATE FUNCTION t() RETURNS event_trigger LANGUAGE plpgsql AS $f$ BEGIN END $f$;
             CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION t()"
                .into(),
        ),
    ] {
        let database = TestDatabase::new().await;
        database.execute(&statements).await;
        let at_home = tempfile::tempdir().unwrap();
        let path = back_up(&database, &at_home).await;
        let backup = open_backup(&path).unwrap();
        let fresh = TestDatabase::empty().await;
        let url = empty_for_restore(&fresh.admin_url, true).await.unwrap();
        let target = Database { url: url.clone(), ..at(&fresh).await };
        let refused = rcrt_backup::load(&backup, &target).await.unwrap_err();
        let BackupError::Failed { output, .. } = &refused else { panic!("{name}: {refused}") };
        assert!(output.contains("permission denied") || output.contains("superuser"), "{name}: {output}");
        assert!(!hostile.exists(), "{name}");
    }
    // Code that runs when the database is used runs as its ordinary owner, even with SECURITY
    // DEFINER.
    let database = TestDatabase::new().await;
    let trap = format!(
        "CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $f$ BEGIN EXECUTE $p${program}$p$; RETURN NEW; END $f$;
         CREATE TRIGGER trap BEFORE INSERT ON restores FOR EACH ROW EXECUTE FUNCTION trap()"
    );
    database.execute(&trap).await;
    let at_home = tempfile::tempdir().unwrap();
    let backup = open_backup(&back_up(&database, &at_home).await).unwrap();
    let fresh = TestDatabase::empty().await;
    let url = empty_for_restore(&fresh.admin_url, true).await.unwrap();
    rcrt_backup::load(&backup, &Database { url: url.clone(), ..at(&fresh).await }).await.unwrap();
    continue_event_numbers(&url, 1).await.unwrap_err();
    assert!(!hostile.exists());
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let (is_superuser, owners): (bool, Vec<String>) = sqlx::query_as(
        "SELECT (SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = current_user),
            ARRAY(SELECT DISTINCT tableowner::text FROM pg_tables WHERE schemaname = 'public')",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert_eq!((is_superuser, owners), (false, vec![rcrt_store::RESTORED_OWNER.to_owned()]));
}
