//! Revoked tokens and used tickets, until they have expired.

use breadcrumb::{Tenancy, TokenRevocation, WhichTokens};
use chrono::{TimeDelta, Utc};
use conformance::Harness;
use store::Store;
use uuid::Uuid;

use crate::harness::StoreHarness;

fn one(agent_id: Uuid, jti: Uuid, minutes: i64) -> TokenRevocation {
    TokenRevocation { agent_id, which: WhichTokens::One { jti, until: Utc::now() + TimeDelta::minutes(minutes) } }
}

/// One of each.
pub async fn fill(store: &Store, owner_id: Uuid, agent_id: Uuid) {
    store.revoke_tokens(owner_id, agent_id, one(agent_id, Uuid::new_v4(), 60)).await.unwrap();
    assert!(store.use_ticket(owner_id, Uuid::new_v4(), Utc::now() + TimeDelta::minutes(1)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_holds_until_its_token_has_expired_and_is_then_forgotten() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (owner, id) = (agent.identity.owner_id, agent.identity.agent_id);
    let (long, short) = (Uuid::new_v4(), Uuid::new_v4());
    harness.store.revoke_tokens(owner, id, one(id, long, 60)).await.unwrap();
    harness.store.revoke_tokens(owner, id, one(id, short, -1)).await.unwrap();
    // The same again, with a shorter time, takes nothing away.
    harness.store.revoke_tokens(owner, id, one(id, long, 1)).await.unwrap();
    let standing = harness.store.agent_status(owner, id).await.unwrap();
    assert_eq!(standing.agent.as_ref().unwrap().id, id);
    assert!(standing.has_revoked(long, 0.0) && !standing.has_revoked(short, 0.0));
    assert_eq!(harness.store.freshly_revoked().await.unwrap(), [(owner, id)]);

    let rows = "SELECT count(*) FROM revoked_tokens";
    let mut admin = harness.admin().await;
    // The store may have done it by itself already.
    harness.store.prune().await.unwrap();
    let count: i64 = sqlx::query_scalar(rows).fetch_one(&mut admin).await.unwrap();
    assert_eq!(count, 1);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_tokens_of_an_agent_end_by_when_they_were_issued() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (owner, id) = (agent.identity.owner_id, agent.identity.agent_id);
    let now = Utc::now();
    let before = |time| TokenRevocation { agent_id: id, which: WhichTokens::IssuedBefore(time) };
    harness.store.revoke_tokens(owner, id, before(now)).await.unwrap();
    // An older one does not open again what the newer one ended.
    harness.store.revoke_tokens(owner, id, before(now - TimeDelta::hours(1))).await.unwrap();
    let standing = harness.store.agent_status(owner, id).await.unwrap();
    let seconds = now.timestamp_micros() as f64 / 1e6;
    assert!(standing.has_revoked(Uuid::new_v4(), seconds - 0.001));
    assert!(!standing.has_revoked(Uuid::new_v4(), seconds + 0.001));
    harness.store.prune().await.unwrap();
    assert!(harness.store.agent_status(owner, id).await.unwrap().tokens_from.is_some());
    // Of no other agent, and of no other tenant.
    let other = harness.agent(owner).await.identity.agent_id;
    assert!(harness.store.agent_status(owner, other).await.unwrap().tokens_from.is_none());
    let elsewhere = harness.tenant().await;
    assert!(harness.store.agent_status(elsewhere, id).await.unwrap().tokens_from.is_none());
    harness.close().await;
}

/// A server whose clock is ahead dates its tokens after the moment in which all are revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_stays_revoked_when_all_of_them_are() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (owner, id) = (agent.identity.owner_id, agent.identity.agent_id);
    let ahead = Uuid::new_v4();
    harness.store.revoke_tokens(owner, id, one(id, ahead, 60)).await.unwrap();
    let now = Utc::now() + TimeDelta::minutes(1);
    let all = TokenRevocation { agent_id: id, which: WhichTokens::IssuedBefore(now) };
    harness.store.revoke_tokens(owner, id, all).await.unwrap();
    let issued_at = (now + TimeDelta::minutes(4)).timestamp() as f64;
    let standing = harness.store.agent_status(owner, id).await.unwrap();
    assert!(standing.has_revoked(ahead, issued_at));
    assert!(!standing.has_revoked(Uuid::new_v4(), issued_at));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_ticket_is_used_once_by_however_many_who_try_at_the_same_time() {
    let harness = StoreHarness::start().await;
    let (owner, ticket) = (harness.tenant().await, Uuid::new_v4());
    let until = Utc::now() + TimeDelta::minutes(1);
    let tries = (0..20).map(|_| harness.store.use_ticket(owner, ticket, until));
    let used = futures::future::join_all(tries).await;
    assert_eq!(used.into_iter().filter(|used| *used.as_ref().unwrap()).count(), 1);
    // An expired one is forgotten some minutes later.
    harness.store.use_ticket(owner, Uuid::new_v4(), Utc::now() - TimeDelta::minutes(6)).await.unwrap();
    harness.store.prune().await.unwrap();
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM used_tickets").fetch_one(&mut harness.admin().await).await.unwrap();
    assert_eq!(count, 1);
    harness.close().await;
}
