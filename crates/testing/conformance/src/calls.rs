//! Queue, claim, lease, response.

use std::collections::HashSet;

use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, CallState, ClaimRequest, ErrorCode, EventNumber, Lease, LeaseStatus, Release,
    Role, StoreError, ToolRequest, ToolResponse,
};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{
    Agent, Harness, alone, answer_to, assert_lease_lost, assert_not_found, claim_of, fields, next, note, object,
    request,
};

async fn asked(agent: &Agent) -> Uuid {
    agent.create(request(), None).await.unwrap().id
}

/// Requests, claims and starts one call.
async fn running(agent: &Agent, max_attempts: u32) -> (Uuid, Lease) {
    let id = asked(agent).await;
    let lease = agent.claim(&claim_of(1)).await.unwrap()[0].lease;
    agent.start(lease, max_attempts).await.unwrap();
    (id, lease)
}

/// The one response to a request.
pub(crate) async fn response_to(agent: &Agent, request: Uuid) -> ToolResponse {
    let query = BreadcrumbQuery::tagged(ToolResponse::tag(&request.to_string()));
    let mut found = agent.list(&query).await.unwrap();
    assert_eq!(found.len(), 1, "exactly one response");
    let item = found.remove(0);
    assert_eq!(item.schema_name.as_deref(), Some("tool.response.v1"));
    assert_eq!(
        item.tags,
        ["workspace:one".to_owned(), "tool:response".into(), ToolResponse::tag(&request.to_string())]
    );
    ToolResponse::from_context(&item.context.unwrap()).unwrap()
}

pub async fn a_request_goes_from_queue_to_response(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = asked(&agent).await;
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.tool.as_str(), call.state, call.attempt, call.response), ("echo", CallState::Queued, 0, None));

    let claims = agent.claim(&claim_of(5)).await.unwrap();
    assert_eq!(claims.len(), 1);
    let claim = &claims[0];
    assert_eq!((claim.request.id, claim.attempt, claim.queued_at), (id, 1, call.queued_at));
    assert_eq!(claim.request, agent.get(id).await.unwrap());
    assert_eq!(agent.call(id).await.unwrap().state, CallState::Claimed);
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty(), "claimed once");

    agent.start(claim.lease, 3).await.unwrap();
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt, call.max_attempts), (CallState::Running, 1, 3));

    let mut events = agent.events(None).await.unwrap();
    let response = agent.complete(claim.lease, answer_to(claim, json!({"said": "hi"}))).await.unwrap();
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.response), (CallState::Finished, Some(response)));
    let event = next(&mut events).await;
    assert_eq!((event.breadcrumb_id, event.schema_name.as_deref()), (response, Some("tool.response.v1")));
    assert_eq!(response_to(&agent, id).await.output, Some(json!({"said": "hi"})));
    assert_eq!(agent.get(response).await.unwrap().created_by, Some(agent.identity.agent_id));
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty());
}

pub async fn only_requests_are_queued(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create(note("Not a request"), None).await.unwrap().id;
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty());
    assert_not_found(agent.call(id).await);
    assert_not_found(agent.cancel(id).await);
}

pub async fn the_oldest_are_claimed_first_except_for_busy_tools(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut ids = Vec::new();
    for tool in ["slow", "fast", "slow", "fast"] {
        let record = ToolRequest::record(tool, json!({}), None, None);
        ids.push(agent.create(record, None).await.unwrap().id);
    }
    let claimed = async |claim: &ClaimRequest| {
        agent.claim(claim).await.unwrap().into_iter().map(|claim| claim.request.id).collect::<Vec<_>>()
    };
    assert_eq!(claimed(&claim_of(1)).await, [ids[0]]);
    let except = ClaimRequest { except_tools: vec!["slow".into()], ..claim_of(10) };
    assert_eq!(claimed(&except).await, [ids[1], ids[3]]);
    let new_ones = ClaimRequest { awaited_only: vec!["slow".into()], ..claim_of(10) };
    assert_eq!(claimed(&new_ones).await, Vec::<Uuid>::new(), "no call waits for it");
    let others = ClaimRequest { only_tools: vec!["fast".into()], ..claim_of(10) };
    assert_eq!(claimed(&others).await, Vec::<Uuid>::new(), "only slow ones wait");
    assert_eq!(claimed(&claim_of(10)).await, [ids[2]]);
    let bad = ClaimRequest { limit: 0, lease_ms: 1, ..claim_of(1) };
    assert_eq!(fields(agent.claim(&bad).await), ["limit", "lease_ms"]);
}

