use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use opentelemetry::trace::FutureExt;
use rcrt_breadcrumb::{BreadcrumbQuery, FetchRequest, NewBreadcrumb, NewSecret, OpError, Profile, Redirect};
use rcrt_egress::{HeldSecret, Vault, trace};
use rcrt_executors::{CallDebug, CallHostOps, EffectGate, ProgressSink, ToolCall, TriggerChain};
use rcrt_sandbox::{ApiCall, HostOps};
use serde_json::{Value, json};
use tokio::time::Instant;

use rcrt_test_servers::network::{Network, get, serve, text};
use rcrt_test_tenant::{Tenant, code};

fn world(tenant: &Tenant, secrets: &[&str]) -> CallHostOps {
    world_with(tenant, json!({}), secrets)
}

fn world_with(tenant: &Tenant, permissions: Value, secrets: &[&str]) -> CallHostOps {
    let call = tenant.call(code(permissions, secrets), json!({}));
    CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap()
}

async fn refused(world: &CallHostOps, call: ApiCall) -> OpError {
    world.api(call).await.unwrap_err()
}

fn create(record: Value) -> ApiCall {
    ApiCall::CreateBreadcrumb { record }
}

/// RCRT's tools pass fields that only RCRT has, and null for omitted fields.
#[tokio::test]
async fn unknown_and_null_fields_are_ignored_only_with_rcrt_compat() {
    let tenant = Tenant::new().await;
    let record =
        json!({"title": "A note", "tags": ["note"], "schema_name": null, "context": {"unknown": null}, "mood": 1});
    let changes = json!({"context": {"n": 2}, "ttl": null, "mood": {"tags": []}});
    let listed = json!({"tag": "note", "limit": null, "sort": "newest", "include_context": true});
    let nearest = json!({"q": "note", "nn": null, "threshold": 0.5});
    let strict = world(&tenant, &[]);
    for (call, field) in [
        (create(record.clone()), "mood"),
        (ApiCall::SearchBreadcrumbs { query: listed.clone() }, "sort"),
        (ApiCall::VectorSearch { query: nearest.clone() }, "threshold"),
    ] {
        let message = refused(&strict, call).await.message;
        assert!(message.contains(&format!("unknown field `{field}`")), "{message}");
    }

    let lenient = world(&tenant, &[]).with_rcrt_compat(true);
    let created = lenient.api(create(record)).await.unwrap();
    let id = created["id"].as_str().unwrap().to_owned();
    assert_eq!(
        Value::Object(tenant.get(&created["id"]).await.context),
        json!({"unknown": null}),
        "contexts stay whole"
    );
    lenient.api(ApiCall::UpdateBreadcrumb { id: id.clone(), version: 1, changes }).await.unwrap();
    let found = lenient.api(ApiCall::SearchBreadcrumbs { query: listed }).await.unwrap();
    assert_eq!((&found[0]["id"], &found[0]["context"]), (&json!(id), &json!({"n": 2})));
    let found = lenient.api(ApiCall::VectorSearch { query: nearest }).await.unwrap();
    assert_eq!(found[0]["id"], id);
    let request = json!({"title": "Chat", "tags": ["tool:request"], "schema_name": "tool.request.v1",
        "context": {"tool": "echo", "input": {}, "session_id": "s1"}});
    let misspelled = refused(&strict, create(request.clone())).await;
    assert_eq!(misspelled.name, "InvalidArguments");
    assert!(misspelled.message.contains("context.session_id: is not a field of a request"), "{misspelled:?}");
    let created = lenient.api(create(request)).await.unwrap();
    assert_eq!(tenant.get(&created["id"]).await.context["session"], "s1");
    // A known field with a wrong type is still an error, and so is an unknown nested field.
    for query in
        [json!({"limit": "ten"}), json!({"context_match": [{"path": "$.n", "op": "eq", "value": 2, "tag": 1}]})]
    {
        assert_eq!(refused(&lenient, ApiCall::SearchBreadcrumbs { query }).await.name, "InvalidArguments");
    }
}

