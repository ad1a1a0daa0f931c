//! Expired records are deleted while other work runs, and nothing waits for it.

use std::time::Duration;

use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, NewBreadcrumb, StoreError, Tenancy, TtlType};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{Agent, PATIENCE, answer_to, claim_of, note, request};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::harness::StoreHarness;

/// Inserts expired records directly.
async fn fill(admin: &mut PgConnection, owner: Uuid, count: i32) {
    sqlx::query(
        "WITH made AS (
            INSERT INTO breadcrumbs (id, owner_id, title, context, tags, schema_name, visibility, sensitivity, version,
                checksum, size_bytes, ttl, created_at, updated_at, words)
            SELECT gen_random_uuid(), $1, 'old', '{}', '{note,old}', 'note.v1', 'team', 'low', 1, '', 2,
                now() - interval '1 minute', now(), now(), ''
            FROM generate_series(1, $2) RETURNING id)
         INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id) SELECT $1, t, id FROM made, unnest('{note,old}'::text[]) t",
    )
    .bind(owner)
    .bind(count)
    .execute(admin)
    .await
    .unwrap();
}

async fn rows(admin: &mut PgConnection, table: &'static str) -> i64 {
    sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"))).fetch_one(admin).await.unwrap()
}

async fn one_call(agent: &Agent) {
    agent.create(request(), None).await.unwrap();
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.start(claim.lease, 1).await.unwrap();
    agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_expired_records_are_deleted_while_calls_are_claimed() {
    const MANY: i32 = 20_000;
    let harness = StoreHarness::without_sweeps().await;
    let (agent, purged) = (harness.alone().await, harness.alone().await);
    one_call(&agent).await;
    let mut admin = harness.admin().await;
    // The calls belong to the tenant with the expired records, and to another.
    for owner in [agent.identity.owner_id, purged.identity.owner_id] {
        fill(&mut admin, owner, MANY / 2).await;
    }
    let store = harness.store.clone();
    let purge = tokio::spawn(async move { store.expire().await });
    let mut calls = 0;
    let at_work = async {
        while rows(&mut admin, "breadcrumb_tags WHERE tag = 'old'").await > 0 {
            one_call(&agent).await;
            calls += 1;
            let waiting: i64 = sqlx::query_scalar(
                // Not the lock that extends a file, which is held only briefly.
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                    AND wait_event <> 'extend' AND query ~ 'write_batch|claim_calls'",
            )
            .fetch_one(&mut admin)
            .await
            .unwrap();
            assert_eq!(waiting, 0, "a call waits for a lock");
        }
    };
    tokio::time::timeout(PATIENCE * 4, at_work).await.expect("the records are deleted in time");
    purge.await.unwrap().unwrap();
    assert!(calls > 10, "{calls} calls while the records were deleted");
    // The store's own sweep counts its deletions when it finishes.
    tokio::time::timeout(PATIENCE, async {
        for owner in [agent.identity.owner_id, purged.identity.owner_id] {
            while harness.store.hygiene(owner).await.unwrap().total_breadcrumbs_purged < MANY as u64 / 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let stats = harness.store.hygiene(owner).await.unwrap();
            assert_eq!((stats.total_breadcrumbs_purged, stats.waiting), (MANY as u64 / 2, 0));
        }
    })
    .await
    .expect("the statistics are written in time");
    assert_eq!(rows(&mut admin, "events WHERE kind = 'breadcrumb.deleted'").await, i64::from(MANY));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_record_is_skipped() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let mut admin = harness.admin().await;
    let id = agent.create(note("Held"), None).await.unwrap().id;
    // It expires while a transaction extends it.
    let mut changing = sqlx::Connection::begin(&mut admin).await.unwrap();
    sqlx::query("UPDATE breadcrumbs SET ttl = now() - interval '1 second' WHERE id = $1")
        .bind(id)
        .execute(&mut *changing)
        .await
        .unwrap();
    changing.commit().await.unwrap();
    let mut changing = sqlx::Connection::begin(&mut admin).await.unwrap();
    let locked = sqlx::query("UPDATE breadcrumbs SET ttl = now() + interval '1 hour' WHERE id = $1")
        .bind(id)
        .execute(&mut *changing)
        .await
        .unwrap();
    // The store's sweep may have been faster than this change. Then there is nothing to test.
    if locked.rows_affected() == 1 {
        tokio::time::timeout(PATIENCE, harness.store.expire()).await.expect("the sweep waits for no lock").unwrap();
        changing.commit().await.unwrap();
        harness.store.expire().await.unwrap();
        agent.get(id).await.unwrap();
    } else {
        changing.rollback().await.unwrap();
    }
    harness.close().await;
}

/// A simple model of a record's life, with a clock that the test advances.
#[derive(Debug)]
struct Model {
    ends_in: Option<i64>,
    max_reads: Option<i64>,
    reads: i64,
    is_gone: bool,
}

impl Model {
    fn is_there(&mut self) -> bool {
        self.is_gone |= self.ends_in.is_some_and(|left| left <= 0);
        !self.is_gone
    }

    fn read(&mut self) -> bool {
        let there = self.is_there();
        if there && self.max_reads.is_some() {
            self.reads += 1;
            self.is_gone = Some(self.reads) == self.max_reads;
        }
        there
    }
}

/// A small random generator, so that a failure names its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn any_ttl(dice: &mut Dice) -> (BreadcrumbChanges, Model) {
    let (hours, reads) = (1 + dice.roll(4) as i64, 1 + dice.roll(3) as i64);
    let (kind, config, ends_in, max_reads) = match dice.roll(4) {
        0 => (TtlType::Never, json!({}), None, None),
        1 => (TtlType::Duration, json!({"duration": hours * 3600}), Some(hours), None),
        2 => (TtlType::Usage, json!({"max_reads": reads}), None, Some(reads)),
        _ => (TtlType::Hybrid, json!({"duration": hours * 3600, "max_reads": reads}), Some(hours), Some(reads)),
    };
    let changes = BreadcrumbChanges { ttl_type: Some(kind), ttl_config: Some(config), ..BreadcrumbChanges::default() };
    (changes, Model { ends_in, max_reads, reads: 0, is_gone: false })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_expire_as_the_model_predicts() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut admin = harness.admin().await;
    for seed in 0..12 {
        let mut dice = Dice(seed);
        let (ttl, mut model) = any_ttl(&mut dice);
        let record = NewBreadcrumb { ttl_type: ttl.ttl_type, ttl_config: ttl.ttl_config, ..note("A life") };
        let id = agent.create(record, None).await.unwrap().id;
        let mut version = 1;
        for step in 0..14 {
            let case = format!("seed {seed}, step {step}, {model:?}");
            match dice.roll(6) {
                0 => {
                    // One hour passes.
                    sqlx::query("UPDATE breadcrumbs SET ttl = ttl - interval '1 hour' WHERE id = $1")
                        .bind(id)
                        .execute(&mut admin)
                        .await
                        .unwrap();
                    model.ends_in = model.ends_in.map(|left| left - 1);
                }
                1 => {
                    let (changes, next) = any_ttl(&mut dice);
                    let there = model.is_there();
                    let changed = agent.update(id, version, changes).await;
                    assert_eq!(changed.is_ok(), there, "{case}: {changed:?}");
                    if there {
                        model = next;
                        version += 1;
                    }
                }
                2 => {
                    let listed = agent.list(&BreadcrumbQuery::default()).await.unwrap();
                    assert_eq!(listed.iter().any(|item| item.id == id), model.is_there(), "{case}");
                }
                3 => assert_eq!(agent.history(id).await.is_ok(), model.is_there(), "{case}"),
                _ => match agent.get(id).await {
                    Ok(record) => {
                        assert!(model.read(), "{case}");
                        let left = model.max_reads.map(|most| most - model.reads);
                        assert_eq!(record.reads_left, left, "{case}");
                    }
                    Err(StoreError::NotFound { .. }) => assert!(!model.read(), "{case}"),
                    Err(error) => panic!("{case}: {error}"),
                },
            }
        }
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_reads_of_the_records_own_tenant_are_counted() {
    let harness = StoreHarness::without_sweeps().await;
    let (agent, stranger) = (harness.alone().await, harness.alone().await);
    let once =
        NewBreadcrumb { ttl_type: Some(TtlType::Usage), ttl_config: Some(json!({"max_reads": 1})), ..note("Once") };
    let id = agent.create(once, None).await.unwrap().id;
    assert!(matches!(stranger.get(id).await, Err(StoreError::NotFound { .. })));
    let mut admin = harness.admin().await;
    for statement in ["SET ROLE rcrt_app".to_owned(), format!("SET rcrt.tenant = '{}'", stranger.identity.owner_id)] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut admin).await.unwrap();
    }
    let counted: Option<i64> =
        sqlx::query_scalar("SELECT count_read($1)").bind(id).fetch_one(&mut admin).await.unwrap();
    assert_eq!(counted, None);
    agent.get(id).await.unwrap();
    // A deleted record leaves no count.
    tokio::time::timeout(PATIENCE, async {
        let mut owner = harness.admin().await;
        while rows(&mut owner, "breadcrumb_reads").await > 0 {
            harness.store.expire().await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .expect("the count is deleted with the record");
    harness.close().await;
}
