use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_egress::{HeldSecret, Vault};
use rcrt_executors::{Executor, RestExecutor, ToolOutput};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use rcrt_test_servers::network::{Network, serve};
use rcrt_test_tenant::{Tenant, native};

async fn show(request: Request) -> axum::Json<Value> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let header = |name| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    axum::Json(json!({
        "method": parts.method.as_str(),
        "path": parts.uri.path_and_query().map(ToString::to_string),
        "body": String::from_utf8_lossy(&body),
        "authorization": header("authorization"),
        "key": header("x-key"),
        "extra": header("x-extra"),
        "type": header("content-type"),
    }))
}

struct Service {
    executor: RestExecutor,
    base: String,
    tenant: Tenant,
}

impl Service {
    async fn new(router: Router) -> Self {
        let port = serve(router).await;
        let gate = Network::new().inside(&format!("api.test:{port}")).egress();
        let tenant = Tenant::new().await;
        Self { executor: RestExecutor::new(Arc::new(gate)), base: format!("http://api.test:{port}"), tenant }
    }

    /// `more` has further fields of `implementation`, besides the type and the URL.
    async fn run(&self, path: &str, more: Value, input: Value) -> ToolOutput {
        let mut call = self.tenant.call(self.definition(path, more), input);
        let held = HeldSecret { name: "KEY".into(), value: "hunter2".into(), hosts: Vec::new(), readable: true };
        call.secrets = Arc::new(Vault::new(vec![held]).unwrap());
        self.executor.execute(call, CancellationToken::new()).await
    }

    fn definition(&self, path: &str, more: Value) -> rcrt_breadcrumb::ToolDefinition {
        let mut implementation = json!({"type": "http", "url": format!("{}{path}", self.base)});
        implementation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        native(implementation, &["KEY"])
    }
}

async fn load(implementation: Value) -> Result<(), ToolFailure> {
    let executor = RestExecutor::new(Arc::new(Network::new().egress()));
    executor.load(&native(implementation, &["KEY"]), Uuid::new_v4(), Uuid::new_v4(), 1).await
}

#[tokio::test]
async fn arguments_go_into_the_url_the_query_or_the_body() {
    let service = Service::new(Router::new().fallback(any(show))).await;
    let input = json!({"id": "a/b", "n": 2, "list": ["x", "y z"], "nothing": null, "deep": {"k": 1}});
    let output = service.run("/users/{id}?fixed=1", json!({}), input.clone()).await;
    assert_eq!(output.metadata["http_status"], 200);
    let seen = output.result.unwrap();
    assert_eq!(seen["method"], "GET");
    assert_eq!(seen["path"], "/users/a%2Fb?fixed=1&n=2&list=x&list=y+z&deep=%7B%22k%22%3A1%7D");

    for method in ["POST", "put", "PATCH"] {
        let seen = service.run("/users/{id}", json!({"method": method}), input.clone()).await.result.unwrap();
        assert_eq!(seen["method"], method.to_uppercase());
        assert_eq!((&seen["path"], &seen["type"]), (&json!("/users/a%2Fb"), &json!("application/json")));
        let body: Value = serde_json::from_str(seen["body"].as_str().unwrap()).unwrap();
        assert_eq!(body, json!({"n": 2, "list": ["x", "y z"], "nothing": null, "deep": {"k": 1}}));
    }
    let failure = service.run("/users/{id}", json!({}), json!({"n": 1})).await.result.unwrap_err();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (ErrorCode::InvalidArguments, "id: is required by the tool's URL")
    );
    let failure = service.run("/users/{id}/x", json!({}), json!({"id": ".."})).await.result.unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidArguments);
}

