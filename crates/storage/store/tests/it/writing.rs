//! Batches of writes: what they share, what they do not, and how they survive a lost connection.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;

use futures::FutureExt;
use futures::future::join_all;
use rcrt_breadcrumb::{CallState, EventNumber, Lease, NewBreadcrumb, StoreError};
use rcrt_conformance::harness::{answer_to, claim_of, next, note, request};
use rcrt_conformance::{Agent, Harness};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::harness::StoreHarness;

type Writing<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Starts all writes at once while a lock blocks the first, so that the others form a batch. Then
/// releases the lock.
async fn together<T: 'static>(harness: &StoreHarness, mut writes: Vec<Writing<T>>) -> Vec<Result<T, StoreError>> {
    let mut admin = harness.admin().await;
    let lock = locked(&mut admin).await;
    for write in &mut writes {
        assert!(write.as_mut().now_or_never().is_none());
    }
    lock.rollback().await.unwrap();
    join_all(writes).await
}

async fn locked(admin: &mut PgConnection) -> sqlx::Transaction<'_, sqlx::Postgres> {
    let mut lock = admin.begin().await.unwrap();
    sqlx::query("LOCK TABLE breadcrumbs, calls IN SHARE MODE").execute(&mut *lock).await.unwrap();
    lock
}

fn creating(agent: &Agent, record: NewBreadcrumb, key: Option<String>) -> Writing<uuid::Uuid> {
    let store = agent.store.clone();
    Box::pin(async move { Ok(store.create(record, key.as_deref()).await?.id) })
}

/// The number of transactions that wrote this many events. Asserts that each event is delivered
/// once and in order.
async fn transactions(agent: &Agent, events: usize) -> usize {
    let mut stream = agent.events(Some(EventNumber(0))).await.unwrap();
    let (mut records, mut transactions, mut last) = (HashSet::new(), HashSet::new(), EventNumber(0));
    for _ in 0..events {
        let event = next(&mut stream).await;
        assert!(event.number > last && records.insert(event.breadcrumb_id));
        last = event.number;
        transactions.insert(last.0 >> 12);
    }
    transactions.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_writes_share_a_transaction() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let writes = (0..50).map(|n| creating(&agent, note(&n.to_string()), Some(n.to_string()))).collect();
    for written in together(&harness, writes).await {
        written.unwrap();
    }
    let transactions = transactions(&agent, 50).await;
    assert!(transactions < 10, "50 records in {transactions} transactions");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_write_fails_alone() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON breadcrumbs FOR EACH ROW WHEN (NEW.title = 'bad')
         EXECUTE FUNCTION refuse()",
    )
    .execute(&mut harness.admin().await)
    .await
    .unwrap();
    let title = |n| if n == 20 { "bad" } else { "good" };
    let writes = (0..40).map(|n| creating(&agent, note(title(n)), None)).collect();
    for (n, written) in together(&harness, writes).await.into_iter().enumerate() {
        assert_eq!(written.err(), (n == 20).then_some(StoreError::Full), "{n}");
    }
    transactions(&agent, 39).await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_key_creates_one_record_and_refuses_another_body() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let key = || Some("key".to_owned());
    let writes = vec![
        creating(&agent, note("first"), None),
        creating(&agent, note("second"), None),
        creating(&agent, note("same"), key()),
        creating(&agent, note("same"), key()),
        creating(&agent, note("other"), key()),
    ];
    let written = together(&harness, writes).await;
    assert_eq!(written[2], written[3]);
    assert_eq!(written[4], Err(StoreError::IdempotencyMismatch));
    transactions(&agent, 3).await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_lease_affects_only_its_own_call() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    for _ in 0..20 {
        agent.create(request(), None).await.unwrap();
    }
    let claims = agent.claim(&claim_of(20)).await.unwrap();
    let lease = |n: usize| Lease { fence: claims[n].lease.fence - i64::from(n == 7), ..claims[n].lease };
    let starts = (0..20).map(|n| {
        let (store, lease) = (agent.store.clone(), lease(n));
        Box::pin(async move { store.start(lease, 2).await }) as Writing<()>
    });
    for (n, started) in together(&harness, starts.collect()).await.into_iter().enumerate() {
        assert_eq!(started.is_ok(), n != 7, "{started:?}");
    }
    let answers = (0..20).map(|n| {
        let (store, lease, answer) = (agent.store.clone(), lease(n), answer_to(&claims[n], json!(n)));
        Box::pin(async move { store.complete(lease, answer).await }) as Writing<uuid::Uuid>
    });
    for (n, completed) in together(&harness, answers.collect()).await.into_iter().enumerate() {
        let call = agent.call(claims[n].request.id).await.unwrap();
        if n == 7 {
            assert_eq!(completed, Err(StoreError::LeaseLost { request: claims[n].request.id }));
            assert_eq!((call.state, call.attempt, call.max_attempts), (CallState::Claimed, 0, 1));
        } else {
            assert_eq!((call.state, call.response), (CallState::Finished, completed.ok()));
            assert_eq!((call.attempt, call.max_attempts), (1, 2));
        }
    }
    transactions(&agent, 39).await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_connection_is_lost_happens_once() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (mut admin, mut other) = (harness.admin().await, harness.admin().await);
    let lock = locked(&mut admin).await;
    let writes = (0..20).map(|n| tokio::spawn(creating(&agent, note(&n.to_string()), None))).collect::<Vec<_>>();
    // The first connections wait for the lock and are terminated. Their replacements wait again.
    let blocked = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE NOT granted
                   AND relation = 'breadcrumbs'::regclass
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let mut ended = 0;
    while ended < 3 {
        ended += sqlx::query_scalar::<_, i64>(blocked).fetch_one(&mut other).await.unwrap();
    }
    lock.rollback().await.unwrap();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    transactions(&agent, 20).await;
    harness.close().await;
}

