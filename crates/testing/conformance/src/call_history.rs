//! Lists, details and statistics of calls.

use rcrt_breadcrumb::{
    CallQuery, CallState, CallStatsQuery, Claim, ErrorCode, NewBreadcrumb, Release, ResponseStatus, Role, ToolFailure,
    ToolRequest, ToolResponse, Visibility, schema_names,
};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::harness::{Agent, Harness, alone, answer_to, assert_not_found, claim_of, fields, noted};

/// A request of this tool with this field in its context.
fn asking(tool: &str, field: &str, value: &str) -> NewBreadcrumb {
    let mut record = ToolRequest::record(tool, json!({"say": "hi"}), Some(&format!("{tool}-1")), None);
    record.context.insert(field.into(), value.into());
    record
}

/// As the runtime does when a tool calls another: only a runner sets a request's parent.
async fn child_of(harness: &impl Harness, agent: &Agent, parent: Uuid) -> Uuid {
    let runner = harness.agent_with(agent.identity.owner_id, &[Role::Runner]).await;
    let acting = runner.on_behalf_of(agent.identity.agent_id).unwrap();
    acting.create(asking("child", "parent", &parent.to_string()), None).await.unwrap().id
}

async fn asked(agent: &Agent, record: NewBreadcrumb) -> Uuid {
    agent.create(record, None).await.unwrap().id
}

async fn claimed(agent: &Agent) -> Claim {
    agent.claim(&claim_of(1)).await.unwrap().remove(0)
}

/// A failure before the tool ran has no time of its run.
fn failure_of(claim: &Claim, failure: ToolFailure) -> NewBreadcrumb {
    let run_ms = if failure.code == ErrorCode::InvalidArguments { 0.0 } else { 40.0 };
    let request = ToolRequest::from_breadcrumb(&claim.request).unwrap();
    let mut metadata = Map::new();
    metadata.insert("runner_id".into(), json!(Uuid::nil()));
    metadata.insert("trace_id".into(), json!("4bf92f3577b34da6a3ce929d0e0e4736"));
    let stages = json!({"queue_ms": 1.5, "claim_ms": 0.5, "load_ms": 0.0, "run_ms": run_ms, "write_ms": 2.0});
    metadata.insert("stages".into(), stages);
    ToolResponse::new(&request, Err(failure), run_ms as u64, metadata, chrono::Utc::now()).record(&request)
}

/// Asks, runs and answers one call. The response is a failure if there is a code.
async fn finished(agent: &Agent, record: NewBreadcrumb, code: Option<ErrorCode>) -> Uuid {
    let id = asked(agent, record).await;
    let claim = claimed(agent).await;
    agent.start(claim.lease, 1).await.unwrap();
    let response = match code {
        Some(code) => failure_of(&claim, ToolFailure::new(code, "it broke")),
        None => answer_to(&claim, json!("said zebra")),
    };
    agent.complete(claim.lease, response).await.unwrap();
    id
}

async fn listed(agent: &Agent, query: CallQuery) -> Vec<Uuid> {
    let page = agent.list_calls(&query).await.unwrap();
    page.calls.into_iter().map(|call| call.call.request).collect()
}

pub async fn calls_are_listed_by_every_filter(harness: &impl Harness) {
    let agent = alone(harness).await;
    let all = CallQuery::default;
    let mut tagged = asking("good", "session", "s1");
    tagged.tags.push("order:7".into());
    let good = finished(&agent, tagged, None).await;
    let bad = finished(&agent, asking("bad", "session", "s2"), Some(ErrorCode::Timeout)).await;
    let child = child_of(harness, &agent, good).await;
    let begun = agent.call(child).await.unwrap().queued_at;

    assert_eq!(listed(&agent, all()).await, [child, bad, good], "the newest first");
    assert_eq!(listed(&agent, CallQuery { state: Some(CallState::Queued), ..all() }).await, [child]);
    assert_eq!(listed(&agent, CallQuery { state: Some(CallState::Finished), ..all() }).await, [bad, good]);
    assert_eq!(listed(&agent, CallQuery { tool: Some("bad".into()), ..all() }).await, [bad]);
    assert_eq!(listed(&agent, CallQuery { session: Some("s1".into()), ..all() }).await, [good]);
    assert_eq!(listed(&agent, CallQuery { status: Some(ResponseStatus::Success), ..all() }).await, [good]);
    assert_eq!(listed(&agent, CallQuery { status: Some(ResponseStatus::Error), ..all() }).await, [bad]);
    assert_eq!(listed(&agent, CallQuery { error_code: Some(ErrorCode::Timeout), ..all() }).await, [bad]);
    assert_eq!(listed(&agent, CallQuery { error_code: Some(ErrorCode::Cancelled), ..all() }).await, [] as [Uuid; 0]);
    assert_eq!(listed(&agent, CallQuery { parent: Some(good), ..all() }).await, [child]);
    for (request_id, call) in [("good-1", good), ("child-1", child)] {
        assert_eq!(listed(&agent, CallQuery { request_id: Some(request_id.into()), ..all() }).await, [call]);
    }
    assert_eq!(listed(&agent, CallQuery { request_id: Some(bad.to_string()), ..all() }).await, [bad]);
    assert_eq!(listed(&agent, CallQuery { tag: Some("order:7".into()), ..all() }).await, [good]);
    assert_eq!(listed(&agent, CallQuery { text: Some("zebra".into()), ..all() }).await, [good]);
    assert_eq!(listed(&agent, CallQuery { since: Some(begun), ..all() }).await, [child]);
    assert_eq!(listed(&agent, CallQuery { until: Some(begun), ..all() }).await, [bad, good]);
    let mine = Some(agent.identity.agent_id);
    assert_eq!(listed(&agent, CallQuery { agent_id: mine, ..all() }).await.len(), 3);
    assert_eq!(listed(&agent, CallQuery { agent_id: Some(Uuid::nil()), ..all() }).await.len(), 0);

    let claim = claimed(&agent).await;
    assert_eq!(listed(&agent, CallQuery { state: Some(CallState::Claimed), ..all() }).await, [child]);
    assert_eq!(listed(&agent, CallQuery { request_id: Some("child-1".into()), ..all() }).await, [child]);
    agent.start(claim.lease, 1).await.unwrap();
    assert_eq!(listed(&agent, CallQuery { state: Some(CallState::Running), ..all() }).await, [child]);
    assert_eq!(fields(agent.list_calls(&CallQuery { limit: 0, ..all() }).await), ["limit"]);
}

