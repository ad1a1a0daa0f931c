//! Revoked tokens and used tickets, until they expire.

use chrono::{TimeDelta, Utc};
use rcrt_breadcrumb::{Tenancy, TokenRevocation, WhichTokens};
use rcrt_conformance::Harness;
use rcrt_store::Store;
use serde_json::json;
use uuid::Uuid;

use crate::harness::StoreHarness;

fn one(agent_id: Uuid, jti: Uuid, minutes: i64) -> TokenRevocation {
    TokenRevocation { agent_id, which: WhichTokens::One { jti, until: Utc::now() + TimeDelta::minutes(minutes) } }
}

/// Adds one of each.
pub async fn fill(store: &Store, owner_id: Uuid, agent_id: Uuid) {
    store.revoke_tokens(owner_id, agent_id, one(agent_id, Uuid::new_v4(), 60)).await.unwrap();
    assert!(store.use_ticket(owner_id, Uuid::new_v4(), Utc::now() + TimeDelta::minutes(1)).await.unwrap());
    store.keep_session(owner_id, agent_id, "one", &json!({"client": "any"})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_kept_for_its_agent_and_the_newest_only() {
    let harness = StoreHarness::start().await;
    let (agent, other) = (harness.alone().await.identity, harness.alone().await.identity);
    let (owner, id) = (agent.owner_id, agent.agent_id);
    let read = |session: &'static str| harness.store.kept_session(owner, id, session);
    for state in [json!({"n": 1}), json!({"n": 2})] {
        harness.store.keep_session(owner, id, "first", &state).await.unwrap();
        assert_eq!(read("first").await.unwrap(), Some(state));
    }
    assert_eq!(harness.store.kept_session(owner, other.agent_id, "first").await.unwrap(), None);
    assert_eq!(harness.store.kept_session(other.owner_id, id, "first").await.unwrap(), None);
    let large = json!({"text": "x".repeat(300_000)});
    assert!(harness.store.keep_session(owner, id, "large", &large).await.is_err());
    for n in 0..256 {
        harness.store.keep_session(owner, id, &format!("session {n}"), &json!({})).await.unwrap();
    }
    assert_eq!(read("first").await.unwrap(), None, "the oldest is dropped");
    assert_eq!(read("session 255").await.unwrap(), Some(json!({})));
    harness.store.end_session(owner, id, "session 255").await.unwrap();
    assert_eq!(read("session 255").await.unwrap(), None);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_is_deleted_after_its_token_expires() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (owner, id) = (agent.identity.owner_id, agent.identity.agent_id);
    let (long, short) = (Uuid::new_v4(), Uuid::new_v4());
    harness.store.revoke_tokens(owner, id, one(id, long, 60)).await.unwrap();
    harness.store.revoke_tokens(owner, id, one(id, short, -1)).await.unwrap();
    // A repeated revocation with an earlier expiry has no effect.
    harness.store.revoke_tokens(owner, id, one(id, long, 1)).await.unwrap();
    let status = harness.store.agent_status(owner, id).await.unwrap();
    assert_eq!(status.agent.as_ref().unwrap().id, id);
    assert!(status.has_revoked(long, 0.0) && !status.has_revoked(short, 0.0));
    let changed = harness.store.recently_changed_agents().await.unwrap();
    assert_eq!(changed.iter().map(|(tenant, agent, _)| (*tenant, *agent)).collect::<Vec<_>>(), [(owner, id)]);

    let rows = "SELECT count(*) FROM revoked_tokens";
    let mut admin = harness.admin().await;
    // The store may already have pruned.
    harness.store.prune().await.unwrap();
    let count: i64 = sqlx::query_scalar(rows).fetch_one(&mut admin).await.unwrap();
    assert_eq!(count, 1);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_tokens_issued_before_a_time_are_revoked() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (owner, id) = (agent.identity.owner_id, agent.identity.agent_id);
    let now = Utc::now();
    let before = |time| TokenRevocation { agent_id: id, which: WhichTokens::IssuedBefore(time) };
    harness.store.revoke_tokens(owner, id, before(now)).await.unwrap();
    // An earlier time does not re-enable tokens that a later time revoked.
    harness.store.revoke_tokens(owner, id, before(now - TimeDelta::hours(1))).await.unwrap();
    let status = harness.store.agent_status(owner, id).await.unwrap();
    let seconds = now.timestamp_micros() as f64 / 1e6;
    assert!(status.has_revoked(Uuid::new_v4(), seconds - 0.001));
    assert!(!status.has_revoked(Uuid::new_v4(), seconds + 0.001));
    harness.store.prune().await.unwrap();
    assert!(harness.store.agent_status(owner, id).await.unwrap().tokens_from.is_some());
    // Other agents and other tenants are not affected.
    let other = harness.agent(owner).await.identity.agent_id;
    assert!(harness.store.agent_status(owner, other).await.unwrap().tokens_from.is_none());
    let elsewhere = harness.tenant().await;
    assert!(harness.store.agent_status(elsewhere, id).await.unwrap().tokens_from.is_none());
    harness.close().await;
}

/// A server whose clock is ahead dates its tokens after the moment when all tokens are revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoking_all_tokens_keeps_individual_revocations() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (owner, id) = (agent.identity.owner_id, agent.identity.agent_id);
    let ahead = Uuid::new_v4();
    harness.store.revoke_tokens(owner, id, one(id, ahead, 60)).await.unwrap();
    let now = Utc::now() + TimeDelta::minutes(1);
    let all = TokenRevocation { agent_id: id, which: WhichTokens::IssuedBefore(now) };
    harness.store.revoke_tokens(owner, id, all).await.unwrap();
    let issued_at = (now + TimeDelta::minutes(4)).timestamp() as f64;
    let status = harness.store.agent_status(owner, id).await.unwrap();
    assert!(status.has_revoked(ahead, issued_at));
    assert!(!status.has_revoked(Uuid::new_v4(), issued_at));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_uses_of_a_ticket_succeed_once() {
    let harness = StoreHarness::start().await;
    let (owner, ticket) = (harness.tenant().await, Uuid::new_v4());
    let until = Utc::now() + TimeDelta::minutes(1);
    let tries = (0..20).map(|_| harness.store.use_ticket(owner, ticket, until));
    let used = futures::future::join_all(tries).await;
    assert_eq!(used.into_iter().filter(|used| *used.as_ref().unwrap()).count(), 1);
    // An expired ticket is deleted some minutes later.
    harness.store.use_ticket(owner, Uuid::new_v4(), Utc::now() - TimeDelta::minutes(6)).await.unwrap();
    harness.store.prune().await.unwrap();
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM used_tickets").fetch_one(&mut harness.admin().await).await.unwrap();
    assert_eq!(count, 1);
    harness.close().await;
}