#[tokio::test]
async fn records_are_written_and_read_as_the_runners_agent() {
    let tenant = Tenant::new().await;
    let world = world(&tenant, &[]);
    let record = json!({"title": "A note on whales", "tags": ["note"], "schema_name": "note.v1", "context": {"n": 1}});
    let created = world.api(create(record)).await.unwrap();
    assert_eq!(created["version"], 1);
    let id = created["id"].as_str().unwrap().to_owned();
    assert_eq!(tenant.get(&created["id"]).await.created_by, Some(tenant.runner));

    let read = world.api(ApiCall::GetBreadcrumb { id: id.clone() }).await.unwrap();
    assert_eq!((&read["context"], &read["title"]), (&json!({"n": 1}), &json!("A note on whales")));
    assert!(read.get("owner_id").is_none(), "the short view");
    let viewed = world.api(ApiCall::ViewBreadcrumb { id: id.clone() }).await.unwrap();
    assert_eq!(viewed["context"], json!({"n": 1}));

    let changes = json!({"context": {"n": 2}});
    let changed = world.api(ApiCall::UpdateBreadcrumb { id: id.clone(), version: 1, changes }).await.unwrap();
    assert_eq!(
        (&changed["version"], &changed["context"]["n"], &changed["tags"]),
        (&json!(2), &json!(2), &json!(["note"]))
    );

    for query in [
        json!({"tag": "note"}),
        json!({"any_tags": ["x", "note"], "schema_name": "note.v1", "limit": 1, "include_context": true}),
        json!({"context_match": [{"path": "$.n", "op": "gt", "value": 1}]}),
    ] {
        let found = world.api(ApiCall::SearchBreadcrumbs { query: query.clone() }).await.unwrap();
        assert_eq!(found[0]["id"], id, "{query}");
        assert_eq!(found[0].get("context").is_some(), query.get("include_context").is_some());
    }
    let found = world.api(ApiCall::VectorSearch { query: json!({"q": "whales", "nn": 3}) }).await.unwrap();
    assert_eq!(found[0]["id"], id);

    world.api(ApiCall::DeleteBreadcrumb { id: id.clone() }).await.unwrap();
    assert_eq!(refused(&world, ApiCall::GetBreadcrumb { id }).await.name, "NotFound");
}

#[tokio::test]
async fn invalid_arguments_are_reported_with_the_field() {
    let tenant = Tenant::new().await;
    let world = world(&tenant, &[]);
    let uuid = uuid::Uuid::new_v4().to_string();
    for (call, said) in [
        (create(json!("text")), "createBreadcrumb: the argument must be an object"),
        (create(json!({"title": "x", "colour": "red"})), "unknown field `colour`"),
        (create(json!({"title": ""})), "title: must not be empty"),
        (create(json!({"title": "x", "schema_name": "tool.request.v1"})), "context.tool: is required"),
        (ApiCall::GetBreadcrumb { id: "x".into() }, "getBreadcrumb: id: \"x\" is not a valid record id"),
        (ApiCall::ViewBreadcrumb { id: "x".into() }, "viewBreadcrumb: id: \"x\" is not a valid record id"),
        (ApiCall::SearchBreadcrumbs { query: json!({"limit": 0}) }, "limit: must be from 1"),
        (ApiCall::SearchBreadcrumbs { query: json!({"tags": ["a"]}) }, "unknown field `tags`"),
        (ApiCall::SearchBreadcrumbs { query: json!({"context_match": [{"path": "$.a", "op": "like"}]}) }, "like"),
        (ApiCall::VectorSearch { query: json!({}) }, "q: is required"),
        (ApiCall::VectorSearch { query: json!({"q": "x", "nn": 101}) }, "must be a number from 1 to 100"),
    ] {
        let error = refused(&world, call).await;
        assert_eq!(error.name, "InvalidArguments", "{error}");
        assert!(error.message.contains(said), "{error} should say {said}");
    }
    let changes = json!({"title": "y"});
    let error = refused(&world, ApiCall::UpdateBreadcrumb { id: uuid, version: 1, changes }).await;
    assert_eq!(error.name, "NotFound");
    let created = world.api(create(json!({"title": "x"}))).await.unwrap();
    let id = created["id"].as_str().unwrap().to_owned();
    let error = refused(&world, ApiCall::UpdateBreadcrumb { id, version: 7, changes: json!({"title": "y"}) }).await;
    assert_eq!(error.name, "VersionConflict");
}

