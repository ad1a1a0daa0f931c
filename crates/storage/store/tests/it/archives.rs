//! Archives of what retention deletes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use rcrt_breadcrumb::{EventNumber, StoreError, Tenancy};
use rcrt_conformance::harness::{PATIENCE, next, note, request};
use rcrt_conformance::{Agent, Harness};
use rcrt_store::{Imported, OnConflict, Store, StoreOptions, import_lines};
use serde_json::Value;
use sqlx::Connection as _;
use tempfile::TempDir;
use uuid::Uuid;

use crate::harness::{StoreHarness, open_with};
use crate::retention::{age, begin_next_range, is_stored};

/// A store that archives to this folder.
async fn archiving(harness: &StoreHarness, folder: &Path) -> Arc<Store> {
    let archive = Some(folder.to_owned());
    open_with(&harness.database, |options| StoreOptions { sweeps: false, archive, ..options }).await
}

/// Requests with their responses.
async fn finished(agent: &Agent, count: usize) -> BTreeSet<Uuid> {
    let mut records = BTreeSet::new();
    for _ in 0..count {
        let id = agent.create(request(), None).await.unwrap().id;
        agent.cancel(id).await.unwrap();
        records.extend([id, agent.call(id).await.unwrap().response.unwrap()]);
    }
    records
}

/// The complete files of the tenant that begin with this. Its name has a space, so its folder has
/// the name of its id.
fn files(folder: &Path, tenant: Uuid, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join(tenant.to_string())).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().all(|path| name(path).ends_with(".jsonl.gz")), "{files:?}");
    files.retain(|path| name(path).starts_with(kind));
    files.sort();
    files
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn reader(path: &Path) -> BufReader<GzDecoder<BufReader<File>>> {
    BufReader::new(GzDecoder::new(BufReader::new(File::open(path).unwrap())))
}

/// The lines of the files between the first and the last of each.
fn lines(files: &[PathBuf]) -> Vec<Value> {
    let mut all = Vec::new();
    for file in files {
        let lines: Vec<Value> =
            reader(file).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let (first, last) = (&lines[0], &lines[lines.len() - 1]);
        assert!(first["export"]["format"] == 1 && last["end"].is_object(), "{first} {last}");
        all.extend_from_slice(&lines[1..lines.len() - 1]);
    }
    all
}