pub async fn calls_are_found_by_numbers_of_input_and_output(harness: &impl Harness) {
    let agent = alone(harness).await;
    let input = json!({"n": 4242, "deep": [{"ratio": -2.5}], "big": 9_007_199_254_740_993_u64});
    let mut request = ToolRequest::record("sum", input, None, None);
    request.context.insert("deadline_ms".into(), json!(8_639_900));
    let wanted = asked(&agent, request).await;
    let claim = claimed(&agent).await;
    agent.start(claim.lease, 1).await.unwrap();
    let output = json!({"total": [1e21, 5757], "text": "3131 days"});
    agent.complete(claim.lease, answer_to(&claim, output)).await.unwrap();
    let other = asked(&agent, ToolRequest::record("sum", json!({"n": 42_421}), None, None)).await;

    let found = async |text: &str| listed(&agent, CallQuery { text: Some(text.into()), ..CallQuery::default() }).await;
    for text in ["4242", " 4242 ", "-2.5", "9007199254740993", "5757", "1e21", "1e+21", "3131", "3131 5757"] {
        assert_eq!(found(text).await, [wanted], "{text}");
    }
    assert_eq!(found("42421").await, [other]);
    // The deadline is a field of the request itself.
    for text in ["424", "2.5", "-4242", "8639900"] {
        assert_eq!(found(text).await, [] as [Uuid; 0], "{text}");
    }
}

pub async fn a_list_of_calls_is_paged_without_gaps(harness: &impl Harness) {
    let agent = alone(harness).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, asked(&agent, asking("echo", "session", "s")).await);
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = agent.list_calls(&CallQuery { limit: 2, before, ..CallQuery::default() }).await.unwrap();
        seen.extend(page.calls.iter().map(|call| call.call.request));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, ids);
}

pub async fn an_agent_lists_the_calls_whose_requests_it_can_read(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let (curator, one) = (harness.agent(tenant).await, harness.agent_with(tenant, &[Role::Emitter]).await);
    let other = harness.agent_with(tenant, &[Role::Emitter]).await;
    let hidden = NewBreadcrumb { visibility: Visibility::Private, ..asking("echo", "session", "private") };
    let (open, hidden) = (asked(&one, asking("echo", "session", "open")).await, asked(&one, hidden).await);
    assert_eq!(listed(&one, CallQuery::default()).await, [hidden, open]);
    assert_eq!(listed(&other, CallQuery::default()).await, [open]);
    assert_eq!(listed(&curator, CallQuery::default()).await, [hidden, open]);
    assert_not_found(other.call_details(hidden).await);
    assert_eq!(one.call_details(hidden).await.unwrap().summary.call.request, hidden);
    let elsewhere = alone(harness).await;
    assert!(listed(&elsewhere, CallQuery::default()).await.is_empty());
    assert_not_found(elsewhere.call_details(open).await);
}

