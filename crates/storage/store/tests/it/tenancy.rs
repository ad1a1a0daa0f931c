//! Tenants, agents and their keys; encrypted secrets; the audit log.

use rcrt_breadcrumb::{NewAgent, NewSecret, Role, SecretChanges, StoreError, Tenancy};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{assert_not_found, fields};
use uuid::Uuid;

use crate::harness::StoreHarness;

fn agent(name: &str) -> NewAgent {
    NewAgent {
        name: name.into(),
        roles: vec![Role::Runner, Role::Emitter, Role::Runner],
        profile: rcrt_breadcrumb::Profile::Scheduled,
        tools: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_created_once_per_name() {
    let harness = StoreHarness::start().await;
    let store = harness.store.clone();
    let makers = (0..8).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.ensure_tenant("acme").await.unwrap() })
    });
    let made = futures::future::join_all(makers).await;
    let first = made[0].as_ref().unwrap();
    assert!(made.iter().all(|tenant| tenant.as_ref().unwrap() == first));
    assert_eq!(store.tenants().await.unwrap(), vec![first.clone()]);
    assert_eq!(fields(store.ensure_tenant(" ").await), ["name"]);
    store.ping().await.unwrap();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_authenticated_only_by_its_key() {
    let harness = StoreHarness::start().await;
    let store = &harness.store;
    let (tenant, other) = (harness.tenant().await, harness.tenant().await);
    let made = store.create_agent(tenant, None, agent("bot")).await.unwrap();
    assert!(made.agent_key.starts_with("rcrt_") && made.agent_key.len() == 48, "{}", made.agent_key.len());
    assert_eq!(made.agent.roles, [Role::Emitter, Role::Runner]);
    let id = made.agent.id;
    let found = store.agent_by_key(tenant, id, &made.agent_key).await.unwrap();
    assert_eq!(found.as_ref(), Some(&made.agent));
    assert_eq!(store.agent(tenant, id).await.unwrap(), found);
    assert_eq!(store.agents(tenant).await.unwrap(), vec![made.agent.clone()]);

    let second = store.create_agent(tenant, None, agent("second")).await.unwrap();
    for (owner, id, key) in [
        (tenant, id, second.agent_key.as_str()),
        (tenant, id, ""),
        (other, id, &made.agent_key),
        (tenant, Uuid::new_v4(), &made.agent_key),
    ] {
        assert_eq!(store.agent_by_key(owner, id, key).await.unwrap(), None);
    }
    assert_eq!(store.agent(other, id).await.unwrap(), None);
    assert_eq!(fields(store.create_agent(tenant, None, agent("bot")).await), ["name"]);
    assert_not_found(store.create_agent(Uuid::new_v4(), None, agent("lost")).await);
    assert_not_found(store.delete_agent(other, None, id).await);

    store.delete_agent(tenant, None, id).await.unwrap();
    assert_eq!(store.agent_by_key(tenant, id, &made.agent_key).await.unwrap(), None);
    assert_eq!(store.agent(tenant, id).await.unwrap(), None);
    assert_not_found(store.delete_agent(tenant, None, id).await);
    store.create_agent(tenant, None, agent("bot")).await.expect("the name is free again");

    let kept: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT key_hash FROM agents").fetch_all(&mut harness.admin().await).await.unwrap();
    assert!(kept.iter().all(|hash| hash.len() == 32));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_decryption_is_audited_and_no_value_is_stored_in_plain_text() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let owner_id = agent.identity.owner_id;
    let secret = NewSecret::new("API_KEY", "hunter2hunter2");
    let id = agent.create_secret(secret).await.unwrap().id;
    agent.decrypt_secret(id, "tool weather", None).await.unwrap();
    agent.update_secret(id, SecretChanges::value("correct horse")).await.unwrap();
    agent.delete_secret(id).await.unwrap();
    agent.decrypt_secret(id, "too late", None).await.unwrap_err();

    let log = harness.store.audit_log(owner_id, 10).await.unwrap();
    let lines: Vec<_> = log
        .iter()
        .filter(|entry| entry.subject == id)
        .map(|entry| (entry.action.as_str(), entry.agent_id, entry.subject_name.as_str(), entry.reason.as_deref()))
        .collect();
    let me = Some(agent.identity.agent_id);
    assert_eq!(
        lines,
        [
            ("secret.deleted", me, "API_KEY", None),
            ("secret.rotated", me, "API_KEY", None),
            ("secret.decrypted", me, "API_KEY", Some("tool weather")),
            ("secret.created", me, "API_KEY", None),
        ]
    );
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_encrypted_value_cannot_be_moved_to_another_secret() {
    let harness = StoreHarness::start().await;
    let (agent, thief) = (harness.alone().await, harness.alone().await);
    let make = |value: &str| NewSecret::new("KEY", value);
    let id = agent.create_secret(make("hunter2hunter2")).await.unwrap().id;
    let own = thief.create_secret(make("nothing at all")).await.unwrap().id;
    let mut admin = harness.admin().await;
    let plain: i64 =
        sqlx::query_scalar("SELECT count(*) FROM secrets WHERE position('hunter2'::bytea IN sealed_value) > 0")
            .fetch_one(&mut admin)
            .await
            .unwrap();
    assert_eq!(plain, 0);
    sqlx::query(
        "UPDATE secrets t SET wrapped_key = s.wrapped_key, sealed_value = s.sealed_value
         FROM secrets s WHERE s.id = $1 AND t.id = $2",
    )
    .bind(id)
    .bind(own)
    .execute(&mut admin)
    .await
    .unwrap();
    let stolen = thief.decrypt_secret(own, "theft", None).await;
    assert!(matches!(stolen, Err(StoreError::Internal(_))), "{stolen:?}");
    harness.close().await;
}
