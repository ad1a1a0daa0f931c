//! Lists and searches with conditions on the context, and the connections that all tenants share.
//! The tests block them with a lock, never with time.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, ContextMatch, ContextPath, MatchOp, Role, Search, Selector,
    StoreError, Tenancy,
};
use rcrt_conformance::harness::{claim_of, note, request};
use rcrt_conformance::{Agent, Harness};
use rcrt_store::ContextReadLimits;
use rcrt_test_database::TestDatabase;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::harness::StoreHarness;

const CONNECTIONS: u32 = 8;
/// Of one tenant.
const SHARE: i64 = 2;
/// Of all tenants.
const ALL: i64 = 4;

/// The tests with this end their blocked statements themselves.
const LONG: ContextReadLimits = ContextReadLimits { longest: Duration::from_mins(1), crowded: Duration::from_mins(1) };

/// While it exists, every list and search of the tenants waits in the database.
struct Held(PgConnection);

impl Held {
    async fn tenants(database: &TestDatabase, tenants: &[Uuid]) -> Self {
        let tenants: Vec<String> = tenants.iter().map(Uuid::to_string).collect();
        let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
        let sql = format!(
            "CREATE FUNCTION waits() RETURNS bool LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN true; END';
             CREATE POLICY waits ON breadcrumbs AS RESTRICTIVE FOR SELECT
                USING (owner_id <> ALL ('{{{}}}'::uuid[]) OR waits());
             SELECT pg_advisory_lock(42)",
            tenants.join(",")
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

    async fn until_waiting(&mut self, lists: i64) {
        while self.waiting().await < lists {
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

/// Starts more lists than there are connections.
fn ask_for_many(store: &Arc<dyn Breadcrumbs>) -> Vec<Asked> {
    let ask = |_| {
        let store = store.clone();
        tokio::spawn(async move { store.list(&query()).await })
    };
    (0..10).map(ask).collect()
}

async fn start() -> (StoreHarness, Agent, Agent, Held) {
    let harness = StoreHarness::with_connections(CONNECTIONS, LONG).await;
    let (greedy, other) = (harness.alone().await, harness.alone().await);
    for agent in [&greedy, &other] {
        agent.create(note("Note"), None).await.unwrap();
    }
    let held = Held::tenants(&harness.database, &[greedy.identity.owner_id]).await;
    (harness, greedy, other, held)
}

async fn assert_is_served(harness: &StoreHarness, other: &Agent) {
    assert_eq!(other.list(&query()).await.unwrap().len(), 1);
    let search = Search { q: Some("note".into()), selector: query().selector, ..Search::default() };
    assert_eq!(other.search(&search).await.unwrap().items.len(), 1);
    harness.store.ping().await.unwrap();
}

/// Regression: twenty lists of one tenant took all connections, and no other request was served
/// until they finished.
#[tokio::test]
async fn one_tenants_context_lists_leave_connections_for_other_tenants() {
    let (harness, greedy, other, mut held) = start().await;
    let mut asked = ask_for_many(&greedy.store);
    held.until_waiting(SHARE).await;
    assert_is_served(&harness, &other).await;
    assert_eq!(held.waiting().await, SHARE);
    let Err(StoreError::Busy(refused)) = asked.pop().unwrap().await.unwrap() else { panic!("it was served") };
    let limit = format!("the limit of the tenant's agents is {SHARE} at once");
    assert!(refused.contains("context_match") && refused.contains(&limit), "{refused}");
    held.ends().await;
    // The first two use the share.
    for first in asked.into_iter().take(2) {
        assert_eq!(first.await.unwrap().unwrap().len(), 1);
    }
    assert_eq!(greedy.list(&query()).await.unwrap().len(), 1);
    harness.close().await;
}

/// Regression: two tenants with full shares took every slot for context lists.
#[tokio::test]
async fn two_tenants_leave_a_slot_for_a_third_tenants_context_lists() {
    let harness = StoreHarness::with_connections(CONNECTIONS, LONG).await;
    let (first, second, third) = (harness.alone().await, harness.alone().await, harness.alone().await);
    for agent in [&first, &second, &third] {
        agent.create(note("Note"), None).await.unwrap();
    }
    let mut held = Held::tenants(&harness.database, &[first.identity.owner_id, second.identity.owner_id]).await;
    let asked: Vec<Asked> = [&first, &second].into_iter().flat_map(|agent| ask_for_many(&agent.store)).collect();
    // One slot of each tenant, and one that only further lists of a tenant use.
    held.until_waiting(ALL - 1).await;
    assert_is_served(&harness, &third).await;
    assert_eq!(held.waiting().await, ALL - 1);
    held.ends().await;
    for one in asked {
        match one.await.unwrap() {
            Ok(items) => assert_eq!(items.len(), 1),
            Err(StoreError::Busy(refused)) => assert!(refused.contains("context_match"), "{refused}"),
            Err(other) => panic!("{other}"),
        }
    }
    harness.close().await;
}

/// Regression: a tenant's schedules stopped while its agents' lists used its share.
#[tokio::test]
async fn a_runner_reads_outside_its_tenants_share() {
    let (harness, greedy, _other, mut held) = start().await;
    let runner = harness.agent_with(greedy.identity.owner_id, &[Role::Runner]).await;
    let asked = ask_for_many(&greedy.store);
    held.until_waiting(SHARE).await;
    let reading = query();
    let mut read = runner.list(&reading);
    tokio::select! {
        answer = &mut read => panic!("it did not reach the database: {answer:?}"),
        () = held.until_waiting(SHARE + 1) => {}
    }
    held.ends().await;
    assert_eq!(read.await.unwrap().len(), 1);
    for one in asked {
        assert!(matches!(one.await.unwrap(), Ok(_) | Err(StoreError::Busy(_))));
    }
    harness.close().await;
}

/// The database continues statements whose caller is gone.
#[tokio::test]
async fn abandoned_lists_hold_their_tenants_share_until_they_finish() {
    let (harness, greedy, other, mut held) = start().await;
    let first = ask_for_many(&greedy.store);
    held.until_waiting(SHARE).await;
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

/// Regression: five tenants with two lists each took all connections, and no other request was
/// served until they finished.
#[tokio::test]
async fn context_lists_of_all_tenants_leave_connections_for_other_work() {
    let harness = StoreHarness::with_connections(CONNECTIONS, LONG).await;
    let other = harness.alone().await;
    let runner = harness.agent_with(other.identity.owner_id, &[Role::Runner]).await;
    let mut greedy = Vec::new();
    for _ in 0..5 {
        let agent = harness.alone().await;
        agent.create(note("Note"), None).await.unwrap();
        greedy.push(agent);
    }
    let tenants: Vec<Uuid> = greedy.iter().map(|agent| agent.identity.owner_id).collect();
    let mut held = Held::tenants(&harness.database, &tenants).await;
    let asked: Vec<Asked> = greedy.iter().flat_map(|agent| ask_for_many(&agent.store)).collect();
    held.until_waiting(ALL).await;
    let id = other.create(request(), None).await.unwrap().id;
    let claims = runner.claim(&claim_of(1)).await.unwrap();
    assert_eq!(claims[0].request.id, id);
    // A list without such conditions.
    assert_eq!(other.list(&BreadcrumbQuery::default()).await.unwrap().len(), 1);
    harness.store.ping().await.unwrap();
    assert_eq!(held.waiting().await, ALL);
    held.ends().await;
    let mut served = 0;
    for one in asked {
        match one.await.unwrap() {
            Ok(items) => served += items.len(),
            Err(StoreError::Busy(refused)) => assert!(refused.contains("context_match"), "{refused}"),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(served >= ALL as usize);
    for agent in &greedy {
        assert_eq!(agent.list(&query()).await.unwrap().len(), 1);
    }
    harness.close().await;
}

/// Regression: reads of many tenants that took as long as they could made all other tenants wait
/// for 12 seconds, and then get an error. The lock is never released, so only the time limits of
/// the statements end them.
#[tokio::test]
async fn slow_context_lists_of_many_tenants_let_another_tenants_list_through() {
    let limits = ContextReadLimits { longest: Duration::from_mins(1), crowded: Duration::from_millis(200) };
    let harness = StoreHarness::with_connections(CONNECTIONS, limits).await;
    let other = harness.alone().await;
    other.create(note("Note"), None).await.unwrap();
    let mut greedy = Vec::new();
    for _ in 0..9 {
        let agent = harness.alone().await;
        agent.create(note("Note"), None).await.unwrap();
        greedy.push(agent);
    }
    let tenants: Vec<Uuid> = greedy.iter().map(|agent| agent.identity.owner_id).collect();
    let mut held = Held::tenants(&harness.database, &tenants).await;
    let asked: Vec<Asked> = greedy.iter().flat_map(|agent| ask_for_many(&agent.store)).collect();
    held.until_waiting(ALL).await;
    assert_eq!(other.list(&query()).await.unwrap().len(), 1);
    held.ends().await;
    let mut ended = 0;
    for one in asked {
        match one.await.unwrap() {
            Err(StoreError::Invalid(found)) => {
                ended += 1;
                assert!(found.to_string().contains("longer than 0.2 s"), "{found}");
            }
            Ok(_) | Err(StoreError::Busy(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(ended > 0);
    harness.close().await;
}
