//! How many tools a tenant can have and an agent can create.

use futures::future::join_all;
use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, Role, StoreError, Tenancy, TenantQuotas, schema_names};
use rcrt_conformance::harness::{note, noted};
use rcrt_conformance::{Agent, Harness};
use serde_json::json;

use crate::harness::StoreHarness;

/// An agent without the roles runner and curator, in a tenant with these quotas.
async fn bounded(harness: &StoreHarness, quotas: TenantQuotas) -> Agent {
    let tenant = harness.tenant().await;
    harness.store.set_quotas(tenant, quotas).await.unwrap();
    harness.agent_with(tenant, &[Role::Emitter]).await
}

fn tool(name: &str, bytes: usize) -> NewBreadcrumb {
    let context = json!({"name": name, "description": "x".repeat(bytes)});
    NewBreadcrumb { schema_name: Some(schema_names::TOOL_CODE.into()), ..noted(name, context, &[]) }
}

fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> (String, u64, u64) {
    match result.unwrap_err() {
        StoreError::QuotaExceeded { quota, limit, used } => (quota, limit, used),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_tools_is_bounded() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, TenantQuotas { max_tools: Some(2), ..TenantQuotas::default() }).await;
    let first = agent.create(tool("one", 1), None).await.unwrap().id;
    agent.create(tool("two", 1), Some("two")).await.unwrap();
    let refused = agent.create(tool("three", 1), None).await;
    assert!(refused.as_ref().unwrap_err().to_string().contains("quota of 2 tools"), "{refused:?}");
    assert_eq!(refusal(refused), ("tools".into(), 2, 2));
    // A curator's tools count too; other records do not, and a repetition needs no room.
    let curator = harness.agent(agent.identity.owner_id).await;
    assert_eq!(refusal(curator.create(tool("three", 1), None).await).0, "tools");
    let other = agent.create(note("no tool"), None).await.unwrap().id;
    assert!(agent.create(tool("two", 1), Some("two")).await.unwrap().replayed);
    // A record that becomes a tool is one more. A change of a tool is not.
    let becomes = BreadcrumbChanges {
        schema_name: Some(schema_names::TOOL_CODE.into()),
        context: Some(tool("three", 1).context),
        ..BreadcrumbChanges::default()
    };
    assert_eq!(refusal(agent.update(other, 1, becomes.clone()).await).0, "tools");
    agent.update(first, 1, BreadcrumbChanges { title: Some("One".into()), ..Default::default() }).await.unwrap();
    agent.delete(first, None).await.unwrap();
    agent.update(other, 1, becomes).await.unwrap();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bytes_of_tools_are_bounded() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, TenantQuotas { max_tool_bytes: Some(10_000), ..TenantQuotas::default() }).await;
    let id = agent.create(tool("one", 6_000), None).await.unwrap().id;
    let (quota, limit, used) = refusal(agent.create(tool("two", 5_000), None).await);
    assert_eq!((&*quota, limit), ("tool_bytes", 10_000));
    assert!((6_000..6_100).contains(&used), "{used}");
    let resized =
        |bytes| BreadcrumbChanges { context: Some(tool("one", bytes).context), ..BreadcrumbChanges::default() };
    assert_eq!(refusal(agent.update(id, 1, resized(11_000)).await).0, "tool_bytes");
    // Old versions do not count.
    agent.update(id, 1, resized(9_000)).await.unwrap();
    agent.update(id, 2, resized(4_000)).await.unwrap();
    agent.create(tool("two", 5_000), None).await.unwrap();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_creations_are_bounded_even_if_it_deletes_them() {
    let harness = StoreHarness::start().await;
    let agent = bounded(&harness, TenantQuotas { max_tool_creations: Some(2), ..TenantQuotas::default() }).await;
    let tenant = agent.identity.owner_id;
    for name in ["one", "two"] {
        let id = agent.create(tool(name, 1), None).await.unwrap().id;
        agent.delete(id, None).await.unwrap();
    }
    let refused = agent.create(tool("three", 1), None).await;
    assert!(refused.as_ref().unwrap_err().to_string().contains("created 2 tools within an hour"), "{refused:?}");
    assert_eq!(refusal(refused), ("tool_creations".into(), 2, 2));
    // It counts for the agent for which a runner writes, and not for others or for curators.
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let for_agent = runner.on_behalf_of(agent.identity.agent_id).unwrap();
    assert_eq!(refusal(for_agent.create(tool("three", 1), None).await).0, "tool_creations");
    let colleague = harness.agent_with(tenant, &[Role::Emitter]).await;
    let id = colleague.create(tool("three", 1), None).await.unwrap().id;
    let curator = harness.agent(tenant).await;
    for name in ["a", "b", "c"] {
        curator.create(tool(name, 1), None).await.unwrap();
    }
    // A change creates nothing.
    let renamed = BreadcrumbChanges { title: Some("Three".into()), ..BreadcrumbChanges::default() };
    colleague.update(id, 1, renamed).await.unwrap();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_creations_do_not_exceed_the_quota() {
    let harness = StoreHarness::start().await;
    let quotas = TenantQuotas { max_tools: Some(5), ..TenantQuotas::default() };
    let agent = bounded(&harness, quotas).await;
    let written = join_all((0..20).map(|number| agent.create(tool(&format!("tool-{number}"), 1), None))).await;
    assert_eq!(written.iter().filter(|result| result.is_ok()).count(), 5);
    let usage = harness.store.usage(agent.identity.owner_id).await.unwrap();
    assert_eq!((usage.own, usage.in_force), (quotas, quotas));
    assert!(harness.store.counted_tenants().is_empty(), "quotas of tools need no count of all records");
    let too_large = TenantQuotas { max_tools: Some(u64::MAX), ..TenantQuotas::default() };
    match harness.store.set_quotas(agent.identity.owner_id, too_large).await {
        Err(StoreError::Invalid(found)) => assert_eq!(found.0[0].field, "quotas.max_tools"),
        other => panic!("{other:?}"),
    }
    harness.close().await;
}
