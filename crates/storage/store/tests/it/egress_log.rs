//! How long the egress log is stored. Its content and queries are tested over HTTP.

use chrono::{TimeDelta, Utc};
use rcrt_breadcrumb::{EgressOutcome, EgressQuery, EgressRecord};
use rcrt_conformance::Harness;

use crate::harness::StoreHarness;

pub fn record(host: &str, days_ago: i64) -> EgressRecord {
    EgressRecord {
        at: Utc::now() - TimeDelta::days(days_ago),
        agent_id: None,
        tool: "tester".into(),
        tool_id: None,
        call: None,
        host: host.into(),
        port: 443,
        method: "GET".into(),
        outcome: EgressOutcome::Failed,
        reason: None,
        status: None,
        bytes_out: 0,
        bytes_in: u64::MAX / 2,
        duration_ms: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_entries_are_deleted_in_every_tenant() {
    let harness = StoreHarness::start().await;
    let (one, two) = (harness.alone().await, harness.alone().await);
    one.log_egress(vec![record("new.example", 29), record("old.example", 31)]).await.unwrap();
    two.log_egress(vec![record("old.example", 31)]).await.unwrap();
    harness.store.prune().await.unwrap();
    let query = EgressQuery { limit: 10, ..EgressQuery::default() };
    let left = one.egress_log(&query).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!((&*left[0].record.host, left[0].record.bytes_in), ("new.example", u64::MAX / 2));
    assert!(two.egress_log(&query).await.unwrap().is_empty());
    harness.close().await;
}
