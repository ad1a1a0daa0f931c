//! Requests with a deadline.

use rcrt_breadcrumb::{CallState, ErrorCode, NewBreadcrumb, Release};
use serde_json::{Value, json};

use crate::calls::response_to;
use crate::harness::{Agent, Harness, alone, claim_of, fields, next, request};

fn within(deadline_ms: impl Into<Value>) -> NewBreadcrumb {
    let mut record = request();
    record.context.insert("deadline_ms".into(), deadline_ms.into());
    record
}

pub async fn a_claim_has_the_remaining_time(harness: &impl Harness) {
    let agent = alone(harness).await;
    agent.create(within(600_000), None).await.unwrap();
    agent.create(request(), None).await.unwrap();
    let claims = agent.claim(&claim_of(5)).await.unwrap();
    let left = claims[0].time_left_ms.unwrap();
    assert!((1..=600_000).contains(&left), "{left}");
    assert_eq!(claims[1].time_left_ms, None);
}

pub async fn a_deadline_is_a_number_within_bounds(harness: &impl Harness) {
    let agent = alone(harness).await;
    for wrong in [json!(0), json!(-1), json!(1.5), json!("100"), json!(86_400_001)] {
        assert_eq!(fields(agent.create(within(wrong.clone()), None).await), ["context.deadline_ms"], "{wrong}");
    }
    agent.create(within(Value::Null), None).await.unwrap();
    agent.create(within(86_400_000), None).await.unwrap();
    let longer = rcrt_breadcrumb::BreadcrumbChanges {
        context: Some(within(500_000).context),
        ..rcrt_breadcrumb::BreadcrumbChanges::default()
    };
    let id = agent.create(within(400_000), None).await.unwrap().id;
    assert_eq!(fields(agent.update(id, 1, longer).await), ["context.deadline_ms"]);
}

async fn assert_too_late(agent: &Agent, id: uuid::Uuid, allowed: u64) {
    let response = response_to(agent, id).await;
    assert_eq!((response.error_code, response.is_retryable), (Some(ErrorCode::Timeout), Some(true)));
    assert_eq!(response.error_details, Some(json!({"limit": "deadline_ms", "allowed": allowed})));
    assert!(response.error.unwrap().contains(&format!("deadline_ms: {allowed}")));
}

pub async fn a_request_past_its_deadline_gets_its_response(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut events = agent.events(None).await.unwrap();
    let id = agent.create(within(1), None).await.unwrap().id;
    assert_eq!(next(&mut events).await.breadcrumb_id, id);
    let answered = next(&mut events).await;
    assert_eq!(answered.schema_name.as_deref(), Some("tool.response.v1"));
    assert_too_late(&agent, id, 1).await;
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.response), (CallState::Finished, Some(answered.breadcrumb_id)));
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty());
}

pub async fn a_retry_does_not_go_past_the_deadline(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create(within(600_000), None).await.unwrap().id;
    for attempt in 1..=2 {
        let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
        assert_eq!(claim.attempt, attempt);
        agent.start(claim.lease, 5).await.unwrap();
        // The first retry fits into the remaining time; the second does not.
        let after_ms = if attempt == 1 { 0 } else { 3_600_000 };
        agent.release(claim.lease, Release::Retry { after_ms }).await.unwrap();
    }
    assert_too_late(&agent, id, 600_000).await;
    assert!(agent.claim(&claim_of(1)).await.unwrap().is_empty());
}
