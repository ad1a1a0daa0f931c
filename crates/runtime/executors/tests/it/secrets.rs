//! What a tool publishes: results, failures, console lines and records.

use std::sync::Arc;

use rcrt_breadcrumb::{
    ErrorCode, HostEntry, LimitName, MAX_BREADCRUMBS_WRITTEN, MAX_BYTES_WRITTEN, NewBreadcrumb, NewSecret, OpError,
};
use rcrt_egress::{HeldSecret, Vault};
use rcrt_executors::{CallHostOps, Executor, RestExecutor, ToolCall};
use rcrt_sandbox::{ApiCall, HostOps};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use rcrt_test_servers::network::Network;
use rcrt_test_servers::service::Service;
use rcrt_test_tenant::{Tenant, code, native};

const VALUE: &str = "sk-live/9f+8~\"Q\\7 =z";

fn secret(name: &str, value: &str, hosts: &[&str]) -> HeldSecret {
    let hosts = hosts.iter().map(|host| HostEntry::parse(host).unwrap()).collect();
    HeldSecret { name: name.into(), value: value.into(), hosts, readable: false }
}

fn create(record: Value) -> ApiCall {
    ApiCall::CreateBreadcrumb { record }
}

fn world(tenant: &Tenant, secrets: Vec<HeldSecret>) -> (CallHostOps, Arc<Vault>) {
    let names: Vec<&str> = secrets.iter().map(|secret| secret.name.as_str()).collect();
    let mut call = tenant.call(code(json!({}), &names), json!({}));
    call.secrets = Arc::new(Vault::new(secrets.clone()).unwrap());
    let vault = call.secrets.clone();
    (CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap(), vault)
}

#[tokio::test]
async fn records_are_written_and_read_without_values() {
    let tenant = Tenant::new().await;
    let readable = HeldSecret { readable: true, ..secret("OPEN", "readable-value", &[]) };
    let (world, vault) = world(&tenant, vec![secret("KEY", VALUE, &[]), readable]);
    let shown = vault.shown();
    let deep = json!({"a": [{VALUE: format!("<{VALUE}>")}], "open": "readable-value", "handle": shown["KEY"], "n": 1});
    let record = json!({"title": format!("Of {VALUE}"), "tags": [VALUE], "context": deep});
    let created = world.api(create(record)).await.unwrap();
    let written = tenant.get(&created["id"]).await;
    assert_eq!(written.title, "Of [secret KEY]");
    assert_eq!(written.tags, ["[secret KEY]"]);
    let expected = json!({
        "a": [{"[secret KEY]": "<[secret KEY]>"}], "open": "[secret OPEN]", "handle": shown["KEY"], "n": 1,
    });
    assert_eq!(Value::Object(written.context), expected);
    let id = created["id"].as_str().unwrap().to_owned();
    let changes = json!({"context": {"k": VALUE}});
    let changed = world.api(ApiCall::UpdateBreadcrumb { id, version: 1, changes }).await.unwrap();
    assert_eq!(changed["context"], json!({"k": "[secret KEY]"}));

    // A value that another writer stored is not visible to the tool either.
    let context = json!({"note": VALUE, "open": "readable-value"}).as_object().unwrap().clone();
    let careless = NewBreadcrumb { title: format!("whale {VALUE}"), context, ..NewBreadcrumb::default() };
    let id = tenant.breadcrumbs.create(careless, None).await.unwrap().id;
    let read = world.api(ApiCall::GetBreadcrumb { id: id.to_string() }).await.unwrap();
    assert_eq!(read["context"], json!({"note": "[secret KEY]", "open": "readable-value"}));
    let found = world.api(ApiCall::VectorSearch { query: json!({"q": "whale"}) }).await.unwrap();
    assert_eq!(found[0]["title"], "whale [secret KEY]");
    let error = world.api(ApiCall::GetBreadcrumb { id: VALUE.into() }).await.unwrap_err();
    assert!(!error.message.contains("sk-live"), "{error}");
}

