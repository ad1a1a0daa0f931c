//! How much a tenant can store.

use futures::future::join_all;
use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, BreadcrumbQuery, Created, NewBreadcrumb, Role, StoreError, Tenancy,
    TenantQuotas, ToolResponse,
};
use rcrt_conformance::harness::{answer_to, claim_of, note, noted, request};
use rcrt_conformance::{Agent, Harness};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use serde_json::json;

use crate::harness::StoreHarness;

fn records(most: u64) -> TenantQuotas {
    TenantQuotas { max_records: Some(most), ..TenantQuotas::default() }
}

fn bytes(most: u64) -> TenantQuotas {
    TenantQuotas { max_bytes: Some(most), ..TenantQuotas::default() }
}

/// An agent without the roles runner and curator, in a tenant with these quotas.
async fn bounded(harness: &StoreHarness, quotas: TenantQuotas) -> Agent {
    let tenant = harness.tenant().await;
    harness.store.set_quotas(tenant, quotas).await.unwrap();
    harness.agent_with(tenant, &[Role::Emitter]).await
}

fn assert_over<T: std::fmt::Debug>(result: Result<T, StoreError>, which: &str, most: u64, kept: u64) {
    let expected = StoreError::QuotaExceeded { quota: which.into(), limit: most, used: kept };
    assert_eq!(result.unwrap_err(), expected);
}

fn large(bytes: usize) -> NewBreadcrumb {
    noted("Large", json!({"text": "x".repeat(bytes)}), &[])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_quota_is_enforced() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, records(3)).await;
    let tenant = agent.identity.owner_id;
    let mut kept: Vec<Created> = Vec::new();
    for _ in 0..3 {
        kept.push(agent.create(note("Kept"), None).await.unwrap());
    }
    assert_over(agent.create(note("Too many"), None).await, "records", 3, 3);
    // A curator's records count too, and so do requests.
    let curator = harness.agent(tenant).await;
    assert_over(curator.create(note("Too many"), None).await, "records", 3, 3);
    assert_over(agent.create(request(), None).await, "records", 3, 3);
    assert_eq!(agent.list(&BreadcrumbQuery::default()).await.unwrap().len(), 3);
    // A change adds no record.
    agent.update(kept[0].id, 1, BreadcrumbChanges::default()).await.unwrap();
    let usage = harness.store.usage(tenant).await.unwrap();
    assert_eq!((usage.records, usage.own, usage.in_force), (3, records(3), records(3)));
    // A deletion frees quota at once, and other tenants have their own.
    agent.delete(kept[0].id, None).await.unwrap();
    agent.create(note("In its place"), None).await.unwrap();
    assert_over(agent.create(note("Too many"), None).await, "records", 3, 3);
    harness.alone().await.create(note("Elsewhere"), None).await.unwrap();
    harness.close().await;
}

/// The counts that /metrics shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_whose_quota_is_removed_has_no_count() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, records(3)).await;
    let tenant = agent.identity.owner_id;
    let is_counted = || harness.store.counted_tenants().iter().any(|count| count.id == tenant);
    agent.create(note("Kept"), None).await.unwrap();
    assert!(is_counted());
    harness.store.set_quotas(tenant, records(4)).await.unwrap();
    assert!(is_counted(), "it still has a quota");
    harness.store.set_quotas(tenant, TenantQuotas::default()).await.unwrap();
    assert!(!is_counted());
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_byte_quota_is_enforced() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, bytes(10_000)).await;
    let id = agent.create(large(6_000), None).await.unwrap().id;
    let kept = harness.store.usage(agent.identity.owner_id).await.unwrap().bytes;
    assert!((6_000..6_100).contains(&kept), "{kept}");
    assert_over(agent.create(large(5_000), None).await, "bytes", 10_000, kept);
    // Old versions are stored too, so each change needs quota for the next one.
    let changed = BreadcrumbChanges { context: Some(large(5_000).context), ..BreadcrumbChanges::default() };
    assert_over(agent.update(id, 1, changed).await, "bytes", 10_000, kept);
    let smaller = BreadcrumbChanges { context: Some(large(100).context), ..BreadcrumbChanges::default() };
    agent.update(id, 1, smaller).await.unwrap();
    agent.create(large(1_000), None).await.unwrap();
    assert_eq!(agent.get(id).await.unwrap().version, 2);
    harness.close().await;
}