/// A reader can be dropped between the begin of a transaction and its reply. The connection goes
/// back to the pool while still in that transaction, and nothing must be written in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_left_open_by_a_dropped_reader_loses_no_write() {
    let harness = StoreHarness::with_connections(2, rcrt_store::ContextReadLimits::default()).await;
    let agent = harness.alone().await;
    let mut admin = harness.admin().await;
    let left_open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                     AND application_name = 'rcrt' AND state = 'idle in transaction'";
    // This usually happens within a few rounds. The checks below must hold in any case.
    for round in 0..500 {
        if round % 100 == 0 {
            // All connections of the pool exist.
            let _ = tokio::join!(agent.get(uuid::Uuid::nil()), agent.get(uuid::Uuid::nil()));
        }
        let _ = agent.get(uuid::Uuid::nil()).now_or_never();
        if sqlx::query_scalar::<_, i64>(left_open).fetch_one(&mut admin).await.unwrap() == 2 {
            break;
        }
    }
    for n in 1..=3 {
        agent.create(note("kept"), None).await.unwrap();
        let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM breadcrumbs WHERE title = 'kept'")
            .fetch_one(&mut admin)
            .await
            .unwrap();
        assert_eq!(kept, n);
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_behind_a_timed_out_write_do_not_each_wait_as_long() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut admin = harness.admin().await;
    sqlx::raw_sql(
        "CREATE SEQUENCE attempts; GRANT USAGE ON SEQUENCE attempts TO rcrt_app;
         CREATE FUNCTION time_out() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM nextval('attempts'); RAISE EXCEPTION 'too long' USING ERRCODE = '57014'; END $$;
         CREATE TRIGGER time_out BEFORE INSERT ON breadcrumbs FOR EACH ROW EXECUTE FUNCTION time_out()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let writes = (0..40).map(|n| creating(&agent, note(&n.to_string()), None)).collect();
    for written in together(&harness, writes).await {
        assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    }
    let attempts: i64 = sqlx::query_scalar("SELECT last_value FROM attempts").fetch_one(&mut admin).await.unwrap();
    assert!(attempts < 10, "40 writes took {attempts} attempts");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_call_notifies_its_own_tenant_once() {
    let harness = StoreHarness::start().await;
    let (agent, stranger) = (harness.alone().await, harness.alone().await);
    // Nothing was reported yet.
    agent.call_queued().await;
    stranger.call_queued().await;
    assert!(agent.call_queued().now_or_never().is_none());
    agent.create(note("no call"), None).await.unwrap();
    assert!(agent.call_queued().now_or_never().is_none());

    let id = agent.create(request(), None).await.unwrap().id;
    agent.call_queued().await;
    assert_eq!(agent.claim(&claim_of(5)).await.unwrap()[0].request.id, id);
    assert!(agent.call_queued().now_or_never().is_none());
    assert!(stranger.call_queued().now_or_never().is_none());
    harness.close().await;
}

/// A plan that reads a whole table is only good for a small one, and plans are cached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_of_a_call_scans_a_whole_table() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let mut admin = harness.admin().await;
    let tables = "('breadcrumbs', 'breadcrumb_tags', 'breadcrumb_versions', 'calls', 'events', 'idempotency_keys')";
    let read = format!(
        "SELECT coalesce(sum(pg_stat_get_xact_numscans(c.oid)), 0)::bigint FROM pg_class c
         WHERE c.relname IN {tables} OR c.oid IN (SELECT relid FROM pg_partition_tree('events'))"
    );
    for _ in 0..3 {
        agent.create(request(), Some(&uuid::Uuid::new_v4().to_string())).await.unwrap();
        let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
        agent.start(claim.lease, 1).await.unwrap();
        agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
        for _ in 0..2 {
            next(&mut events).await;
        }
    }
    // On one connection and in one transaction, where the counts are exact.
    let mut tx = admin.begin().await.unwrap();
    sqlx::query("SET LOCAL ROLE rcrt_app").execute(&mut *tx).await.unwrap();
    let owner = agent.identity.owner_id;
    let steps = format!(
        "SELECT * FROM claim_calls('{owner}', '{{}}', '{{}}', '{{}}', 5, '{owner}', 1000);
         SELECT * FROM read_events('{owner}', 0, 100, 1000000, '{{}}')"
    );
    let before: i64 = sqlx::query_scalar(AssertSqlSafe(read.clone())).fetch_one(&mut *tx).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(steps)).execute(&mut *tx).await.unwrap();
    let after: i64 = sqlx::query_scalar(AssertSqlSafe(read)).fetch_one(&mut *tx).await.unwrap();
    assert_eq!(after - before, 0);
    tx.rollback().await.unwrap();
    harness.close().await;
}