#[tokio::test]
async fn secrets_become_headers() {
    let service = Service::new(Router::new().fallback(any(show))).await;
    let bearer = json!({"auth": {"type": "bearer", "secret": "KEY"}, "headers": {"X-Extra": "yes"}});
    let seen = service.run("/", bearer, json!({})).await.result.unwrap();
    assert_eq!((&seen["authorization"], &seen["extra"]), (&json!("Bearer hunter2"), &json!("yes")));
    let key = json!({"auth": {"type": "api_key", "header": "X-Key", "secret": "KEY"}});
    let seen = service.run("/", key, json!({})).await.result.unwrap();
    assert_eq!((&seen["key"], &seen["authorization"]), (&json!("hunter2"), &Value::Null));
}

#[tokio::test]
async fn responses_are_json_text_null_or_a_typed_failure() {
    async fn answer(request: Request) -> Response {
        match request.uri().path() {
            "/text" => "plain".into_response(),
            "/vendor" => {
                ([(header::CONTENT_TYPE, "application/problem+json; charset=utf-8")], "{\"a\":1}").into_response()
            }
            "/empty" => StatusCode::NO_CONTENT.into_response(),
            "/lies" => ([(header::CONTENT_TYPE, "application/json")], "{oops").into_response(),
            "/big" => ([(header::CONTENT_TYPE, "application/json")], r#"{"rows":[{"id":18446744073709551616}]}"#)
                .into_response(),
            "/busy" => (StatusCode::TOO_MANY_REQUESTS, "slow down").into_response(),
            "/broken" => (StatusCode::BAD_GATEWAY, "x".repeat(10_000)).into_response(),
            "/away" => (StatusCode::FOUND, [(header::LOCATION, "http://elsewhere.test/")]).into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }
    let service = Service::new(Router::new().fallback(any(answer))).await;
    for (path, expected) in [("/text", json!("plain")), ("/vendor", json!({"a": 1})), ("/empty", Value::Null)] {
        assert_eq!(service.run(path, json!({}), json!({})).await.result.unwrap(), expected, "{path}");
    }
    for (path, code, retryable) in [
        ("/lies", ErrorCode::ExecutionFailed, false),
        ("/big", ErrorCode::ExecutionFailed, false),
        ("/busy", ErrorCode::ExecutionFailed, true),
        ("/broken", ErrorCode::ExecutionFailed, true),
        ("/missing", ErrorCode::ExecutionFailed, false),
        ("/away", ErrorCode::PermissionDenied, false),
    ] {
        let output = service.run(path, json!({}), json!({})).await;
        let failure = output.result.unwrap_err();
        assert_eq!((failure.code, failure.is_retryable), (code, retryable), "{path}: {failure}");
        if path == "/big" {
            assert!(failure.message.contains("at rows[0].id"), "{failure}");
        }
        if path == "/broken" {
            assert_eq!(failure.message, "the service responded with 502 Bad Gateway");
            assert_eq!(failure.details.unwrap()["body"].as_str().unwrap().len(), 2048);
            assert_eq!(output.metadata["http_status"], 502);
        }
    }
}

#[tokio::test]
async fn silent_service_stops_at_the_time_limit_or_on_cancellation() {
    async fn silent() {
        std::future::pending::<()>().await;
    }
    let service = Service::new(Router::new().fallback(any(silent))).await;
    let mut call = service.tenant.call(service.definition("/", json!({})), json!({}));
    call.limits.timeout_ms = 50;
    let output = service.executor.execute(call.clone(), CancellationToken::new()).await;
    assert_eq!(output.result.unwrap_err().code, ErrorCode::Timeout);
    call.limits.timeout_ms = 900_000;
    let cancelled = CancellationToken::new();
    let (output, ()) = tokio::join!(service.executor.execute(call, cancelled.clone()), async { cancelled.cancel() });
    assert_eq!(output.result.unwrap_err().code, ErrorCode::Cancelled);
}

#[tokio::test]
async fn settings_are_validated_when_the_tool_is_loaded() {
    let url = "https://api.example.com/{id}";
    load(json!({"type": "rest", "url": url, "method": "delete"})).await.unwrap();
    load(json!({"type": "http", "url": url, "auth": {"type": "api_key", "secret": "KEY"}})).await.unwrap();
    for (implementation, field) in [
        (json!({"type": "http"}), "implementation"),
        (json!({"type": "http", "url": url, "colour": "red"}), "implementation"),
        (json!({"type": "http", "url": "https://{host}/"}), "implementation.url"),
        (json!({"type": "http", "url": url, "method": "TRACE"}), "implementation.method"),
        (json!({"type": "http", "url": url, "headers": {"bad name": "x"}}), "implementation.headers"),
        (json!({"type": "http", "url": url, "auth": {"type": "basic", "secret": "KEY"}}), "implementation"),
        (
            json!({"type": "http", "url": url, "auth": {"type": "bearer", "secret": "OTHER"}}),
            "implementation.auth.secret",
        ),
    ] {
        let failure = load(implementation.clone()).await.unwrap_err();
        assert_eq!(failure.details.unwrap()["errors"][0]["field"], field, "{implementation}");
    }
}

/// More large responses than permits, while others of the same tool are half sent.
#[tokio::test]
async fn large_responses_need_permits_and_one_tool_cannot_take_all() {
    let begun = Arc::new(tokio::sync::Semaphore::new(0));
    let (signal, half) = (begun.clone(), "x".repeat(200_000));
    let stuck = move || {
        let (signal, half) = (signal.clone(), half.clone());
        async move {
            let first = futures::stream::once(async move {
                signal.add_permits(1);
                Ok::<_, std::convert::Infallible>(half)
            });
            axum::body::Body::from_stream(futures::StreamExt::chain(first, futures::stream::pending()))
        }
    };
    let large = || async { "y".repeat(300_000) };
    let router = Router::new().route("/stuck", any(stuck)).route("/large", any(large));
    let service = Arc::new(Service::new(router).await);
    let tool = Uuid::new_v4();
    let end = CancellationToken::new();
    let held: Vec<_> = (0..14)
        .map(|_| {
            let mut call = service.tenant.call(service.definition("/stuck", json!({})), json!({}));
            call.tool_id = tool;
            call.secrets = Arc::new(Vault::new(Vec::new()).unwrap());
            let (service, end) = (service.clone(), end.clone());
            tokio::spawn(async move { service.executor.execute(call, end).await })
        })
        .collect();
    begun.acquire_many(14).await.unwrap().forget();
    // Each drops its output, and with it its permit.
    let many = (0..20).map(|_| async {
        let output = service.run("/large", json!({}), json!({})).await;
        assert_eq!(output.result.unwrap().as_str().map(str::len), Some(300_000));
    });
    futures::future::join_all(many).await;
    end.cancel();
    for stuck in held {
        assert_eq!(stuck.await.unwrap().result.unwrap_err().code, ErrorCode::Cancelled);
    }
}

#[tokio::test]
async fn large_response_holds_its_permit_until_the_output_is_dropped() {
    let large = || async { "y".repeat(300_000) };
    let service = Service::new(Router::new().route("/large", any(large))).await;
    let tool = Uuid::new_v4();
    let run = async |timeout_ms| {
        let mut call = service.tenant.call(service.definition("/large", json!({})), json!({}));
        call.tool_id = tool;
        call.limits.timeout_ms = timeout_ms;
        call.secrets = Arc::new(Vault::new(Vec::new()).unwrap());
        service.executor.execute(call, CancellationToken::new()).await
    };
    let mut kept = Vec::new();
    for _ in 0..6 {
        kept.push(run(900_000).await);
    }
    assert!(kept.iter().all(|output| output.result.is_ok() && output.hold.is_some()));
    assert_eq!(run(300).await.result.unwrap_err().code, ErrorCode::Timeout);
    drop(kept);
    assert!(run(900_000).await.result.is_ok());
}
