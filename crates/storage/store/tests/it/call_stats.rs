//! Statistics of calls are counted into histograms. Their content is in the conformance suite.

use rcrt_breadcrumb::CallStatsQuery;
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{answer_to, claim_of, request};
use serde_json::json;
use sqlx::AssertSqlSafe;

use crate::harness::StoreHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_counted_once_and_for_a_month() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let query = CallStatsQuery { tool: Some("echo".into()), window_seconds: 7200 };
    let mut admin = harness.admin().await;
    let mut rows = async |table: &str| -> i64 {
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        sqlx::query_scalar(sql).fetch_one(&mut admin).await.unwrap()
    };
    for done in 1..=3 {
        agent.create(request(), None).await.unwrap();
        let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
        agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
        assert_eq!(rows("call_outcomes").await, 1);
        assert_eq!(agent.call_stats(&query).await.unwrap().all.calls, done, "before it is counted");
        harness.store.count_calls().await.unwrap();
        assert_eq!(rows("call_outcomes").await, 0);
        assert_eq!(agent.call_stats(&query).await.unwrap().all.calls, done, "after it was counted");
    }
    harness.store.prune().await.unwrap();
    assert_eq!(agent.call_stats(&query).await.unwrap().all.calls, 3);
    let old = "UPDATE call_stats SET start = start - interval '33 days'";
    harness.database.execute(old).await;
    harness.store.prune().await.unwrap();
    assert_eq!(rows("call_stats").await, 0, "old statistics are deleted");
    harness.close().await;
}
