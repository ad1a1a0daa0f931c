//! Validating a tool without writing it, and publishing drafts.

use rcrt_breadcrumb::{PublishRule, Role, Tenancy};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{World, answer};

fn spec(source: &str) -> Value {
    json!({
        "name": "double",
        "description": "Doubles a number.",
        "code": {"language": "typescript", "source": source},
        "input_schema": {"type": "object", "properties": {"n": {"type": "number", "description": "The number."}}},
        "output_schema": {"type": "object", "properties": {"n": {"type": "number", "description": "Twice it."}}},
        "examples": [{"description": "Two", "input": {"n": 1}, "output": {"n": 2}}],
    })
}

const GOOD: &str = "export async function execute(input: { n: number }) { return { n: input.n * 2 }; }";

fn record(name: &str) -> Value {
    let mut context = spec(GOOD);
    context["name"] = json!(name);
    json!({"title": name, "schema_name": "tool.code.v1", "context": context, "tags": ["kept"]})
}

#[tokio::test]
async fn a_tool_is_validated_without_being_written() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    let good = world.post("/tools/validate", &token, json!({"tool_spec": spec(GOOD)})).await.ok().json();
    assert_eq!((&good["valid"], &good["validation"]["errors"]), (&json!(true), &json!([])), "{good}");
    assert!(good["definition_hash"].as_str().unwrap().starts_with("sha256:"), "{good}");

    let bad = spec("export async function execute(input) {\n  return eval(input.n);\n}");
    let bad = world.post("/tools/validate", &token, json!({"tool_spec": bad})).await.ok().json();
    let error = &bad["validation"]["errors"][0];
    assert_eq!((&bad["valid"], &error["rule"], &error["line"]), (&json!(false), &json!("no-eval"), &json!(2)), "{bad}");
    assert_eq!(error["field"], "code.source");
    assert!(error["fix"].as_str().unwrap().contains("JSON.parse"), "{bad}");
    assert_ne!(bad["definition_hash"], good["definition_hash"]);

    // A field that cannot be read is a finding like the others.
    let unreadable = json!({"tool_spec": {"name": 7}});
    let unreadable = world.post("/tools/validate", &token, unreadable).await.ok().json();
    let error = &unreadable["validation"]["errors"][0];
    assert_eq!((&error["rule"], &error["field"]), (&json!("field"), &json!("name")), "{unreadable}");
    world.post("/tools/validate", &token, json!({"tool_spec": 7})).await.violation("tool_spec");
    world.post("/tools/validate", &token, json!({"tool_spec": {}, "mode": "create"})).await.violation("mode");

    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    assert_eq!(world.get("/breadcrumbs", &curator).await.ok().json(), json!([]));
    world.close().await;
}

#[tokio::test]
async fn the_types_of_a_tool_are_made_from_its_schemas() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Caller]).await;
    let types = async |body: Value| {
        let found = world.post("/tools/types", &token, body).await.ok().json();
        found["types"].as_str().unwrap().to_owned()
    };
    let mut spec = spec(GOOD);
    spec["required_secrets"] = json!(["KEY"]);
    let own = types(json!({"tool_spec": spec})).await;
    for declared in ["type Input = {", "type Output = {", "n?: number;", "type Context = RcrtContext<\"KEY\">;"] {
        assert!(own.contains(declared), "{declared}: {own}");
    }
    // While its author types, fields are missing or of another kind.
    let unfinished = types(json!({"tool_spec": {"input_schema": 7, "required_secrets": "KEY"}})).await;
    assert_eq!(unfinished, "type Input = unknown;\ntype Output = unknown;\ntype Context = RcrtContext<never>;\n");
    let shared = types(json!({})).await;
    assert!(shared.contains("interface RcrtContext<") && shared.contains("declare namespace tools {"), "{shared}");
    world.post("/tools/types", &token, json!({"tool_spec": 7})).await.violation("tool_spec");
    world.close().await;
}

