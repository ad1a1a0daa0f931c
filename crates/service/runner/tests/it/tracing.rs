//! The spans of a call, as an exporter receives them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once};

use opentelemetry::trace::{SpanKind, Status, TraceId};
use opentelemetry::{Context, Value as Attribute};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_egress::trace;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, code};

/// The spans of all tests in this process; each test looks for its own trace.
static SPANS: Mutex<Vec<SpanData>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Kept;

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        SPANS.lock().unwrap().extend(batch);
        Ok(())
    }
}

fn export() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        rcrt_egress::trace::export(SdkTracerProvider::builder().with_simple_exporter(Kept).build());
    });
}

/// By name. A runner that was stopped has ended all spans of its calls.
fn spans_of(trace_id: u128) -> HashMap<String, SpanData> {
    let spans = SPANS.lock().unwrap();
    let of_trace = spans.iter().filter(|span| span.span_context.trace_id() == TraceId::from(trace_id));
    of_trace.map(|span| (span.name.to_string(), span.clone())).collect()
}

fn attribute(span: &SpanData, key: &str) -> Option<String> {
    span.attributes.iter().find(|one| one.key.as_str() == key).map(|one| match &one.value {
        Attribute::String(text) => text.to_string(),
        other => other.to_string(),
    })
}

async fn asked(fixture: &Fixture, tool: &str, more: Value) -> Value {
    let request = fixture.ask_with(tool, more).await;
    json!(fixture.answer(request).await.metadata)
}

#[tokio::test]
async fn an_attempt_is_a_span_in_its_callers_trace_with_a_span_for_each_stage() {
    export();
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let tool = fixture.create(code("traced", json!({}))).await;
    let seen = Arc::new(Mutex::new(None));
    let recorded = seen.clone();
    fake.does("traced", move |call, _| {
        *recorded.lock().unwrap() = trace::traceparent(&Context::current());
        async move { Ok(call.input) }
    });
    let runner = fixture.start(&fake);
    let traceparent = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa01-00f067aa0ba902b7-01";
    let metadata = asked(&fixture, "traced", json!({"traceparent": traceparent, "session": "s1"})).await;
    runner.stop().await;
    assert_eq!(metadata["trace_id"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa01");

    let spans = spans_of(0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aa01);
    let call = &spans["execute_tool traced"];
    assert_eq!(u64::from_be_bytes(call.parent_span_id.to_bytes()), 0x00f0_67aa_0ba9_02b7);
    assert_eq!((call.span_kind.clone(), call.status.clone()), (SpanKind::Internal, Status::Unset));
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "traced"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.conversation.id", "s1"),
        ("rcrt.tool.source", "sandbox"),
        ("rcrt.tool.id", &tool.to_string()),
        ("rcrt.tool.version", "1"),
        ("rcrt.attempt", "1"),
    ] {
        assert_eq!(attribute(call, key).as_deref(), Some(value), "{key}");
    }
    assert!(attribute(call, "gen_ai.tool.call.id").is_some());
    assert_eq!(attribute(call, "gen_ai.tool.call.id"), attribute(call, "rcrt.request"), "the caller set no other id");
    let mut last = call.start_time;
    for stage in ["queue", "claim", "load", "run", "write"] {
        let span = &spans[stage];
        assert_eq!(span.parent_span_id, call.span_context.span_id(), "{stage}");
        assert!(span.start_time >= last && span.end_time >= span.start_time, "{stage} comes in its order");
        assert!(span.end_time <= call.end_time, "{stage} ends before the call");
        last = span.start_time;
    }
    let seen = seen.lock().unwrap().expect("the tool's work belongs to the trace");
    assert_eq!(u64::from(seen.span_id), u64::from_be_bytes(spans["run"].span_context.span_id().to_bytes()));
}

#[tokio::test]
async fn each_attempt_is_a_span_and_a_failure_has_only_its_code() {
    export();
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("fails", json!({"limits": {"max_attempts": 2}}))).await;
    fake.does("fails", |_, _| async {
        Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the password is swordfish").retryable(true))
    });
    let runner = fixture.start(&fake);
    let traceparent = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa02-00f067aa0ba902b7-01";
    asked(&fixture, "fails", json!({"traceparent": traceparent})).await;
    asked(&fixture, "unheard-of", json!({"traceparent": traceparent})).await;
    runner.stop().await;
    let spans = spans_of(0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aa02);
    assert_eq!(attribute(&spans["execute_tool unheard-of"], "error.type").as_deref(), Some("ToolNotFound"));
    let all = SPANS.lock().unwrap();
    let attempts: Vec<&SpanData> = all
        .iter()
        .filter(|span| span.name == "execute_tool fails" && attribute(span, "error.type").is_some())
        .collect();
    let numbers: Vec<Option<String>> = attempts.iter().map(|span| attribute(span, "rcrt.attempt")).collect();
    assert_eq!(numbers, [Some("1".into()), Some("2".into())]);
    for span in attempts {
        assert_eq!(span.status, Status::error(""));
        assert_eq!(attribute(span, "error.type").as_deref(), Some("ExecutionFailed"));
    }
    assert!(!format!("{all:?}").contains("swordfish"));
}

#[tokio::test]
async fn an_invalid_traceparent_starts_a_new_trace() {
    export();
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("forged", json!({}))).await;
    let runner = fixture.start(&fake);
    for forged in ["00-00000000000000000000000000000000-0000000000000000-01", "noise", "00-\u{fc}-\u{fc}-01"] {
        let metadata = asked(&fixture, "forged", json!({"traceparent": forged})).await;
        let trace_id = u128::from_str_radix(metadata["trace_id"].as_str().unwrap(), 16).unwrap();
        assert_ne!(trace_id, 0);
    }
    // An unsampled trace is not recorded here either, but its id is still returned.
    let metadata =
        asked(&fixture, "forged", json!({"traceparent": "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa03-00f067aa0ba902b7-00"}))
            .await;
    runner.stop().await;
    assert_eq!(metadata["trace_id"], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa03");
    assert!(spans_of(0xaaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aaaa_aa03).is_empty());
}
