//! What a collector receives: the running program exports to an HTTP server that decodes the
//! protobuf as a collector does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use futures::StreamExt;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use prost::Message;
use rcrt_breadcrumb::{Events, Records, ToolRequest, ToolResponse};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::process::{Installation, PATIENCE};
use crate::tool_record;

/// What the collector received.
#[derive(Default)]
struct Collected {
    headers: Mutex<Vec<HeaderMap>>,
    resource: Mutex<Vec<KeyValue>>,
    spans: Mutex<Vec<Span>>,
    /// Names of metrics.
    metrics: Mutex<Vec<String>>,
}

async fn traces(State(collected): State<Arc<Collected>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let Ok(request) = ExportTraceServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
    collected.headers.lock().unwrap().push(headers);
    for resource in request.resource_spans {
        *collected.resource.lock().unwrap() = resource.resource.unwrap_or_default().attributes;
        let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        collected.spans.lock().unwrap().extend(spans);
    }
    StatusCode::OK
}

async fn metrics(State(collected): State<Arc<Collected>>, body: Bytes) -> StatusCode {
    let Ok(request) = ExportMetricsServiceRequest::decode(body) else { return StatusCode::BAD_REQUEST };
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    collected.metrics.lock().unwrap().extend(scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name));
    StatusCode::OK
}

async fn serve(router: Router) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