/// A feed's plan is cached while the tables are empty, and used while they fill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_events_costs_the_same_when_the_tables_are_full() {
    const RECORDS: usize = 300;
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let owner = agent.identity.owner_id;
    let mut reader = harness.admin().await;
    sqlx::query("SET ROLE rcrt_app").execute(&mut reader).await.unwrap();
    let read = format!("SELECT count(*) FROM read_events('{owner}', 0, 50, 1000000, '{{}}')");
    for _ in 0..2 {
        let event_count: i64 = sqlx::query_scalar(AssertSqlSafe(read.clone())).fetch_one(&mut reader).await.unwrap();
        assert_eq!(event_count, 0);
    }
    join_all((0..RECORDS).map(|n| creating(&agent, note(&n.to_string()), None))).await;
    let mut tx = reader.begin().await.unwrap();
    let fetched = "SELECT sum(pg_stat_get_xact_tuples_fetched(oid))::bigint FROM pg_class
                   WHERE relname IN ('breadcrumbs', 'breadcrumb_versions')
                      OR oid IN (SELECT relid FROM pg_partition_tree('events'))";
    loop {
        let before: i64 = sqlx::query_scalar(fetched).fetch_one(&mut *tx).await.unwrap();
        let event_count: i64 = sqlx::query_scalar(AssertSqlSafe(read.clone())).fetch_one(&mut *tx).await.unwrap();
        let after: i64 = sqlx::query_scalar(fetched).fetch_one(&mut *tx).await.unwrap();
        assert!(after - before < 200, "{event_count} events took {} rows", after - before);
        // 50, and the row that says that there are more. Until then other tests' transactions hold
        // them back.
        if event_count == 51 {
            break;
        }
        tokio::task::yield_now().await;
    }
    tx.rollback().await.unwrap();
    harness.close().await;
}