pub async fn a_call_is_shown_with_its_attempts_stages_and_relatives(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = asked(&agent, asking("flaky", "session", "s")).await;
    let waiting = agent.call_details(id).await.unwrap();
    assert_eq!(waiting.stages.len(), 1);
    assert_eq!((waiting.stages[0].name.as_str(), waiting.stages[0].ended_at), ("queue", None));
    assert!(waiting.attempts.is_empty());
    assert_eq!((waiting.trace_id, waiting.summary.duration_ms), (id.simple().to_string(), None));

    let first = claimed(&agent).await;
    agent.start(first.lease, 2).await.unwrap();
    agent.release(first.lease, Release::Retry { after_ms: 0 }).await.unwrap();
    let second = claimed(&agent).await;
    agent.start(second.lease, 2).await.unwrap();
    let child = child_of(harness, &agent, id).await;
    let running = agent.call_details(id).await.unwrap();
    let names: Vec<&str> = running.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["queue", "claim", "run"]);

    let failure = failure_of(&second, ToolFailure::new(ErrorCode::ExecutionFailed, "it broke"));
    let response = agent.complete(second.lease, failure).await.unwrap();
    let call = agent.call_details(id).await.unwrap();
    let outcomes: Vec<(u32, Option<&str>)> =
        call.attempts.iter().map(|attempt| (attempt.attempt, attempt.outcome.as_deref())).collect();
    assert_eq!(outcomes, [(1, Some("retry")), (2, Some("error"))]);
    assert!(call.attempts.iter().all(|attempt| attempt.started_at <= attempt.ended_at));
    let names: Vec<&str> = call.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["queue", "claim", "load", "run", "write"]);
    assert_eq!(call.stages[3].duration_ms, Some(40.0));
    assert_eq!(call.stages[4].ended_at, call.summary.finished_at);
    assert_eq!(call.summary.error_code, Some(ErrorCode::ExecutionFailed));
    assert_eq!(call.trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert!(call.summary.duration_ms.unwrap() >= 40.0, "the run took 40 ms");
    assert_eq!(call.children.iter().map(|child| child.call.request).collect::<Vec<_>>(), [child]);
    assert_eq!(call.request_record.unwrap().id, id);
    assert_eq!(call.response_record.unwrap().id, response);
    assert_eq!(agent.call_details(child).await.unwrap().summary.parent, Some(id));
    assert_not_found(agent.call_details(Uuid::new_v4()).await);
}

pub async fn finished_calls_are_counted_by_tool_and_code(harness: &impl Harness) {
    let agent = alone(harness).await;
    finished(&agent, asking("good", "session", "s"), None).await;
    for code in [ErrorCode::Timeout, ErrorCode::Timeout, ErrorCode::InvalidOutput] {
        finished(&agent, asking("bad", "session", "s"), Some(code)).await;
    }
    // Its record says that there is such a tool, whose calls are counted even if they do not run.
    let tool = json!({
        "name": "bad",
        "description": "for a test",
        "implementation": {"type": "builtin", "tool": "bad"},
        "definition": {"examples": [{"description": "one", "input": {}}]},
    });
    let mut record = noted("bad", tool, &["tool", "tool:bad"]);
    record.schema_name = Some(schema_names::TOOL_V1.into());
    asked(&agent, record).await;
    for _ in 0..4 {
        finished(&agent, asking("bad", "session", "s"), Some(ErrorCode::InvalidArguments)).await;
    }
    for tool in ["bad", "missing"] {
        let waiting = asked(&agent, asking(tool, "session", "s")).await;
        agent.cancel(waiting).await.unwrap();
    }

    for window_seconds in [600, 86_400] {
        let stats = agent.call_stats(&CallStatsQuery { tool: None, window_seconds }).await.unwrap();
        assert_eq!((stats.all.calls, stats.all.failed), (10, 9));
        assert_eq!(stats.intervals.iter().map(|interval| interval.calls).sum::<u64>(), 10);
        assert_eq!(stats.intervals.iter().map(|interval| interval.failed).sum::<u64>(), 9);
        assert!(stats.intervals.iter().all(|interval| interval.duration_ms.p50 <= interval.duration_ms.p99));
        let names: Vec<Option<&str>> = stats.tools.iter().map(|tool| tool.tool.as_deref()).collect();
        assert_eq!(names, [Some("bad"), Some("(unknown)"), Some("good")]);
        let bad = &stats.tools[0];
        let failures: Vec<(&str, u64)> = bad.failures.iter().map(|(code, calls)| (code.as_str(), *calls)).collect();
        assert_eq!(failures, [("Cancelled", 1), ("InvalidArguments", 4), ("InvalidOutput", 1), ("Timeout", 2)]);
        for percentile in [bad.run_ms.p50, bad.run_ms.p95, bad.run_ms.p99] {
            assert!((percentile / 40.0 - 1.0).abs() < 0.1, "{percentile} for 40");
        }
        assert!(bad.duration_ms.p50 <= bad.duration_ms.p99 && bad.per_second > 0.0);
    }
    let one = CallStatsQuery { tool: Some("good".into()), window_seconds: 600 };
    assert_eq!(agent.call_stats(&one).await.unwrap().all.calls, 1);
    assert_eq!(fields(agent.call_stats(&CallStatsQuery { window_seconds: 1, ..one }).await), ["window"]);
    let elsewhere = alone(harness).await;
    let all = CallStatsQuery { tool: None, window_seconds: 600 };
    assert_eq!(elsewhere.call_stats(&all).await.unwrap().all.calls, 0);
}
