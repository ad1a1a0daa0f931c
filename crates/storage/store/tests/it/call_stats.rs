//! Statistics of calls are counted into histograms. Their content is in the conformance suite.

use std::collections::BTreeMap;

use rcrt_breadcrumb::{CallStatsQuery, ToolRequest, schema_names};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{answer_to, claim_of, note, request};
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

/// Whoever can write requests can invent names, and cancel the requests before a runner sees them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invented_names_add_no_rows() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let mut tool = note("a tool");
    tool.schema_name = Some(schema_names::TOOL_V1.into());
    tool.context.insert("name".into(), "real".into());
    agent.create(tool, None).await.unwrap();
    let names = ["real".to_owned()].into_iter().chain((0..20).map(|number| format!("invented-{number}")));
    for (number, name) in names.enumerate() {
        let mut asked = ToolRequest::record(&name, json!({}), None, None);
        let is_late = number % 2 == 1;
        if is_late {
            asked.context.insert("deadline_ms".into(), 1.into());
        }
        let id = agent.create(asked, None).await.unwrap().id;
        while is_late && harness.store.time_out_overdue().await.unwrap() == 0 {}
        if !is_late {
            agent.cancel(id).await.unwrap();
        }
    }
    let query = CallStatsQuery { tool: None, window_seconds: 600 };
    let mut counted = Vec::new();
    for _ in 0..2 {
        let stats = agent.call_stats(&query).await.unwrap();
        assert!(stats.tools.iter().all(|tool| tool.run_ms.p99 == 0.0), "{stats:?}");
        counted.push(stats.tools.into_iter().map(|tool| (tool.tool.unwrap(), tool.failures)).collect::<Vec<_>>());
        harness.store.count_calls().await.unwrap();
    }
    assert_eq!(counted[0], counted[1]);
    let failures = |counts: &[(&str, u64)]| -> BTreeMap<String, u64> {
        counts.iter().map(|(code, calls)| ((*code).to_owned(), *calls)).collect()
    };
    let expected = [
        ("(unknown)".to_owned(), failures(&[("Cancelled", 10), ("Timeout", 10)])),
        ("real".to_owned(), failures(&[("Cancelled", 1)])),
    ];
    assert_eq!(counted[0], expected);
    harness.close().await;
}
