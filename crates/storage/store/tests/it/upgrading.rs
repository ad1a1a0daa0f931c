//! From each released version's database to the newest, while that version's servers keep working.
//!
//! The older server is represented by its SQL. It must keep working during the migration, and until
//! it is restarted.

use std::str::FromStr;
use std::time::{Duration, Instant};

use rcrt_breadcrumb::{BreadcrumbQuery, ClaimRequest, NewSecret};
use rcrt_conformance::Harness;
use rcrt_store::{MIGRATOR, migrate};
use rcrt_test_database::TestDatabase;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::sync::watch;
use uuid::Uuid;

use crate::harness::{StoreHarness, open};

/// The longest that a write may take during the migration, which waits a second for a lock at each
/// of its tables.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const TENANT: Uuid = Uuid::from_u128(0x7000_8000_0000_0000_0001);

/// The SQL with which a version writes and claims.
struct Release {
    /// Its newest migration.
    migration: i64,
    /// Writes the record $2 and its call in the tenant $1.
    write: &'static str,
    /// Claims one call in the tenant $1 as the runner $2.
    claim: &'static str,
}

const STEP_BY_STEP: Release = Release {
    migration: 8,
    write: "WITH record AS (
            INSERT INTO breadcrumbs (id, owner_id, title, context, tags, schema_name, visibility, sensitivity, version,
                checksum, size_bytes, created_at, updated_at, words)
            VALUES ($2, $1, 'Written', '{\"tool\": \"echo\"}', '{a,b}', 'tool.request.v1', 'team', 'low', 1, '', 16, now(),
                now(), to_tsvector('english', 'Written'))),
        tag AS (INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id) VALUES ($1, 'a', $2), ($1, 'b', $2)),
        call AS (INSERT INTO calls (request, owner_id, tool, request_id) VALUES ($2, $1, 'echo', $2::text))
        INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
        VALUES ($1, event_number(0), 'breadcrumb.created', $2, 1, now(), 16)",
    claim: "WITH next AS (
            SELECT c.request FROM calls c JOIN breadcrumbs r ON r.id = c.request
            WHERE c.state = 'queued' AND c.owner_id = $1 ORDER BY c.queued_at, c.request LIMIT 1
            FOR UPDATE OF c SKIP LOCKED)
        UPDATE calls c SET state = 'claimed', runner_id = $2, fence = c.fence + 1,
            lease_until = clock_timestamp() + interval '1 hour'
        FROM next WHERE c.request = next.request",
};

const ONE_ROUND_TRIP: Release = Release {
    migration: 10,
    write: "SELECT * FROM write_batch($1, '{0}', ARRAY[$2], '{Written}', '{NULL}', '{NULL}',
        ARRAY['{\"tool\": \"echo\"}'], ARRAY['{a,b}'], '{tool.request.v1}', '{NULL}', '{team}', '{low}', '{sum}', '{16}',
        '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{words}', '{words}', '{NULL}', '{NULL}', '{echo}', ARRAY[$2::text],
        '{NULL}', ARRAY['{}'], '{NULL}', '{}', '{}', '{}', '{}')",
    claim: "SELECT request FROM (SELECT id AS request FROM claim_calls($1, '{}', 1, $2, 3600000)) c",
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_version_is_upgraded_while_it_runs() {
    upgrade(&STEP_BY_STEP).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_round_trip_version_is_upgraded_while_it_runs() {
    upgrade(&ONE_ROUND_TRIP).await;
}

async fn upgrade(release: &'static Release) {
    let database = TestDatabase::empty().await;
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    MIGRATOR.run_to(release.migration, &mut admin).await.unwrap();
    database.execute(include_str!("../fixtures/load.sql")).await;
    let (secret, sealed) = a_secret().await;
    let [key_id, wrapped, value] = sealed;
    sqlx::query(
        "INSERT INTO secrets (id, owner_id, name, version, key_id, wrapped_key, sealed_value, created_at, updated_at)
         VALUES ($1, $2, 'OLD', 1, $3, $4, $5, now(), now())",
    )
    .bind(secret)
    .bind(TENANT)
    .bind(String::from_utf8(key_id).unwrap())
    .bind(wrapped)
    .bind(value)
    .execute(&mut admin)
    .await
    .unwrap();
    let before = contents(&mut admin).await;

    let (count, mut written) = watch::channel(0);
    let (stop, stopped) = watch::channel(false);
    let url = database.app_url.clone();
    let working = tokio::spawn(async move { work(&url, release, &count, &stopped).await });
    written.wait_for(|count| *count >= 20).await.unwrap();
    migrate(&PgConnectOptions::from_str(&database.admin_url).unwrap(), &MIGRATOR, &|_| {}).await.unwrap();
    let migrated_at = *written.borrow();
    // It also works on the new schema, until its server is restarted.
    let _ = written.wait_for(|count| *count >= migrated_at + 20).await;
    stop.send(true).unwrap();
    let (ids, longest) = working.await.unwrap();
    assert!(ids.len() >= migrated_at + 20);
    assert!(longest < LONGEST_PAUSE, "a write or a claim took {longest:?}");
    assert_eq!(contents(&mut admin).await, before, "the earlier rows are unchanged");

    let store = open(&database).await;
    let harness = StoreHarness { database, store };
    let agent = harness.agent(TENANT).await;
    for id in &ids {
        assert_eq!(agent.get(*id).await.unwrap().title, "Written");
    }
    assert_eq!(agent.decrypt_secret(secret, "to see it", None).await.unwrap(), "an old value");
    let query = BreadcrumbQuery { limit: 1000, ..BreadcrumbQuery::default() };
    assert_eq!(agent.list(&query).await.unwrap().len(), 1000);
    let claim = ClaimRequest { runner_id: Uuid::new_v4(), limit: 1, lease_ms: 60_000, except_tools: Vec::new() };
    assert!(!agent.claim(&claim).await.unwrap().is_empty(), "queued calls can be claimed");
    harness.close().await;
}

/// Writes records and claims calls in a loop. Returns the records' ids and the longest duration of
/// one round.
async fn work(
    url: &str,
    release: &Release,
    count: &watch::Sender<usize>,
    stopped: &watch::Receiver<bool>,
) -> (Vec<Uuid>, Duration) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let (mut ids, mut longest) = (Vec::new(), Duration::ZERO);
    while !*stopped.borrow() {
        let id = Uuid::now_v7();
        for sql in [release.write, release.claim] {
            let begun = Instant::now();
            while let Err(error) = step(&mut connection, sql, id).await {
                // The database may roll back either of two conflicting transactions. Every version
                // then retries.
                let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap_or_default();
                assert!(matches!(&*code, "40P01" | "40001"), "{error}: {sql}");
            }
            longest = longest.max(begun.elapsed());
        }
        ids.push(id);
        count.send_replace(ids.len());
    }
    (ids, longest)
}