pub async fn concurrent_runners_never_share_a_call(harness: &impl Harness) {
    let agent = alone(harness).await;
    for _ in 0..40 {
        asked(&agent).await;
    }
    let runners = (0..8).map(|_| {
        let agent = agent.clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claims = agent.claim(&claim_of(3)).await.unwrap();
                if claims.is_empty() {
                    break mine;
                }
                for claim in claims {
                    agent.start(claim.lease, 1).await.unwrap();
                    agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
                    mine.push(claim.request.id);
                }
            }
        })
    });
    let mut all = Vec::new();
    for runner in futures::future::join_all(runners).await {
        all.extend(runner.unwrap());
    }
    assert_eq!(all.len(), 40);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 40);
    let responses = agent.list(&BreadcrumbQuery::of_schema("tool.response.v1")).await.unwrap();
    assert_eq!(responses.len(), 40);
}

pub async fn a_call_is_completed_once(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = asked(&agent).await;
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.start(claim.lease, 1).await.unwrap();
    let attempts = (0..6).map(|n| {
        let (agent, lease, answer) = (agent.clone(), claim.lease, answer_to(&claim, json!(n)));
        tokio::spawn(async move { agent.complete(lease, answer).await })
    });
    let results: Vec<_> = futures::future::join_all(attempts).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for result in results {
        assert!(matches!(result, Ok(_) | Err(StoreError::LeaseLost { .. })), "{result:?}");
    }
    response_to(&agent, id).await;
    assert_lease_lost(agent.start(claim.lease, 1).await);
    assert_lease_lost(agent.release(claim.lease, Release::Retry { after_ms: 0 }).await);
}

pub async fn an_old_fencing_token_is_refused(harness: &impl Harness) {
    let agent = alone(harness).await;
    asked(&agent).await;
    let old = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.release(old.lease, Release::Unstarted).await.unwrap();
    assert_lease_lost(agent.start(old.lease, 1).await);
    let new = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    assert!(new.lease.fence > old.lease.fence);
    assert_eq!(new.attempt, 1, "an unstarted attempt does not count");
    assert_lease_lost(agent.start(old.lease, 1).await);
    assert_lease_lost(agent.complete(old.lease, answer_to(&old, json!(1))).await);
    assert_lease_lost(agent.release(old.lease, Release::Unstarted).await);
    let made_up = Lease { request: Uuid::new_v4(), fence: new.lease.fence };
    let held = agent.heartbeat(&[old.lease, new.lease, made_up], 60_000).await.unwrap();
    let found: Vec<_> = held.iter().map(|held| (held.lease, held.status)).collect();
    assert_eq!(found, [(old.lease, LeaseStatus::Lost), (new.lease, LeaseStatus::Held), (made_up, LeaseStatus::Lost)]);
    agent.start(new.lease, 1).await.unwrap();
    agent.start(new.lease, 1).await.expect("starting twice is starting once");
    assert_eq!(agent.call(new.lease.request).await.unwrap().attempt, 1);
}