/// As the runners decide it. A curator's tool waits for its private hosts.
#[tokio::test]
async fn a_private_host_is_valid_if_every_live_runner_allows_it() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, writer) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let mut spec = spec(GOOD);
    spec["permissions"] = json!({"net": ["localhost:11434"]});
    let found = async |token: &str| {
        let found = world.post("/tools/validate", token, json!({"tool_spec": spec})).await.ok().json();
        let rules = |kind: &str| {
            let findings = found["validation"][kind].as_array().unwrap().iter();
            findings.map(|one| one["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found["valid"], json!(rules("errors").is_empty()), "{found}");
        (rules("errors"), rules("warnings"))
    };
    let report = async |id: Uuid, hosts: Value, draining: bool| {
        let slots = json!({"worker": {"used": 0, "free": 1}, "waiting": {"used": 0, "free": 1}});
        let report = json!({"runner_id": id, "lease_ms": 600_000, "applied": 0, "host": "h", "version": "1", "slots": slots,
            "started_at": "2026-01-31T12:00:00Z", "draining": draining, "allowed_private_hosts": hosts});
        world.post("/runners", &runner, report).await.ok();
    };
    let (none, private) = (Vec::<String>::new(), vec!["net-host".to_owned()]);
    let (first, second) = (Uuid::new_v4(), Uuid::new_v4());
    assert_eq!(found(&writer).await, (private.clone(), none.clone()), "no runner is live");
    assert_eq!(found(&curator).await, (none.clone(), private.clone()));

    report(first, json!(["double=localhost:11434", "10.0.0.7"]), false).await;
    assert_eq!(found(&writer).await, (none.clone(), none.clone()));
    assert_eq!(found(&curator).await, (none.clone(), none.clone()));
    let listed = world.get("/runners", &curator).await.ok().json();
    assert_eq!(listed[0]["allowed_private_hosts"], json!(["double=localhost:11434", "10.0.0.7"]));

    report(second, json!(["other=localhost:11434"]), false).await;
    assert_eq!(found(&writer).await, (private.clone(), none.clone()), "the second runner refuses it");
    report(second, json!([]), true).await;
    assert_eq!(found(&writer).await, (none.clone(), none.clone()), "one that drains takes no more calls");

    // A draft with a host that no runner allows can be published: it waits.
    spec["permissions"]["net"] = json!(["localhost:1"]);
    let draft = json!({"title": "double", "schema_name": "tool.code.v1", "context": spec, "tags": ["tool:draft"]});
    world.create(&writer, draft).await;
    world.post("/tools/double/publish", &curator, json!({})).await.ok();
    world.close().await;
}

#[tokio::test]
async fn a_curator_publishes_drafts() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (author, writer) = world.agent(tenant, &[Role::Emitter]).await;
    let (_, other) = world.agent(tenant, &[Role::Emitter]).await;
    // A curator sets what publishes the tools of its tenant.
    let name = json!({"name": Uuid::new_v4().to_string(), "publish": "curator"});
    let path = format!("/tenants/{tenant}");
    world.request("PUT", &path, &curator).json(&name).send().await.unwrap().error_for_status().unwrap();
    assert_eq!(world.get(&path, &curator).await.ok().json()["publish"], "curator");
    assert_eq!(world.store.tenant(tenant).await.unwrap().unwrap().publish, PublishRule::Curator);

    world.post("/tools/double/publish", &curator, json!({})).await.problem(404, "tool_not_found");
    let id = world.create(&writer, record("double")).await;
    world.post("/tools/double/publish", &writer, json!({})).await.problem(403, "forbidden");
    let stale = world.post("/tools/double/publish", &curator, json!({"version": 2})).await;
    assert_eq!(stale.problem(412, "version_conflict")["actual"], 1);
    let text = world.request("POST", "/tools/double/publish", &curator).header("content-type", "text/plain").body("{}");
    answer(text).await.problem(415, "unsupported_media_type");
    let done = world.post("/tools/double/publish", &curator, json!({"version": 1})).await.ok().json();
    assert_eq!(done, json!({"tool_id": id, "name": "double", "record_version": 2}));
    let published = world.get(&format!("/breadcrumbs/{id}/full"), &curator).await.ok().json();
    assert!(published["tags"].as_array().unwrap().iter().all(|tag| tag != "tool:draft"), "{published}");
    assert_eq!(published["updated_by"], json!(author.id), "it keeps its author");
    world.post("/tools/double/publish", &curator, json!({})).await.problem(404, "tool_not_found");

    // The name is taken, or several agents have a draft with it.
    world.create(&other, record("double")).await;
    assert!(world.post("/tools/double/publish", &curator, json!({})).await.violation("name").contains(&id.to_string()));
    world.create(&writer, record("both")).await;
    let second = world.create(&other, record("both")).await;
    world.post("/tools/both/publish", &curator, json!({})).await.violation("tool_id");
    world.post("/tools/both/publish", &curator, json!({"tool_id": second})).await.ok();
    // The body can be left out.
    world.create(&writer, record("alone")).await;
    answer(world.request("POST", "/tools/alone/publish", &curator)).await.ok();

    // What would not be offered is not published.
    let mut invalid = record("invalid");
    invalid["context"]["code"]["source"] = json!("export async function execute() { return eval('1'); }");
    world.create(&writer, invalid).await;
    world.post("/tools/invalid/publish", &curator, json!({})).await.violation("code.source");
    world.close().await;
}

#[tokio::test]
async fn a_definition_nested_without_end_is_refused_while_it_is_read() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let spec = format!("{{\"examples\": [{{\"input\": {nested}}}]}}");
    for (path, body) in [
        ("/tools/validate", format!("{{\"tool_spec\": {spec}}}")),
        ("/tools/test", format!("{{\"tool_spec\": {spec}}}")),
        ("/breadcrumbs", format!("{{\"title\": \"Deep\", \"context\": {{\"tool_spec\": {spec}}}}}")),
    ] {
        let request = world.request("POST", path, &token).header("content-type", "application/json").body(body);
        assert_eq!(request.send().await.unwrap().status(), 400, "{path}");
    }
    world.close().await;
}