async fn step(connection: &mut PgConnection, sql: &'static str, id: Uuid) -> Result<(), sqlx::Error> {
    let mut tx = connection.begin().await?;
    sqlx::query("SELECT set_config('rcrt.tenant', $1, true)").bind(TENANT.to_string()).execute(&mut *tx).await?;
    sqlx::query(sql).bind(TENANT).bind(id).execute(&mut *tx).await?;
    tx.commit().await
}

/// A digest of every loaded row, over the columns that all versions have.
async fn contents(admin: &mut PgConnection) -> Vec<String> {
    let mut digests = Vec::new();
    for sql in [
        "SELECT md5(string_agg(concat(id, title, context, tags, schema_name, version, checksum, updated_at, words), ''
            ORDER BY id)) FROM breadcrumbs WHERE id::text LIKE '00000000-0000-7000-9000-%'",
        "SELECT md5(string_agg(concat(breadcrumb_id, version, title, context), '' ORDER BY breadcrumb_id, version))
            FROM breadcrumb_versions",
        "SELECT md5(string_agg(concat(e.owner_id, number, kind, breadcrumb_id), '' ORDER BY e.owner_id, number))
            FROM events e WHERE breadcrumb_id::text LIKE '00000000-0000-7000-9000-%'",
        "SELECT md5(string_agg(concat(owner_id, tag, breadcrumb_id), '' ORDER BY breadcrumb_id, tag))
            FROM breadcrumb_tags WHERE breadcrumb_id::text LIKE '00000000-0000-7000-9000-%'",
        "SELECT md5(string_agg(concat(request, tool, queued_at), '' ORDER BY request))
            FROM calls WHERE request::text LIKE '00000000-0000-7000-9000-%'",
        "SELECT md5(string_agg(concat(id, name, key_id, wrapped_key, sealed_value), '' ORDER BY id)) FROM secrets",
    ] {
        digests.push(sqlx::query_scalar::<_, String>(sql).fetch_one(&mut *admin).await.unwrap());
    }
    digests
}

/// The id of a secret, and its encrypted columns, which have the same format since the first
/// version.
async fn a_secret() -> (Uuid, [Vec<u8>; 3]) {
    let harness = StoreHarness::start().await;
    sqlx::query("INSERT INTO tenants (id, name) VALUES ($1, 'first tenant')")
        .bind(TENANT)
        .execute(&mut harness.admin().await)
        .await
        .unwrap();
    let agent = harness.agent(TENANT).await;
    let secret = agent.create_secret(NewSecret::new("OLD", "an old value")).await.unwrap().id;
    let sealed: (Vec<u8>, Vec<u8>, Vec<u8>) =
        sqlx::query_as("SELECT key_id::bytea, wrapped_key, sealed_value FROM secrets WHERE id = $1")
            .bind(secret)
            .fetch_one(&mut harness.admin().await)
            .await
            .unwrap();
    harness.close().await;
    (secret, [sealed.0, sealed.1, sealed.2])
}