#[tokio::test]
async fn tool_can_request_tools_and_cannot_write_responses() {
    let tenant = Tenant::new().await;
    let world = world_with(&tenant, json!({"tools": ["echo"]}), &[]);
    let request =
        json!({"title": "a call", "schema_name": "tool.request.v1", "context": {"tool": "echo", "input": {}}});
    let request = world.api(create(request)).await.unwrap();
    let forged = json!({"title": "x", "schema_name": "tool.response.v1", "context": {"request_id": request["id"]}});
    assert_eq!(refused(&world, create(forged)).await.name, "PermissionDenied");
    let note = world.api(create(json!({"title": "x"}))).await.unwrap();
    let id = note["id"].as_str().unwrap().to_owned();
    let changes = json!({"schema_name": "tool.response.v1"});
    let error = refused(&world, ApiCall::UpdateBreadcrumb { id, version: 1, changes }).await;
    assert_eq!(error.name, "PermissionDenied");

    let answer = rcrt_breadcrumb::NewBreadcrumb {
        title: "an answer".into(),
        schema_name: Some("tool.response.v1".into()),
        ..rcrt_breadcrumb::NewBreadcrumb::default()
    };
    let claim = rcrt_breadcrumb::ClaimRequest::new(uuid::Uuid::new_v4(), 1, 60_000);
    let lease = tenant.breadcrumbs.claim(&claim).await.unwrap()[0].lease;
    let id = tenant.breadcrumbs.complete(lease, answer).await.unwrap().to_string();
    let error = refused(&world, ApiCall::DeleteBreadcrumb { id: id.clone() }).await;
    assert_eq!(error.name, "PermissionDenied");
    let changes = json!({"title": "y"});
    let error = refused(&world, ApiCall::UpdateBreadcrumb { id, version: 1, changes }).await;
    assert_eq!(error.name, "PermissionDenied");
}

#[tokio::test]
async fn only_required_secrets_are_readable_and_each_read_is_audited() {
    let tenant = Tenant::new().await;
    let mut ids = Vec::new();
    for name in ["MINE", "OTHER"] {
        let secret = NewSecret::new(name, format!("value of {name}"));
        ids.push(tenant.breadcrumbs.create_secret(secret).await.unwrap().id.to_string());
    }
    let record =
        NewBreadcrumb { title: "coded".into(), schema_name: Some("tool.code.v1".into()), ..Default::default() };
    let mut call = tenant.call(code(json!({}), &["MINE", "ABSENT"]), json!({}));
    call.tool_id = tenant.breadcrumbs.create(record, None).await.unwrap().id;
    tenant.breadcrumbs.grant_secret(ids[0].parse().unwrap(), call.tool_id).await.unwrap();
    let held = HeldSecret { name: "MINE".into(), value: "value of MINE".into(), hosts: vec![], readable: true };
    call.secrets = Arc::new(Vault::new(vec![held]).unwrap());
    let world = CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap();
    let secret = |id: &str| ApiCall::GetSecret { id: id.into(), reason: "to greet".into() };
    for id in ["MINE", &ids[0]] {
        assert_eq!(world.api(secret(id)).await.unwrap(), "value of MINE");
    }
    for id in ["OTHER", &ids[1], "NOWHERE", &uuid::Uuid::new_v4().to_string()] {
        assert_eq!(refused(&world, secret(id)).await.name, "PermissionDenied", "{id}");
    }
    assert_eq!(refused(&world, secret("ABSENT")).await.name, "NotFound");
    let audit = tenant.store.audit_log(tenant.owner, 10).await.unwrap();
    let reasons: Vec<&str> =
        audit.iter().filter(|e| e.action == "secret.decrypted").filter_map(|e| e.reason.as_deref()).collect();
    assert_eq!(reasons, ["tool coded, request r1: to greet"; 2]);
    // Secrets that the call was granted beyond those the record names are accessible too.
    call.definition = Arc::new(code(json!({}), &[]));
    let world = CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap();
    assert_eq!(world.api(secret(&ids[0])).await.unwrap(), "value of MINE");
    assert_eq!(refused(&world, secret(&ids[1])).await.name, "PermissionDenied");
}

#[tokio::test]
async fn triggered_call_marks_the_versions_that_it_writes() {
    let tenant = Tenant::new().await;
    let mut call = tenant.call(code(json!({}), &[]), json!({}));
    call.chain = TriggerChain::default().with("coded");
    let world = CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap();
    let created = world.api(create(json!({"title": "x", "tags": ["note"]}))).await.unwrap();
    assert_eq!(tenant.get(&created["id"]).await.tags, ["note", "triggered:coded:1"]);
    let id = created["id"].as_str().unwrap().to_owned();
    world.api(ApiCall::UpdateBreadcrumb { id, version: 1, changes: json!({"title": "y"}) }).await.unwrap();
    assert_eq!(tenant.get(&created["id"]).await.tags, ["note", "triggered:coded:2"]);
}