pub async fn a_lease_expires_without_a_heartbeat(harness: &impl Harness) {
    let agent = alone(harness).await;
    let (kept_id, lost_id) = (asked(&agent).await, asked(&agent).await);
    let claims = agent.claim(&claim_of(10)).await.unwrap();
    let (kept, lost) = (claims[0].clone(), claims[1].clone());
    assert_eq!((kept.request.id, lost.request.id), (kept_id, lost_id));
    agent.heartbeat(&[lost.lease], 1_000).await.unwrap();
    // The store notices by itself and queues it again.
    let again = loop {
        if let Some(claim) = agent.claim(&claim_of(1)).await.unwrap().pop() {
            break claim;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((again.request.id, again.attempt), (lost_id, 1));
    assert_lease_lost(agent.complete(lost.lease, answer_to(&lost, json!(1))).await);
    agent.complete(kept.lease, answer_to(&kept, json!(1))).await.unwrap();
}

pub async fn a_lost_run_fails_and_is_not_repeated(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut events = agent.events(None).await.unwrap();
    let id = asked(&agent).await;
    assert_eq!(next(&mut events).await.breadcrumb_id, id);
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.start(claim.lease, 1).await.unwrap();
    agent.heartbeat(&[claim.lease], 1_000).await.unwrap();
    let answered = next(&mut events).await;
    assert_eq!(answered.schema_name.as_deref(), Some("tool.response.v1"));
    let response = response_to(&agent, id).await;
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::ExecutionFailed), Some(true)));
    // The store does not know which record ran; docs/call-a-tool.md says so.
    assert_eq!(response.metadata["answered_by"], "store");
    assert_eq!(response.metadata.get("tool_id"), None);
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.response), (CallState::Finished, Some(answered.breadcrumb_id)));
    assert_lease_lost(agent.complete(claim.lease, answer_to(&claim, json!(1))).await);
}

pub async fn a_retry_waits_and_counts(harness: &impl Harness) {
    let agent = alone(harness).await;
    let (id, lease) = running(&agent, 2).await;
    assert_eq!(fields(agent.release(lease, Release::Unstarted).await), ["release"]);
    agent.release(lease, Release::Retry { after_ms: 3_600_000 }).await.unwrap();
    assert_eq!(agent.call(id).await.unwrap().state, CallState::Queued);
    assert!(agent.claim(&claim_of(1)).await.unwrap().is_empty(), "not before the retry time");

    let (id, lease) = running(&agent, 2).await;
    agent.release(lease, Release::Retry { after_ms: 0 }).await.unwrap();
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    assert_eq!((claim.request.id, claim.attempt), (id, 2));
    agent.start(claim.lease, 2).await.unwrap();
    assert_eq!(fields(agent.release(claim.lease, Release::Retry { after_ms: 0 }).await), ["release"]);
    agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
}

pub async fn a_waiting_request_is_cancelled_at_once(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = asked(&agent).await;
    let call = agent.cancel(id).await.unwrap();
    assert_eq!(call.state, CallState::Finished);
    let response = response_to(&agent, id).await;
    assert_eq!((response.error_code, response.request_id), (Some(ErrorCode::Cancelled), id.to_string()));
    assert!(agent.claim(&claim_of(1)).await.unwrap().is_empty());
    assert_eq!(agent.cancel(id).await.unwrap(), call, "cancelling a finished one changes nothing");
    response_to(&agent, id).await;
}

pub async fn the_runner_learns_of_a_cancellation(harness: &impl Harness) {
    let agent = alone(harness).await;
    let (id, lease) = running(&agent, 1).await;
    let mut events = agent.events(None).await.unwrap();
    let call = agent.cancel(id).await.unwrap();
    assert_eq!((call.state, call.cancel_requested), (CallState::Running, true));
    let event = next(&mut events).await;
    assert_eq!((event.breadcrumb_id, event.version), (id, 2));
    assert_eq!(event.context["cancel_requested"], json!(true));
    let held = agent.heartbeat(&[lease], 60_000).await.unwrap();
    assert_eq!(held[0].status, LeaseStatus::CancelRequested);
    agent.cancel(id).await.unwrap();
    assert_eq!(agent.get(id).await.unwrap().version, 2, "reported once");
    // A call that a runner releases after that is not queued again.
    let (id, lease) = running(&agent, 5).await;
    agent.cancel(id).await.unwrap();
    agent.release(lease, Release::Retry { after_ms: 0 }).await.unwrap();
    assert_eq!(response_to(&agent, id).await.error_code, Some(ErrorCode::Cancelled));
}

pub async fn a_deleted_request_still_gets_its_response(harness: &impl Harness) {
    let agent = alone(harness).await;
    let waiting = asked(&agent).await;
    agent.delete(waiting, None).await.unwrap();
    assert_eq!(response_to(&agent, waiting).await.error_code, Some(ErrorCode::Cancelled));
    assert!(agent.claim(&claim_of(1)).await.unwrap().is_empty());

    let id = asked(&agent).await;
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    agent.start(claim.lease, 1).await.unwrap();
    agent.delete(id, None).await.unwrap();
    assert_not_found(agent.get(id).await);
    assert_eq!(agent.heartbeat(&[claim.lease], 60_000).await.unwrap()[0].status, LeaseStatus::CancelRequested);
    agent.complete(claim.lease, answer_to(&claim, json!("late"))).await.unwrap();
    assert_eq!(response_to(&agent, id).await.output, Some(json!("late")));
}