/// Even if no agent of the tenant has written in this process before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guests_write_counts_for_the_records_tenant() {
    let harness = StoreHarness::start().await;
    let home = harness.alone().await;
    let id = home.create(large(1_000), None).await.unwrap().id;
    let guest = harness.agent_with(harness.tenant().await, &[Role::Emitter]).await;
    let grant = AclChange::agent(id, guest.identity.agent_id, [Action::ReadFull, Action::Update]);
    home.grant(&grant).await.unwrap();
    // The quota of the guest's own tenant does not apply.
    harness.store.set_quotas(guest.identity.owner_id, bytes(10)).await.unwrap();
    harness.store.set_quotas(home.identity.owner_id, bytes(5_000)).await.unwrap();
    let changed = |size| BreadcrumbChanges { context: Some(large(size).context), ..BreadcrumbChanges::default() };
    match guest.update(id, 1, changed(6_000)).await {
        Err(StoreError::QuotaExceeded { quota, limit, .. }) => assert_eq!((&*quota, limit), ("bytes", 5_000)),
        other => panic!("{other:?}"),
    }
    assert_eq!(guest.update(id, 1, changed(2_000)).await.unwrap().version, 2);
    assert!(matches!(guest.update(id, 2, changed(4_000)).await, Err(StoreError::QuotaExceeded { .. })));
    assert_eq!(home.get(id).await.unwrap().version, 2);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_of_a_full_tenant_gets_a_response() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, records(2)).await;
    let tenant = agent.identity.owner_id;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let asked = agent.create(request(), None).await.unwrap().id;
    let cancelled = agent.create(request(), None).await.unwrap().id;
    assert_over(agent.create(request(), None).await, "records", 2, 2);
    // One from a runner, one from the store.
    let claim = runner.claim(&claim_of(1)).await.unwrap().remove(0);
    assert_eq!(claim.request.id, asked);
    runner.start(claim.lease, 1).await.unwrap();
    runner.complete(claim.lease, answer_to(&claim, json!({"done": true}))).await.unwrap();
    agent.cancel(cancelled).await.unwrap();
    for request in [asked, cancelled] {
        let query = BreadcrumbQuery::tagged(ToolResponse::tag(&request.to_string()));
        assert_eq!(agent.list(&query).await.unwrap().len(), 1);
    }
    // What a runner writes about tools is always stored. What it writes for other agents is not.
    let report = NewBreadcrumb { schema_name: Some("tool.error.v1".into()), ..note("A tool is wrong") };
    runner.create(report, None).await.unwrap();
    assert_over(runner.create(note("A part of a result"), None).await, "records", 2, 5);
    let for_agent = runner.on_behalf_of(agent.identity.agent_id).unwrap();
    assert_over(for_agent.create(note("Of a tool"), None).await, "records", 2, 5);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_create_needs_no_quota() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, records(1)).await;
    let first = agent.create(note("Once"), Some("key")).await.unwrap();
    let again = agent.create(note("Once"), Some("key")).await.unwrap();
    assert_eq!((again.id, again.replayed), (first.id, true));
    assert_over(agent.create(note("Another"), Some("another key")).await, "records", 1, 1);
    // A refused or failed create uses no quota either.
    agent.delete(first.id, None).await.unwrap();
    let other = agent.create(note("Other"), Some("key")).await;
    assert_eq!(other.unwrap_err(), StoreError::IdempotencyMismatch);
    agent.create(note("In its place"), None).await.unwrap();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_do_not_exceed_the_quota() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, records(10)).await;
    let written = join_all((0..30).map(|_| agent.create(note("One of many"), None))).await;
    let refused = |result: &Result<Created, StoreError>| matches!(result, Err(StoreError::QuotaExceeded { .. }));
    assert_eq!(written.iter().filter(|result| refused(result)).count(), 20);
    assert_eq!(agent.list(&BreadcrumbQuery::default()).await.unwrap().len(), 10);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn default_quotas_apply_to_tenants_without_their_own() {
    let database = rcrt_test_database::TestDatabase::new().await;
    let options = || StoreOptions {
        app_url: Some(database.app_url.clone()),
        quotas: TenantQuotas { max_records: Some(2), max_bytes: Some(5_000), ..TenantQuotas::default() },
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
    };
    let store = Store::open(options(), &|_| {}).await.unwrap();
    let harness = StoreHarness { database: database.clone(), store };
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    agent.create(note("One"), None).await.unwrap();
    assert_over(agent.create(large(6_000), None).await, "bytes", 5_000, 7);
    agent.create(note("Two"), None).await.unwrap();
    assert_over(agent.create(note("Three"), None).await, "records", 2, 2);
    // 0 means no limit. The other quota stays the default.
    harness.store.set_quotas(tenant, records(0)).await.unwrap();
    agent.create(note("Three"), None).await.unwrap();
    let usage = harness.store.usage(tenant).await.unwrap();
    assert_eq!((usage.records, usage.own, usage.in_force), (3, records(0), bytes(5_000)));
    assert!(matches!(agent.create(large(6_000), None).await, Err(StoreError::QuotaExceeded { .. })));
    // Another process knows the quotas too, and counts what this one has written.
    let other = Store::open(options(), &|_| {}).await.unwrap();
    let elsewhere = other.acting_as(agent.identity.clone());
    assert!(matches!(elsewhere.create(large(6_000), None).await, Err(StoreError::QuotaExceeded { .. })));
    elsewhere.create(note("Four"), None).await.unwrap();
    assert_eq!(other.usage(tenant).await.unwrap().records, 4);
    other.close().await;
    let too_large = records(u64::MAX);
    assert!(matches!(harness.store.set_quotas(tenant, too_large).await, Err(StoreError::Invalid(_))));
    let nobody = uuid::Uuid::new_v4();
    assert!(matches!(harness.store.set_quotas(nobody, records(1)).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(harness.store.usage(nobody).await, Err(StoreError::NotFound { .. })));
    harness.close().await;
}