/// The archived records, of which each is there once.
fn records(folder: &Path, tenant: Uuid) -> BTreeSet<Uuid> {
    let lines = lines(&files(folder, tenant, "calls-"));
    let ids: BTreeSet<Uuid> =
        lines.iter().map(|line| line["record"]["id"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(ids.len(), lines.len(), "a record is there twice");
    ids
}

/// The numbers of the archived events, of which each is there once, in order.
fn numbers(folder: &Path, tenant: Uuid) -> Vec<i64> {
    let lines = lines(&files(folder, tenant, "events-"));
    let numbers: Vec<i64> = lines.iter().map(|line| line["event"]["number"].as_i64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    numbers
}

async fn heard(agent: &Agent, count: usize) -> Vec<i64> {
    let mut events = agent.events(Some(EventNumber(0))).await.unwrap();
    let mut numbers = Vec::new();
    for _ in 0..count {
        numbers.push(next(&mut events).await.number.0);
    }
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_is_in_a_file_and_can_be_imported() {
    let (harness, folder) = (StoreHarness::without_sweeps().await, TempDir::new().unwrap());
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    let old = finished(&agent, 30).await;
    let gone = agent.create(note("Gone"), None).await.unwrap().id;
    agent.delete(gone, None).await.unwrap();
    // Of each request and response, and two of the note.
    let before = heard(&agent, 30 * 2 + 2).await;
    let mut admin = harness.admin().await;
    age(&mut admin, 40).await;
    let store = archiving(&harness, folder.path()).await;
    let young = finished(&agent, 1).await;
    store.prune().await.unwrap();

    assert_eq!((records(folder.path(), tenant), numbers(folder.path(), tenant)), (old.clone(), before));
    for id in &old {
        assert!(!is_stored(&agent, *id).await);
    }
    for id in young {
        assert!(is_stored(&agent, id).await);
    }
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM events WHERE at < now() - interval '8 days'")
        .fetch_one(&mut admin)
        .await
        .unwrap();
    assert_eq!(left, 0);
    let day = (chrono::Utc::now() - chrono::TimeDelta::days(40)).date_naive();
    // At midnight, the files may be of the day before.
    let days = [day.to_string(), day.pred_opt().unwrap().to_string()];
    let [events, calls] = ["events-", "calls-"].map(|kind| files(folder.path(), tenant, kind));
    assert!(days.iter().any(|day| name(&events[0]).starts_with(&format!("events-{day}-"))), "{events:?}");
    assert!(days.iter().any(|day| name(&calls[0]).starts_with(&format!("calls-{day}-"))), "{calls:?}");
    store.prune().await.unwrap();
    let again = ["events-", "calls-"].map(|kind| files(folder.path(), tenant, kind));
    assert_eq!(again, [events.clone(), calls.clone()], "nothing is archived twice");

    let tenant_name = harness.store.tenant(tenant).await.unwrap().unwrap().name;
    let import = async |file: &Path| {
        let url = &harness.database.admin_url;
        import_lines(url, &tenant_name, &mut reader(file), OnConflict::Fail, true).await.unwrap()
    };
    let (created, skipped) = (old.len() as u64, 62);
    assert_eq!(import(&calls[0]).await, Imported { created, ..Imported::default() });
    assert_eq!(import(&events[0]).await, Imported { skipped, ..Imported::default() });
    for id in old {
        assert!(!agent.get(id).await.unwrap().context.is_empty());
    }
    store.close().await;
    harness.close().await;
}

/// After each step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_that_was_interrupted_is_finished() {
    let (harness, folder) = (StoreHarness::without_sweeps().await, TempDir::new().unwrap());
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    let old = finished(&agent, 10).await;
    let before = heard(&agent, 20).await;
    let mut admin = harness.admin().await;
    age(&mut admin, 40).await;
    let store = archiving(&harness, folder.path()).await;

    // The files are planned and cannot be written.
    let place = folder.path().join(tenant.to_string());
    fs::write(&place, "in the way").unwrap();
    let refused = store.prune().await.unwrap_err();
    assert!(matches!(&refused, StoreError::Unavailable(why) if why.contains("cannot be written")), "{refused}");
    // The step that failed for the events can hold the tenant's lock a little longer, and then a
    // later run plans the calls.
    let planned = async {
        loop {
            let file = sqlx::query_scalar("SELECT file FROM call_archives WHERE owner_id = $1").bind(tenant);
            if let Some(file) = file.fetch_optional(&mut admin).await.unwrap() {
                return file;
            }
            let _ = store.prune().await;
        }
    };
    let planned: String = tokio::time::timeout(PATIENCE, planned).await.expect("a file is planned");
    for id in &old {
        assert!(is_stored(&agent, *id).await);
    }
    assert_eq!(heard(&agent, 20).await, before);

    // One is half written, as after a kill.
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    let half = place.join(format!(".{}.half", name(Path::new(&planned))));
    fs::write(&half, "half").unwrap();
    // Nothing can be deleted.
    let mut locks = harness.admin().await;
    let mut locked = locks.begin().await.unwrap();
    for id in &old {
        let key = id.as_u64_pair().1.cast_signed();
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(key).execute(&mut *locked).await.unwrap();
    }
    // The transaction that failed can hold the tenant's lock a little longer.
    let finished = async {
        while half.exists() {
            store.prune().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, finished).await.expect("the file is finished");
    let written = files(folder.path(), tenant, "calls-");
    assert_eq!((written.len(), records(folder.path(), tenant)), (1, old.clone()));

    // The file is complete but was not recorded.
    sqlx::query("UPDATE call_archives SET is_written = false").execute(&mut admin).await.unwrap();
    store.prune().await.unwrap();
    // Half of the records are deleted.
    locked.rollback().await.unwrap();
    for id in old.iter().take(10) {
        agent.delete(*id, None).await.unwrap();
    }
    store.prune().await.unwrap();
    assert_eq!((files(folder.path(), tenant, "calls-"), records(folder.path(), tenant)), (written, old.clone()));
    assert_eq!(numbers(folder.path(), tenant), before);
    for id in old {
        assert!(!is_stored(&agent, id).await);
    }
    store.close().await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_archive_at_once_take_turns() {
    let (harness, folder) = (StoreHarness::without_sweeps().await, TempDir::new().unwrap());
    let mut tenants = Vec::new();
    for _ in 0..3 {
        let agent = harness.alone().await;
        tenants.push((agent.identity.owner_id, finished(&agent, 5).await, heard(&agent, 10).await));
    }
    age(&mut harness.admin().await, 40).await;
    let (one, other) = (archiving(&harness, folder.path()).await, archiving(&harness, folder.path()).await);
    let (first, second) = tokio::join!(one.prune(), other.prune());
    first.unwrap();
    second.unwrap();
    // What each left to the other.
    one.prune().await.unwrap();
    for (tenant, old, before) in tenants {
        assert_eq!((records(folder.path(), tenant), numbers(folder.path(), tenant)), (old, before));
    }
    one.close().await;
    other.close().await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_is_dropped_after_it_was_archived() {
    let (harness, folder) = (StoreHarness::without_sweeps().await, TempDir::new().unwrap());
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    agent.create(note("Kept"), None).await.unwrap();
    let before = heard(&agent, 1).await;
    let range = begin_next_range(&harness).await;
    harness.database.execute("SELECT record_retention(NULL, NULL, 604800, 604800, true)").await;
    let store = archiving(&harness, folder.path()).await;
    let mut admin = harness.admin().await;
    let mut is_there = async || {
        let found: Option<String> =
            sqlx::query_scalar("SELECT to_regclass($1)::text").bind(&range).fetch_one(&mut admin).await.unwrap();
        found.is_some()
    };

    let place = folder.path().join(tenant.to_string());
    fs::write(&place, "in the way").unwrap();
    store.prune().await.unwrap_err();
    assert!(is_there().await);
    fs::remove_file(&place).unwrap();
    // The step that failed can hold the tenant's lock a little longer.
    let dropped = async {
        while is_there().await {
            store.prune().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, dropped).await.expect("the range is dropped");
    assert_eq!(numbers(folder.path(), tenant), before);
    store.close().await;
    harness.close().await;
}