pub async fn the_call_of_a_request_cannot_be_changed(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = asked(&agent).await;
    let context = |tool: &str| Some(object(json!({"tool": tool, "input": {"say": "hi"}, "note": 1})));
    let change = |tool: &str| BreadcrumbChanges { context: context(tool), ..BreadcrumbChanges::default() };
    assert_eq!(fields(agent.update(id, 1, change("other")).await), ["context.tool"]);
    for field in ["version", "definition_hash", "requestId", "session", "model", "deadline_ms", "max_result_chars"] {
        let mut context = context("echo").unwrap();
        context.insert(field.into(), json!(1));
        let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
        let refused = fields(agent.update(id, 1, changes).await);
        assert!(refused.contains(&format!("context.{field}")), "{refused:?}");
    }
    assert_eq!(agent.update(id, 1, change("echo")).await.unwrap().version, 2);
    let renamed = BreadcrumbChanges { schema_name: Some("note.v1".into()), ..BreadcrumbChanges::default() };
    assert_eq!(fields(agent.update(id, 2, renamed).await), ["schema_name"]);
}

pub async fn a_completion_must_be_a_response(harness: &impl Harness) {
    let agent = alone(harness).await;
    let (_, lease) = running(&agent, 1).await;
    assert_eq!(fields(agent.complete(lease, note("Not a response")).await), ["schema_name"]);
    assert_eq!(agent.call(lease.request).await.unwrap().state, CallState::Running);
}

pub async fn a_response_needs_a_lease_and_cannot_be_changed(harness: &impl Harness) {
    let curator = alone(harness).await;
    let roles = [Role::Emitter, Role::Subscriber, Role::Runner];
    let agent = harness.agent_with(curator.identity.owner_id, &roles).await;
    let id = asked(&agent).await;
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    let forged = answer_to(&claim, json!("forged"));
    for writer in [&agent, &curator] {
        assert_eq!(fields(writer.create(forged.clone(), None).await), ["schema_name"]);
    }
    let response = agent.complete(claim.lease, answer_to(&claim, json!("true"))).await.unwrap();

    let note = agent.create(note("Not yet a response"), None).await.unwrap().id;
    let named = |name: &str| BreadcrumbChanges { schema_name: Some(name.into()), ..BreadcrumbChanges::default() };
    let context = BreadcrumbChanges { context: Some(forged.context), ..BreadcrumbChanges::default() };
    for writer in [&agent, &curator] {
        for (record, changes) in
            [(response, context.clone()), (response, named("note.v1")), (note, named("tool.response.v1"))]
        {
            assert_eq!(fields(writer.update(record, 1, changes).await), ["schema_name"]);
        }
    }
    for version in [None, Some(1)] {
        let refused = agent.delete(response, version).await;
        assert!(matches!(refused, Err(StoreError::Forbidden(_))), "{refused:?}");
    }
    assert_eq!(response_to(&agent, id).await.output, Some(json!("true")));
    curator.delete(response, None).await.unwrap();
    assert_not_found(agent.get(response).await);
}

pub async fn another_tenants_calls_are_not_found(harness: &impl Harness) {
    let (agent, stranger) = (alone(harness).await, alone(harness).await);
    let id = asked(&agent).await;
    assert!(stranger.claim(&claim_of(10)).await.unwrap().is_empty());
    assert_not_found(stranger.call(id).await);
    assert_not_found(stranger.cancel(id).await);
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    assert_lease_lost(stranger.start(claim.lease, 1).await);
    assert_lease_lost(stranger.complete(claim.lease, answer_to(&claim, json!(1))).await);
    assert_eq!(stranger.heartbeat(&[claim.lease], 60_000).await.unwrap()[0].status, LeaseStatus::Lost);
    assert_eq!(stranger.latest_event().await.unwrap(), EventNumber(0));
}