#[tokio::test]
async fn get_secret_returns_a_handle_or_a_readable_value() {
    let tenant = Tenant::new().await;
    for (name, readable) in [("KEY", false), ("OPEN", true)] {
        let secret = NewSecret { readable, ..NewSecret::new(name, VALUE) };
        let id = tenant.breadcrumbs.create_secret(secret).await.unwrap().id;
        assert_ne!(id, uuid::Uuid::nil());
    }
    let held = || vec![secret("KEY", VALUE, &[]), HeldSecret { readable: true, ..secret("OPEN", VALUE, &[]) }];
    let (world, vault) = world(&tenant, held());
    let get = |id: &str| ApiCall::GetSecret { id: id.into(), reason: "to see".into() };
    for name in ["KEY", "OPEN"] {
        match world.api(get(name)).await {
            Ok(shown) => assert_eq!(shown, vault.shown()[name]),
            // The store returns no value to a tool without a grant.
            Err(error) => assert_eq!(error.name, "PermissionDenied", "{error}"),
        }
    }
    for _ in 0..98 {
        assert_ne!(world.api(get("OTHER")).await.unwrap_err().name, "ResourceExhausted");
    }
    assert_eq!(world.api(get("KEY")).await.unwrap_err().name, "ResourceExhausted", "each is written to the audit log");
    assert_ne!(vault.shown()["KEY"], VALUE);
    assert_eq!(vault.shown()["OPEN"], VALUE);
}

fn exhausted(error: &OpError, limit: LimitName, allowed: u64) {
    assert_eq!(error.name, "ResourceExhausted", "{error}");
    let reached = error.reached.unwrap();
    assert_eq!((reached.limit, reached.allowed), (limit, allowed));
}

#[tokio::test]
async fn records_per_call_are_limited_and_failed_attempts_count() {
    let tenant = Tenant::new().await;
    let (world, _) = world(&tenant, Vec::new());
    let record = || create(json!({"title": "x"}));
    let id = world.api(record()).await.unwrap()["id"].as_str().unwrap().to_owned();
    let update = |version| ApiCall::UpdateBreadcrumb { id: id.clone(), version, changes: json!({"title": "y"}) };
    world.api(update(1)).await.unwrap();
    let refusals = MAX_BREADCRUMBS_WRITTEN - 3;
    for number in 0..refusals {
        // Each attempt fails for a different reason.
        let error = match number % 4 {
            0 => world.api(update(77)).await,
            1 => world.api(create(json!({"title": ""}))).await,
            2 => world.api(create(json!("no record"))).await,
            _ => world.api(ApiCall::DeleteBreadcrumb { id: uuid::Uuid::new_v4().to_string() }).await,
        };
        assert_ne!(error.unwrap_err().name, "ResourceExhausted", "{number}");
    }
    world.api(ApiCall::DeleteBreadcrumb { id: id.clone() }).await.unwrap();
    for call in [record(), update(2), ApiCall::DeleteBreadcrumb { id: id.clone() }, record()] {
        exhausted(&world.api(call).await.unwrap_err(), LimitName::BreadcrumbsWritten, MAX_BREADCRUMBS_WRITTEN);
    }
    // Reads continue to work, and another call starts from zero.
    assert_eq!(world.api(ApiCall::GetBreadcrumb { id }).await.unwrap_err().name, "NotFound");
    let another = CallHostOps::new(Arc::new(Network::new().egress()), &tenant.call(code(json!({}), &[]), json!({})));
    another.unwrap().api(record()).await.unwrap();
}

