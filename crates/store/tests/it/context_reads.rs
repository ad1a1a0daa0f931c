//! Lists and searches with conditions on the context, and the connections that all tenants share. They are held by a lock,
//! never by time.

use std::sync::Arc;

use breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, ContextMatch, ContextPath, MatchOp, Search, Selector, StoreError,
    Tenancy,
};
use conformance::harness::note;
use conformance::{Agent, Harness};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use test_database::TestDatabase;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::harness::StoreHarness;

/// Of eight connections.
const SHARE: i64 = 2;

/// Until it ends, every list and search of the tenant waits within the database.
struct Held(PgConnection);

impl Held {
    async fn tenant(database: &TestDatabase, tenant: Uuid) -> Self {
        let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
        let sql = format!(
            "CREATE FUNCTION waits() RETURNS bool LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN true; END';
             CREATE POLICY waits ON breadcrumbs AS RESTRICTIVE FOR SELECT
                USING (owner_id <> '{tenant}' OR waits());
             SELECT pg_advisory_lock(42)"
        );
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await.unwrap();
        Self(admin)
    }

    async fn waiting(&mut self) -> i64 {
        sqlx::query_scalar(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
             WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.objid = 42 AND NOT l.granted",
        )
        .fetch_one(&mut self.0)
        .await
        .unwrap()
    }

    async fn until_the_share_waits(&mut self) {
        while self.waiting().await < SHARE {
            tokio::task::yield_now().await;
        }
    }

    async fn ends(mut self) {
        sqlx::raw_sql("SELECT pg_advisory_unlock(42)").execute(&mut self.0).await.unwrap();
    }
}

fn query() -> BreadcrumbQuery {
    let path = ContextPath::try_from("$.n".to_owned()).unwrap();
    let condition = ContextMatch { path, op: MatchOp::Eq, value: json!(1) };
    BreadcrumbQuery {
        selector: Selector { context_match: vec![condition], ..Selector::default() },
        ..BreadcrumbQuery::default()
    }
}

type Asked = JoinHandle<Result<Vec<BreadcrumbListItem>, StoreError>>;

/// More lists than there are connections.
fn ask_for_many(store: &Arc<dyn Breadcrumbs>) -> Vec<Asked> {
    let ask = |_| {
        let store = store.clone();
        tokio::spawn(async move { store.list(&query()).await })
    };
    (0..10).map(ask).collect()
}

async fn start() -> (StoreHarness, Agent, Agent, Held) {
    let harness = StoreHarness::with_connections(8).await;
    let (greedy, other) = (harness.alone().await, harness.alone().await);
    for agent in [&greedy, &other] {
        agent.create(note("Note"), None).await.unwrap();
    }
    let held = Held::tenant(&harness.database, greedy.identity.owner_id).await;
    (harness, greedy, other, held)
}

async fn assert_is_served(harness: &StoreHarness, other: &Agent) {
    assert_eq!(other.list(&query()).await.unwrap().len(), 1);
    let search = Search { q: Some("note".into()), selector: query().selector, ..Search::default() };
    assert_eq!(other.search(&search).await.unwrap().items.len(), 1);
    harness.store.ping().await.unwrap();
}

/// Twenty lists of one tenant took all connections, and nobody was answered until they had ended.
#[tokio::test]
async fn a_tenants_lists_by_context_leave_connections_to_the_others() {
    let (harness, greedy, other, mut held) = start().await;
    let mut asked = ask_for_many(&greedy.store);
    held.until_the_share_waits().await;
    assert_is_served(&harness, &other).await;
    assert_eq!(held.waiting().await, SHARE);
    let Err(StoreError::Unavailable(refused)) = asked.pop().unwrap().await.unwrap() else { panic!("it was served") };
    assert!(refused.contains("context_match"), "{refused}");
    held.ends().await;
    // The first have the share.
    for first in asked.into_iter().take(2) {
        assert_eq!(first.await.unwrap().unwrap().len(), 1);
    }
    assert_eq!(greedy.list(&query()).await.unwrap().len(), 1);
    harness.close().await;
}

/// The database goes on with what nobody waits for any more.
#[tokio::test]
async fn lists_that_are_given_up_keep_their_tenants_share_to_their_end() {
    let (harness, greedy, other, mut held) = start().await;
    let first = ask_for_many(&greedy.store);
    held.until_the_share_waits().await;
    for one in first {
        one.abort();
        assert!(one.await.unwrap_err().is_cancelled());
    }
    let again = ask_for_many(&greedy.store);
    assert_is_served(&harness, &other).await;
    assert_eq!(held.waiting().await, SHARE);
    held.ends().await;
    for one in again {
        assert_eq!(one.await.unwrap().unwrap().len(), 1);
    }
    harness.close().await;
}
