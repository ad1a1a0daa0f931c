//! Secrets and their grants below the store's interface: the audit log, races.

use std::time::Duration;

use chrono::Utc;
use rcrt_breadcrumb::{
    BreadcrumbChanges, NewBreadcrumb, NewSecret, Role, SecretChanges, StoreError, TtlType, schema_names,
};
use rcrt_conformance::harness::note;
use rcrt_conformance::{Agent, Harness};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::harness::StoreHarness;

fn tool() -> NewBreadcrumb {
    NewBreadcrumb { schema_name: Some(schema_names::TOOL_CODE.into()), ..note("a tool") }
}

async fn with_grant(harness: &StoreHarness) -> (Agent, Uuid, Uuid) {
    let agent = harness.alone().await;
    let secret = agent.create_secret(NewSecret::new("KEY", "a long value")).await.unwrap().id;
    let tool = agent.create(tool(), None).await.unwrap().id;
    agent.grant_secret(secret, tool).await.unwrap();
    (agent, secret, tool)
}

type Line = (String, Option<Uuid>, String, Option<String>, Option<Uuid>);

/// The audit entries of this secret, oldest first, without the first one.
async fn audited(harness: &StoreHarness, owner_id: Uuid, secret: Uuid) -> Vec<Line> {
    let log = harness.store.audit_log(owner_id, 1000).await.unwrap();
    let mut lines: Vec<Line> = log
        .into_iter()
        .filter(|entry| entry.subject == secret)
        .map(|entry| (entry.action, entry.agent_id, entry.subject_name, entry.reason, entry.tool_id))
        .collect();
    lines.reverse();
    assert_eq!(lines.remove(0).0, "secret.created");
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_of_a_secret_is_in_the_audit_log() {
    let harness = StoreHarness::start().await;
    let (agent, id, tool) = with_grant(&harness).await;
    agent.grant_secret(id, tool).await.unwrap();
    agent.decrypt_secret(id, "a call", Some(tool)).await.unwrap();
    agent.decrypt_secret(id, "another call", Some(id)).await.unwrap_err();
    let hosts = Some(vec!["B.example.com".into(), "a.example.com".into()]);
    let all = SecretChanges {
        value: Some("another value".into()),
        hosts: hosts.clone(),
        readable: Some(true),
        ..SecretChanges::default()
    };
    agent.update_secret(id, all).await.unwrap();
    // An identical update changes nothing.
    agent.update_secret(id, SecretChanges { hosts, readable: Some(true), ..SecretChanges::default() }).await.unwrap();
    agent.update_secret(id, SecretChanges { hosts: Some(vec![]), ..SecretChanges::default() }).await.unwrap();
    agent.update_secret(id, SecretChanges { readable: Some(false), ..SecretChanges::default() }).await.unwrap();
    agent.revoke_secret(id, tool).await.unwrap();
    agent.revoke_secret(id, tool).await.unwrap_err();
    agent.grant_secret(id, tool).await.unwrap();
    agent.delete(tool, None).await.unwrap();
    let me = Some(agent.identity.agent_id);
    let line = |action: &str, reason: Option<&str>, tool| -> Line {
        (action.into(), me, "KEY".into(), reason.map(str::to_owned), tool)
    };
    assert_eq!(
        audited(&harness, agent.identity.owner_id, id).await,
        [
            line("secret.granted", None, Some(tool)),
            line("secret.decrypted", Some("a call"), Some(tool)),
            line("secret.refused", Some("another call"), Some(id)),
            line("secret.rotated", None, None),
            line("secret.bound", Some("to b.example.com, a.example.com"), None),
            line("secret.made_readable", None, None),
            line("secret.bound", Some("to no host"), None),
            line("secret.made_opaque", None, None),
            line("secret.revoked", None, Some(tool)),
            line("secret.granted", None, Some(tool)),
            line("secret.revoked", Some("the tool's record was deleted"), Some(tool)),
        ]
    );
    let born = NewSecret {
        hosts: vec!["api.example.com".into()],
        readable: true,
        ..NewSecret::new("BORN_READABLE", "a long value")
    };
    let born = agent.create_secret(born).await.unwrap().id;
    let since: Vec<String> =
        audited(&harness, agent.identity.owner_id, born).await.into_iter().map(|line| line.0).collect();
    assert_eq!(since, ["secret.bound", "secret.made_readable"]);
    harness.close().await;
}

/// Waits for the store's lock of this record. It is held until the transaction ends.
async fn lock(connection: &mut PgConnection, record: Uuid) {
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(record.as_u64_pair().1.cast_signed())
        .execute(connection)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_expires_with_its_record() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let id = agent.create_secret(NewSecret::new("KEY", "a long value")).await.unwrap().id;
    let brief =
        NewBreadcrumb { ttl: Some(Utc::now() + Duration::from_hours(1)), ttl_type: Some(TtlType::Datetime), ..tool() };
    let record = agent.create(brief, None).await.unwrap().id;
    agent.grant_secret(id, record).await.unwrap();
    // It expires now. The record's lock keeps the sweep from deleting it.
    let mut admin = harness.admin().await;
    let mut held = admin.begin().await.unwrap();
    lock(&mut held, record).await;
    sqlx::query("UPDATE breadcrumbs SET ttl = now() WHERE id = $1")
        .bind(record)
        .execute(&mut harness.admin().await)
        .await
        .unwrap();
    assert!(agent.secrets().await.unwrap()[0].tools.is_empty());
    let refused = agent.decrypt_secret(id, "a call", Some(record)).await;
    assert!(matches!(refused, Err(StoreError::Forbidden(_))), "{refused:?}");
    held.rollback().await.unwrap();
    let gone = agent.grant_secret(id, record).await;
    assert!(matches!(gone, Err(StoreError::NotFound { what: "tool", .. })), "{gone:?}");
    // A refused grant returns before its transaction is rolled back, and a sweep skips a locked
    // record. So this waits for the lock.
    lock(&mut admin, record).await;
    harness.store.expire().await.unwrap();
    let last = audited(&harness, agent.identity.owner_id, id).await.pop().unwrap();
    assert_eq!((last.0.as_str(), last.1, last.4), ("secret.revoked", None, Some(record)));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_identical_grants_are_one_grant() {
    let harness = StoreHarness::start().await;
    let (agent, id, tool) = with_grant(&harness).await;
    agent.revoke_secret(id, tool).await.unwrap();
    let granting = (0..8).map(|_| {
        let agent = agent.clone();
        tokio::spawn(async move { agent.grant_secret(id, tool).await })
    });
    for granted in futures::future::join_all(granting).await {
        assert_eq!(granted.unwrap().unwrap().tools.len(), 1);
    }
    let lines = audited(&harness, agent.identity.owner_id, id).await;
    assert_eq!(lines.iter().filter(|line| line.0 == "secret.granted").count(), 2, "{lines:?}");
    harness.close().await;
}

/// The record is deleted while a secret is granted to it. In either order no grant is left, and
/// neither caller gets an internal error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_and_the_deletion_of_its_record_are_serialized() {
    let harness = StoreHarness::start().await;
    let (agent, id, _) = with_grant(&harness).await;
    for _ in 0..20 {
        let record = agent.create(tool(), None).await.unwrap().id;
        let (granting, deleting) = (agent.clone(), agent.clone());
        let granting = tokio::spawn(async move { granting.grant_secret(id, record).await });
        let deleting = tokio::spawn(async move { deleting.delete(record, None).await });
        deleting.await.unwrap().unwrap();
        match granting.await.unwrap() {
            Ok(_) | Err(StoreError::NotFound { what: "tool", .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        let left: i64 = sqlx::query_scalar("SELECT count(*) FROM secret_grants WHERE tool_id = $1")
            .bind(record)
            .fetch_one(&mut harness.admin().await)
            .await
            .unwrap();
        assert_eq!(left, 0);
    }
    harness.close().await;
}

/// If the emitter's change comes first, the changed tool gets the grant. Otherwise the change is
/// refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_and_a_change_of_its_record_are_serialized() {
    let harness = StoreHarness::start().await;
    let tenant = harness.tenant().await;
    let curator = harness.agent_with(tenant, &[Role::Curator]).await;
    let emitter = harness.agent_with(tenant, &[Role::Emitter]).await;
    let id = curator.create_secret(NewSecret::new("KEY", "a long value")).await.unwrap().id;
    for _ in 0..20 {
        let record = emitter.create(tool(), None).await.unwrap().id;
        let (granting, changing) = (curator.clone(), emitter.clone());
        let granting = tokio::spawn(async move {
            granting.grant_secret(id, record).await.unwrap();
            granting.get(record).await.unwrap().version
        });
        let change = BreadcrumbChanges { title: Some("another tool".into()), ..BreadcrumbChanges::default() };
        let changing = tokio::spawn(async move { changing.update(record, 1, change).await });
        let at_the_grant = granting.await.unwrap();
        match changing.await.unwrap() {
            Ok(changed) => assert_eq!(changed.version, 2),
            Err(StoreError::Forbidden(why)) => assert!(why.contains("KEY") && at_the_grant == 1, "{why}"),
            Err(other) => panic!("{other:?}"),
        }
        let after = curator.get(record).await.unwrap().version;
        assert_eq!(after, at_the_grant, "nothing changed after the grant");
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_rejects_invalid_rows() {
    let harness = StoreHarness::start().await;
    let (agent, id, record) = with_grant(&harness).await;
    let (_, theirs, their_record) = with_grant(&harness).await;
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    sqlx::query("SELECT set_config('rcrt.tenant', $1, false)")
        .bind(agent.identity.owner_id.to_string())
        .execute(&mut raw)
        .await
        .unwrap();
    let insert = "INSERT INTO secret_grants VALUES ($1, $2, $3, 1, now(), $3)";
    let mine = agent.identity.owner_id;
    for (owner_id, secret, tool, code) in [
        (mine, theirs, record, "23503"),
        (mine, id, Uuid::new_v4(), "23503"),
        (mine, id, record, "23505"),
        (Uuid::new_v4(), id, their_record, "42501"),
    ] {
        let query = sqlx::query(insert).bind(owner_id).bind(secret).bind(tool);
        let refused = query.execute(&mut raw).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), code, "{refused}");
    }
    for change in [
        "UPDATE secrets SET sealed_value = substr(sealed_value, 1, 35)",
        "UPDATE secrets SET hosts = array_fill('h'::text, ARRAY[51])",
        "UPDATE secrets SET hosts = ARRAY['']",
        "UPDATE secrets SET hosts = ARRAY[NULL::text]",
    ] {
        let refused = sqlx::query(change).execute(&mut raw).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "23514", "{change}");
    }
    harness.close().await;
}
