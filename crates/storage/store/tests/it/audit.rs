//! A change commits with its line in the audit log, or not at all.

use chrono::{TimeDelta, Utc};
use rcrt_breadcrumb::{
    AclChange, Action, BreadcrumbChanges, NewAgent, NewBreadcrumb, NewSecret, Profile, Role, SecretChanges, Tenancy,
    TokenRevocation, WhichTokens, schema_names,
};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{note, object};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::harness::StoreHarness;

/// What the audited changes write.
const CHANGED: [&str; 8] = [
    "agents",
    "acl_grants",
    "secrets",
    "secret_grants",
    "revoked_tokens",
    "breadcrumbs",
    "breadcrumb_versions",
    "events",
];

async fn content(admin: &mut PgConnection) -> Vec<(&'static str, Vec<String>)> {
    let mut tables = Vec::new();
    for table in CHANGED {
        let sql = format!("SELECT t::text FROM {table} t ORDER BY 1");
        tables.push((table, sqlx::query_scalar(AssertSqlSafe(sql)).fetch_all(&mut *admin).await.unwrap()));
    }
    tables
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_made_without_its_audit_line() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let (tenant, me) = (agent.identity.owner_id, agent.identity.agent_id);
    let colleague = harness.agent_with(tenant, &[Role::Emitter]).await.identity.agent_id;
    let tool = |name: &str| NewBreadcrumb {
        schema_name: Some(schema_names::TOOL_CODE.into()),
        context: object(json!({"name": name})),
        ..note(name)
    };
    let (granted, other) =
        (agent.create(tool("granted"), None).await.unwrap().id, agent.create(tool("other"), None).await.unwrap().id);
    let secret = agent.create_secret(NewSecret::new("KEY", "a long value")).await.unwrap().id;
    agent.grant_secret(secret, granted).await.unwrap();
    let open = AclChange::agent(granted, colleague, [Action::ReadFull]);
    agent.grant(&open).await.unwrap();
    let more = AclChange::agent(other, colleague, [Action::ReadFull]);
    let new_agent = || NewAgent { name: "new".into(), roles: vec![Role::Emitter], profile: Profile::Main, tools: None };
    let revocation = |which| TokenRevocation { agent_id: colleague, which };
    let one = WhichTokens::One { jti: Uuid::new_v4(), until: Utc::now() + TimeDelta::minutes(5) };

    let mut admin = harness.admin().await;
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the log is full'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let before = content(&mut admin).await;
    let store = &harness.store;
    for (what, failed) in [
        ("an agent", store.create_agent(tenant, Some(me), new_agent()).await.is_err()),
        ("a key", store.rotate_agent_key(tenant, Some(me), colleague).await.is_err()),
        ("the end of an agent", store.delete_agent(tenant, Some(me), colleague).await.is_err()),
        ("the end of a token", store.revoke_tokens(tenant, me, revocation(one)).await.is_err()),
        (
            "the end of all tokens",
            store.revoke_tokens(tenant, me, revocation(WhichTokens::IssuedBefore(Utc::now()))).await.is_err(),
        ),
        ("a grant", agent.grant(&more).await.is_err()),
        ("the end of a grant", agent.revoke(&open).await.is_err()),
        ("a secret", agent.create_secret(NewSecret::new("OTHER", "a long value")).await.is_err()),
        ("another value", agent.update_secret(secret, SecretChanges::value("another value")).await.is_err()),
        ("a secret for a tool", agent.grant_secret(secret, other).await.is_err()),
        ("the end of a secret for a tool", agent.revoke_secret(secret, granted).await.is_err()),
        ("the end of a secret", agent.delete_secret(secret).await.is_err()),
        ("a decryption", agent.decrypt_secret(secret, "a call", Some(granted)).await.is_err()),
        ("a tool", agent.create(tool("new"), None).await.is_err()),
        ("another version of a tool", agent.update(other, 1, BreadcrumbChanges::default()).await.is_err()),
        ("the end of a tool", agent.delete(other, None).await.is_err()),
    ] {
        assert!(failed, "{what}");
    }
    assert_eq!(content(&mut admin).await, before);
    // The same changes, with their lines.
    sqlx::raw_sql("DROP TRIGGER refuse ON audit").execute(&mut admin).await.unwrap();
    store.create_agent(tenant, Some(me), new_agent()).await.unwrap();
    agent.grant(&more).await.unwrap();
    agent.grant_secret(secret, other).await.unwrap();
    agent.create(tool("new"), None).await.unwrap();
    assert_ne!(content(&mut admin).await, before);
    harness.close().await;
}