#[tokio::test]
async fn written_bytes_per_call_are_limited() {
    let tenant = Tenant::new().await;
    let (world, _) = world(&tenant, Vec::new());
    let record = |bytes: usize| create(json!({"title": "x", "context": {"text": "é".repeat(bytes / 2)}}));
    let each = 900_000;
    let fits = usize::try_from(MAX_BYTES_WRITTEN).unwrap() / (each + 100);
    let mut written = 0;
    for _ in 0..fits {
        written += usize::from(world.api(record(each)).await.is_ok());
    }
    assert!(written > 0, "some of them are stored");
    exhausted(&world.api(record(each)).await.unwrap_err(), LimitName::BytesWritten, MAX_BYTES_WRITTEN);
    // Refused attempts count as well, so a smaller write fails too.
    exhausted(&world.api(record(10)).await.unwrap_err(), LimitName::BytesWritten, MAX_BYTES_WRITTEN);
}

fn rest(tenant: &Tenant, service: &Service, held: HeldSecret, auth: Value) -> (ToolCall, RestExecutor) {
    let host = format!("api.test:{}", service.port);
    let implementation = json!({"type": "http", "url": format!("http://{host}/x"), "auth": auth});
    let mut call = tenant.call(native(implementation, &["KEY"]), json!({"q": 1}));
    call.secrets = Arc::new(Vault::new(vec![held]).unwrap());
    (call, RestExecutor::new(Arc::new(Network::new().inside(&host).egress())))
}

#[tokio::test]
async fn http_tools_send_secrets_only_to_bound_hosts_and_redact_responses() {
    let tenant = Tenant::new().await;
    let echo = Service::new(|seen| {
        let value = seen.header("authorization").or_else(|| seen.header("x-api-key")).unwrap().to_owned();
        axum::Json(json!({"you": {"sent": value}, "list": [value]}))
    })
    .await;
    let bearer = json!({"type": "bearer", "secret": "KEY"});
    let host = format!("api.test:{}", echo.port);
    let (call, executor) = rest(&tenant, &echo, secret("KEY", VALUE, &[&host]), bearer.clone());
    let output = executor.execute(call, CancellationToken::new()).await.result.unwrap();
    assert_eq!(echo.last().header("authorization"), Some(format!("Bearer {VALUE}").as_str()));
    assert_eq!(output, json!({"you": {"sent": "Bearer [secret KEY]"}, "list": ["Bearer [secret KEY]"]}));

    let key = json!({"type": "api_key", "secret": "KEY"});
    let readable = HeldSecret { readable: true, ..secret("KEY", "readable-value", &[]) };
    let (call, executor) = rest(&tenant, &echo, readable, key);
    let output = executor.execute(call, CancellationToken::new()).await.result.unwrap();
    assert_eq!(echo.last().header("x-api-key"), Some("readable-value"));
    assert_eq!(output["list"], json!(["[secret KEY]"]), "a readable value is redacted from a result too");

    let before = echo.seen().len();
    for (hosts, readable) in [(vec![], false), (vec!["elsewhere.test"], false), (vec!["elsewhere.test"], true)] {
        let held = HeldSecret { readable, ..secret("KEY", VALUE, &hosts) };
        let (call, executor) = rest(&tenant, &echo, held, bearer.clone());
        let failure = executor.execute(call, CancellationToken::new()).await.result.unwrap_err();
        assert_eq!(failure.code, ErrorCode::PermissionDenied, "{failure}");
        assert!(failure.message.contains("\"KEY\"") && failure.message.contains(&host), "{failure}");
    }
    assert_eq!(echo.seen().len(), before);

    let refusing = Service::new(|seen| {
        (axum::http::StatusCode::FORBIDDEN, format!("bad key {:?}", seen.header("authorization").unwrap()))
    })
    .await;
    let host = format!("api.test:{}", refusing.port);
    let (call, executor) = rest(&tenant, &refusing, secret("KEY", VALUE, &[&host]), bearer);
    let failure = executor.execute(call, CancellationToken::new()).await.result.unwrap_err();
    assert!(!format!("{failure:?}").contains("sk-live"), "{failure:?}");
}