fn attribute(attributes: &[KeyValue], key: &str) -> Option<Value> {
    let found = attributes.iter().find(|one| one.key == key)?;
    let Some(AnyValue { value: Some(value) }) = &found.value else { return None };
    match value {
        Attribute::StringValue(text) => Some(json!(text)),
        Attribute::IntValue(number) => Some(json!(number)),
        other => Some(json!(format!("{other:?}"))),
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_one_trace_with_its_caller_ops_and_nested_calls() {
    let collected = Arc::new(Collected::default());
    let collector = Router::new().route("/v1/traces", post(traces)).route("/v1/metrics", post(metrics));
    let collector = serve(collector.with_state(collected.clone())).await;
    let web = serve(Router::new().route("/{*path}", get(|| async { "hello" }))).await;

    let installation = Installation::new();
    let endpoint = format!("http://127.0.0.1:{collector}");
    let up = installation.start_with(
        &[
            "up",
            "--no-seed",
            "--listen",
            &installation.listen.to_string(),
            "--allow-private-host",
            &format!("127.0.0.1:{web}"),
        ],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=open sesame"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ],
    );
    let store = installation.client().await;
    installation.ready().await;
    let mut events = store.events(None).await.unwrap();

    let any = json!({"type": "object"});
    let inner = "export async function execute() { throw new RangeError('a secret word') }";
    store.create(tool_record::tool("inner", inner, &any, &json!({})), None).await.unwrap();
    let outer = "export async function execute(input, context) {\n\
                   await (await fetch(input.url)).text();\n\
                   await context.api.getBreadcrumb('nothing').catch(() => 0);\n\
                   await context.api.createBreadcrumb({ title: 'inner', tags: ['tool:request'],\n\
                     schema_name: 'tool.request.v1', context: { tool: 'inner', input: {}, requestId: 'of-inner' } });\n\
                   return 1;\n\
                 }";
    let net = json!({"permissions": {"net": [format!("127.0.0.1:{web}")], "tools": ["inner"]}});
    store.create(tool_record::tool("outer", outer, &any, &net), None).await.unwrap();

    let input = json!({"url": format!("http://127.0.0.1:{web}/path-of-mine?key=query-of-mine")});
    let mut request = ToolRequest::record("outer", input, Some("of-outer"), None);
    request.context.insert("traceparent".into(), format!("00-{TRACE}-b7ad6b7169203331-01").into());
    store.create(request, None).await.unwrap();
    let mut answers = HashMap::new();
    let answered = async {
        while answers.len() < 2 {
            let event = events.next().await.unwrap().unwrap();
            if let Ok(response) = ToolResponse::from_context(&event.context)
                && event.tags.iter().any(|tag| tag == "tool:response")
                && ["inner", "outer"].contains(&response.tool.as_str())
            {
                answers.insert(response.tool.clone(), response);
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("both calls have responses");
    assert_eq!(answers["outer"].output, Some(json!(1)), "{:?}", answers["outer"]);
    for answer in answers.values() {
        assert_eq!(answer.metadata["trace_id"], TRACE, "{}", answer.tool);
    }
    // The program sends the remaining data when it stops.
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());

    let headers = collected.headers.lock().unwrap();
    assert!(headers.iter().all(|headers| headers["content-type"] == "application/x-protobuf"));
    assert!(headers.iter().all(|headers| headers["x-collector-key"] == "open sesame"));
    let resource = collected.resource.lock().unwrap();
    assert_eq!(attribute(&resource, "service.name"), Some(json!("rcrt")));
    assert_eq!(attribute(&resource, "deployment.environment.name"), Some(json!("test")));
    assert!(attribute(&resource, "service.instance.id").is_some(), "{resource:?}");
    let metrics = collected.metrics.lock().unwrap();
    for name in ["rcrt.tool.invocations", "rcrt.tool.invoke.duration"] {
        assert!(metrics.iter().any(|one| one == name), "{metrics:?}");
    }

    let all = collected.spans.lock().unwrap();
    let text = format!("{all:?}");
    for kept in ["a secret word", "path-of-mine", "query-of-mine"] {
        assert!(!text.contains(kept), "{kept:?} must not be exported");
    }
    let spans: Vec<&Span> = all.iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
    let named =
        |name: &str| *spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:?}"));
    let child_of = |name: &str, parent: &Span| {
        let of_parent = |span: &&&Span| span.name == name && span.parent_span_id == parent.span_id;
        *spans.iter().find(of_parent).unwrap_or_else(|| panic!("no {name} under {}", parent.name))
    };
    let outer = named("execute_tool outer");
    assert_eq!(hex(&outer.parent_span_id), "b7ad6b7169203331");
    assert_eq!(attribute(&outer.attributes, "gen_ai.tool.call.id"), Some(json!("of-outer")));
    for stage in ["queue", "claim", "load", "write"] {
        child_of(stage, outer);
    }
    let run = child_of("run", outer);
    let fetch = child_of("GET", run);
    assert_eq!(attribute(&fetch.attributes, "server.address"), Some(json!("127.0.0.1")));
    assert_eq!(attribute(&fetch.attributes, "server.port"), Some(json!(web)));
    assert_eq!(attribute(&fetch.attributes, "http.response.status_code"), Some(json!(200)));
    let refused = child_of("api getBreadcrumb", run);
    assert_eq!(attribute(&refused.attributes, "error.type"), Some(json!("InvalidArguments")));
    let wrote = child_of("api createBreadcrumb", run);
    let inner = child_of("execute_tool inner", wrote);
    assert_eq!(attribute(&inner.attributes, "error.type"), Some(json!("ExecutionFailed")));
    assert_eq!(inner.status.as_ref().map(opentelemetry_proto::tonic::trace::v1::Status::code), Some(SpanStatus::Error));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_collector_is_logged_and_blocks_nothing() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let installation = Installation::new();
    let up = installation.start_with(
        &["up", "--no-seed", "--listen", &installation.listen.to_string()],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{nobody}")), ("OTEL_BSP_SCHEDULE_DELAY", "100")],
    );
    let store = installation.client().await;
    installation.ready().await;
    store.create(ToolRequest::record("nobody", json!({}), None, None), None).await.unwrap();
    installation.said("traces cannot be exported", 1).await;
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());

    let installation = Installation::new();
    let grpc = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let up = installation.start_with(&["up", "--no-seed", "--listen", &installation.listen.to_string()], &grpc);
    installation.client().await;
    installation.said("only http/protobuf is supported", 1).await;
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