#[tokio::test]
async fn fetch_is_checked_against_the_tools_permissions() {
    let tenant = Tenant::new().await;
    let port = serve(Router::new().route("/", on_get(|| async { "hello" }))).await;
    let gate = Arc::new(Network::new().inside(&format!("api.test:{port}")).egress());
    let url = format!("http://api.test:{port}/");
    let definition = code(json!({"net": [format!("api.test:{port}")]}), &[]);
    let world = CallHostOps::new(gate.clone(), &tenant.call(definition, json!({}))).unwrap();
    let answer = world.fetch(get(&url), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "hello");
    let world = CallHostOps::new(gate.clone(), &tenant.call(code(json!({}), &[]), json!({}))).unwrap();
    assert_eq!(world.fetch(get(&url), None).await.map(|a| a.status).unwrap_err().name, "PermissionDenied");
    let bad = tenant.call(code(json!({"net": ["http://x"]}), &[]), json!({}));
    assert!(CallHostOps::new(gate, &bad).is_err());
}

#[tokio::test]
async fn requests_inherit_the_context_of_their_call() {
    let tenant = Tenant::new().await;
    let mut call = tenant.call(code(json!({"tools": ["t"]}), &[]), json!({}));
    call.profiles.add(Profile::Subagent);
    call.request.session = Some("s1".into());
    call.deadline = Some(Instant::now() + Duration::from_mins(1));
    let world = CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap();
    let write = async |tags: Value, context: Value| {
        let record = json!({"title": "x", "tags": tags, "schema_name": "tool.request.v1", "context": context});
        let created = world.api(create(record)).await.unwrap();
        tenant.get(&created["id"]).await
    };
    let traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let caller = trace::caller(Some(traced));
    let record = write(json!(["profile:main"]), json!({"tool": "t"})).with_context(caller.clone()).await;
    assert_eq!(record.tags, ["profile:main", "nested:1", "profile:subagent"]);
    assert_eq!(record.context["session"], "s1");
    let left = record.context["deadline_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    assert_eq!(record.context["traceparent"], traced, "without an exporter the caller's traceparent is passed on");

    // The tool's own values count if they restrict the request.
    let own = json!({"tool": "t", "session": "mine", "deadline_ms": 5});
    let record = write(json!(["profile:subagent", "profile:scheduled"]), own).await;
    assert_eq!(record.tags, ["profile:subagent", "profile:scheduled", "nested:1"]);
    assert_eq!((&record.context["session"], &record.context["deadline_ms"]), (&json!("mine"), &json!(5)));

    // A tool cannot choose its traceparent or extend its caller's deadline.
    let forged = json!({"tool": "t", "deadline_ms": 86_400_000, "traceparent": traced});
    let record = write(json!([]), forged.clone()).await;
    assert!(record.context["deadline_ms"].as_u64().unwrap() <= 60_000);
    assert_eq!(record.context.get("traceparent"), None);
    let other = "00-11111111111111111111111111111111-2222222222222222-00";
    let record = write(json!([]), forged).with_context(trace::caller(Some(other))).await;
    assert_eq!(record.context["traceparent"], other);

    let note = world.api(create(json!({"title": "x", "schema_name": "note.v1"}))).await.unwrap();
    let note = tenant.get(&note["id"]).await;
    assert!(note.context.is_empty(), "a note is not a request: {note:?}");
}

#[tokio::test]
async fn records_of_a_bound_call_keep_and_extend_the_profiles() {
    let tenant = Tenant::new().await;
    let mut call = tenant.call(code(json!({}), &[]), json!({}));
    call.profiles.add(Profile::Subagent);
    let bound = CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap();
    let note = bound.api(create(json!({"title": "x", "tags": ["note"]}))).await.unwrap();
    assert_eq!(tenant.get(&note["id"]).await.tags, ["note", "profile:subagent"]);

    let scheduled = NewBreadcrumb { title: "x".into(), tags: vec!["profile:scheduled".into()], ..Default::default() };
    let id = tenant.breadcrumbs.create(scheduled, None).await.unwrap().id.to_string();
    let strip =
        |id: &str, version| ApiCall::UpdateBreadcrumb { id: id.into(), version, changes: json!({"tags": ["a"]}) };
    bound.api(strip(&id, 1)).await.unwrap();
    assert_eq!(tenant.get(&json!(id)).await.tags, ["a", "profile:subagent", "profile:scheduled"]);
    let free = world(&tenant, &[]);
    free.api(strip(&id, 2)).await.unwrap();
    assert_eq!(tenant.get(&json!(id)).await.tags, ["a"], "an unbound call can remove it");
}

#[tokio::test]
async fn call_without_deadline_session_and_trace_adds_none() {
    let tenant = Tenant::new().await;
    let closed = world(&tenant, &[]);
    let request = json!({"title": "x", "schema_name": "tool.request.v1", "context": {"tool": "t"}});
    let refused = closed.api(create(request)).await.unwrap_err();
    assert_eq!(refused.name, "PermissionDenied");
    assert_eq!(refused.message, "the tool cannot call other tools; add \"t\" to permissions.tools");
    let world = world_with(&tenant, json!({"tools": true}), &[]);
    let request = json!({"title": "x", "schema_name": "tool.request.v1", "context": {"tool": "t", "awaited": true}});
    let created = world.api(create(request)).await.unwrap();
    let mut record = tenant.get(&created["id"]).await;
    let parent = record.context.remove("parent").unwrap();
    assert!(parent.as_str().unwrap().parse::<uuid::Uuid>().is_ok(), "the request of the call that wrote it");
    assert_eq!((json!(record.context), record.tags), (json!({"tool": "t"}), vec!["nested:1".to_owned()]));
}

#[tokio::test]
async fn tools_cannot_write_records_of_the_runner() {
    let tenant = Tenant::new().await;
    let world = world(&tenant, &[]);
    for (schema, says) in [
        ("schedule.v1", "schedule_task"),
        ("a2a.agent.v1", "register_agent"),
        ("a2a.task.v1", "invoke_agent"),
        ("tool.progress.v1", "context.progress"),
        ("tool.log.v1", "console.log"),
        ("tool.shadow.v1", "runners count"),
        ("tool.catalog.v1", "updates it when tools change"),
        ("tool.runner.v1", "each runner publishes its own"),
    ] {
        let mine = NewBreadcrumb { title: "x".into(), schema_name: Some(schema.into()), ..Default::default() };
        let id = tenant.breadcrumbs.create(mine, None).await.unwrap().id.to_string();
        let note = world.api(create(json!({"title": "x"}))).await.unwrap()["id"].as_str().unwrap().to_owned();
        let (become_one, change) = (json!({"schema_name": schema}), json!({"title": "y"}));
        for call in [
            create(json!({"title": "x", "schema_name": schema})),
            ApiCall::UpdateBreadcrumb { id: note, version: 1, changes: become_one },
            ApiCall::UpdateBreadcrumb { id: id.clone(), version: 1, changes: change },
            ApiCall::DeleteBreadcrumb { id },
        ] {
            let error = refused(&world, call).await;
            assert_eq!(error.name, "PermissionDenied");
            assert!(error.message.contains(says), "{error}");
        }
    }
}

#[derive(Default)]
struct RecordedProgress(Mutex<Vec<(Option<f64>, String)>>);

impl ProgressSink for RecordedProgress {
    fn report(&self, fraction: Option<f64>, message: &str) {
        self.0.lock().unwrap().push((fraction, message.to_owned()));
    }
}

#[tokio::test]
async fn progress_is_one_line_without_secrets() {
    let tenant = Tenant::new().await;
    let recorded = Arc::new(RecordedProgress::default());
    let mut call = tenant.call(code(json!({}), &["KEY"]), json!({}));
    let held = HeldSecret { name: "KEY".into(), value: "hunter2-hunter2".into(), hosts: vec![], readable: true };
    call.secrets = Arc::new(Vault::new(vec![held]).unwrap());
    call.progress = recorded.clone();
    let world = CallHostOps::new(Arc::new(Network::new().egress()), &call).unwrap();
    world.progress(Some(0.5), "half of\nhunter2-hunter2\u{1b}[31m\0 is done\n");
    world.progress(None, "");
    let recorded = recorded.0.lock().unwrap().clone();
    assert_eq!(recorded, [(Some(0.5), "half of [secret KEY] [31m  is done".into()), (None, String::new())]);
}

/// No name is resolved either: a run before the gate opens must not leak anything.
#[tokio::test]
async fn no_effect_before_the_gate_opens() {
    let tenant = Tenant::new().await;
    let network = Arc::new(Network::new().egress());
    let note = || create(json!({"title": "A note", "schema_name": "note.v1", "context": {}}));
    let fetch = || FetchRequest {
        method: "GET".into(),
        url: "http://nowhere.test/".into(),
        headers: Vec::new(),
        redirect: Redirect::Follow,
    };
    let world_of = |effect_gate| {
        let call = ToolCall {
            effect_gate,
            ..tenant.call(code(json!({"net": ["nowhere.test"], "tools": true}), &[]), json!({}))
        };
        CallHostOps::new(network.clone(), &call).unwrap()
    };

    let (gives, waits) = EffectGate::closed();
    let world = world_of(waits);
    let mut writes = world.api(note());
    let mut fetches = world.fetch(fetch(), None);
    let calls = world.api(ApiCall::CallTool { tool: "t".into(), input: json!({}), options: json!({}) });
    let all = futures::future::join3(&mut writes, &mut fetches, calls);
    assert!(tokio::time::timeout(Duration::from_millis(50), all).await.is_err(), "they wait");
    assert!(tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema("tool.request.v1")).await.unwrap().is_empty());
    assert!(tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema("note.v1")).await.unwrap().is_empty());
    gives.open();
    assert_eq!(writes.await.unwrap()["version"], 1);
    assert_ne!(fetches.await.err().unwrap().message, "the request was not written");

    let (gives, waits) = EffectGate::closed();
    let world = world_of(waits);
    drop(gives);
    assert_eq!(refused(&world, note()).await.message, "the request was not written");
    assert_eq!(world.fetch(fetch(), None).await.err().unwrap().message, "the request was not written");
    assert_eq!(tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema("note.v1")).await.unwrap().len(), 1);
}

/// The timeline has hosts, sizes and outcomes, and no text that the tool sent or got.
#[tokio::test]
async fn a_timeline_has_each_request_and_each_operation() {
    let tenant = Tenant::new().await;
    let port = serve(Router::new().route("/secret-path", on_get(|| async { "twelve bytes" }))).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let debug = CallDebug::begin();
    let permissions = json!({"net": [format!("api.test:{port}")]});
    let call = ToolCall { debug: Some(debug.clone()), ..tenant.call(code(permissions, &[]), json!({})) };
    let world = CallHostOps::new(Arc::new(network.egress()), &call).unwrap();
    let answer = world.fetch(get(format!("http://api.test:{port}/secret-path?key=hidden")), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "twelve bytes");
    assert!(world.fetch(get("http://elsewhere.test/secret-path"), None).await.is_err());
    world.api(create(json!({"title": "hidden"}))).await.unwrap();
    refused(&world, ApiCall::GetBreadcrumb { id: "hidden".into() }).await;
    for _ in 0..300 {
        refused(&world, ApiCall::DeleteBreadcrumb { id: "hidden".into() }).await;
    }
    let summary = Value::Object(debug.summary());
    let steps = summary["timeline"].as_array().unwrap();
    assert_eq!((steps.len(), &summary["timeline_omitted"]), (200, &json!(104)));
    let mut first = steps[..4].to_vec();
    let mut last = 0.0;
    for step in &mut first {
        let (at, took) = (step["at_ms"].take().as_f64().unwrap(), step["ms"].take().as_f64().unwrap());
        assert!(at >= last && took >= 0.0, "{steps:?}");
        last = at;
    }
    let fetch = |host: &str, port: u16, outcome: &str, status: Option<u16>, read: u64| {
        json!({"kind": "fetch", "at_ms": null, "ms": null, "method": "GET", "host": host, "port": port,
            "outcome": outcome, "status": status, "bytes_out": 0, "bytes_in": read})
    };
    let api = |operation: &str, outcome: &str| json!({"kind": "api", "at_ms": null, "ms": null, "operation": operation, "outcome": outcome});
    let expected = [
        fetch("api.test", port, "answered", Some(200), 12),
        fetch("elsewhere.test", 80, "refused", None, 0),
        api("createBreadcrumb", "ok"),
        api("getBreadcrumb", "InvalidArguments"),
    ];
    assert_eq!(first, expected);
    assert!(!summary.to_string().contains("hidden") && !summary.to_string().contains("secret-path"));
}
