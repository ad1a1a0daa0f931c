//! Requests of RCRT's clients: accepted as RCRT does with `rcrt_compat`, and refused without.

use rcrt_breadcrumb::{Role, Tenancy};
use rcrt_server::AuthMode;
use serde_json::{Value, json};

use crate::harness::{World, answer, note};

async fn patch(world: &World, path: &str, token: &str, version: Option<&str>, body: Value) -> crate::harness::Answer {
    let request = world.request("PATCH", path, token).json(&body);
    answer(match version {
        Some(version) => request.header("If-Match", version),
        None => request,
    })
    .await
}

#[tokio::test]
async fn records_are_accepted_in_rcrts_looser_forms() {
    let (world, strict) = (World::start_for_rcrt(AuthMode::Keys).await, World::start().await);
    let (token, strictly) = (world.token(&Role::ALL).await, strict.token(&Role::ALL).await);
    let whole = json!({"title": "x", "schema_name": "page.v1", "tags": ["t"], "context": {"a": 1}, "visibility": "team", "sensitivity": "low"});
    for (given, wanted) in [
        (json!({"title": " "}), json!({"title": "page.v1"})),
        (json!({"title": "", "schema_name": null}), json!({"title": "Untitled"})),
        (json!({"title": "ä".repeat(600)}), json!({"title": "ä".repeat(500)})),
        (json!({"context": [1, 2]}), json!({"context": {"value": [1, 2]}})),
        (json!({"context": "text"}), json!({"context": {"value": "text"}})),
        (json!({"context": null}), json!({"context": {}})),
        (json!({"tags": null}), json!({"tags": []})),
        (json!({"visibility": "workspace"}), json!({"visibility": "team"})),
        (json!({"visibility": 5, "sensitivity": "medium"}), json!({"visibility": "team", "sensitivity": "low"})),
        (json!({"created_by": "me", "metadata": {"a": 1}}), json!({"title": "x"})),
    ] {
        let mut body = whole.as_object().unwrap().clone();
        body.extend(given.as_object().unwrap().clone());
        let body = Value::Object(body);
        assert_eq!(strict.post("/breadcrumbs", &strictly, body.clone()).await.status, 400, "{given}");
        let id = world.create(&token, body).await;
        let read = world.get(&format!("/breadcrumbs/{id}/full"), &token).await.ok().json();
        for (field, value) in wanted.as_object().unwrap() {
            assert_eq!(&read[field], value, "{given}");
        }
    }
    // Known fields keep their meaning, and a value that cannot be converted is refused with its
    // field.
    let secret = json!({"title": "x", "sensitivity": "secret", "visibility": "private", "more": 1});
    let id = world.create(&token, secret).await;
    let read = world.get(&format!("/breadcrumbs/{id}/full"), &token).await.ok().json();
    assert_eq!((&read["sensitivity"], &read["visibility"]), (&json!("secret"), &json!("private")));
    world.post("/breadcrumbs", &token, json!({"context": {}})).await.violation("title");
    world.post("/breadcrumbs", &token, json!({"title": "x", "more": 1, "tags": [5]})).await.violation("tags[0]");
    world.post("/breadcrumbs", &token, json!({"title": "x", "ttl": "tomorrow"})).await.violation("ttl");
    world.close().await;
    strict.close().await;
}

/// RCRT has no such route, so its clients need no looser form of it.
#[tokio::test]
async fn misspelled_fields_of_a_call_are_refused() {
    let world = World::start_for_rcrt(AuthMode::Keys).await;
    let token = world.token(&Role::ALL).await;
    for field in ["args", "request_id"] {
        let said = world.post("/tools/echo/invoke", &token, json!({field: "x"})).await.violation(field);
        assert!(said.contains("did you mean"), "{said}");
    }
    world.close().await;
}

#[tokio::test]
async fn an_update_returns_ok_and_can_overwrite() {
    let (world, strict) = (World::start_for_rcrt(AuthMode::Keys).await, World::start().await);
    let (token, strictly) = (world.token(&Role::ALL).await, strict.token(&Role::ALL).await);
    let path = format!("/breadcrumbs/{}", strict.create(&strictly, note("one")).await);
    // `ok` is next to the record's own fields, for every caller.
    let changed = patch(&strict, &path, &strictly, Some("1"), json!({"title": "two"})).await.ok();
    assert_eq!((changed.header("etag"), changed.json()["ok"].clone()), ("\"2\"", json!(true)));
    assert_eq!((changed.json()["title"].clone(), changed.json()["version"].clone()), (json!("two"), json!(2)));
    patch(&strict, &path, &strictly, None, json!({"title": "x"})).await.problem(428, "precondition_required");
    patch(&strict, &path, &strictly, Some("2"), json!({"title": "x", "more": 1})).await.violation("more");

    let path = format!("/breadcrumbs/{}", world.create(&token, note("one")).await);
    let changed = patch(&world, &path, &token, None, json!({"title": "two", "more": 1})).await.ok().json();
    assert_eq!((&changed["title"], &changed["version"], &changed["ok"]), (&json!("two"), &json!(2), &json!(true)));
    // A blank title and null change nothing.
    let blank = json!({"title": " ", "context": null, "visibility": "workspace", "tags": ["kept"]});
    let changed = patch(&world, &path, &token, Some("W/\"2\""), blank).await.ok().json();
    assert_eq!(
        (&changed["title"], &changed["context"], &changed["tags"]),
        (&json!("two"), &json!({"text": "one"}), &json!(["kept"]))
    );
    assert_eq!(changed["visibility"], "team");
    // A version in the request is still checked.
    patch(&world, &path, &token, Some("1"), json!({"title": "x"})).await.problem(412, "version_conflict");
    let absent = format!("/breadcrumbs/{}", uuid::Uuid::new_v4());
    patch(&world, &absent, &token, None, json!({"title": "x"})).await.problem(404, "not_found");
    world.close().await;
    strict.close().await;
}

#[tokio::test]
async fn all_updates_without_a_version_succeed() {
    let world = World::start_for_rcrt(AuthMode::Keys).await;
    let token = world.token(&Role::ALL).await;
    // A record that expires by its reads: an update is not a read.
    let once = json!({"title": "x", "ttl_type": "usage", "ttl_config": {"max_reads": 1}});
    let path = format!("/breadcrumbs/{}", world.create(&token, once).await);
    let (first, second, third) = tokio::join!(
        patch(&world, &path, &token, None, json!({"title": "a"})),
        patch(&world, &path, &token, None, json!({"description": "b"})),
        patch(&world, &path, &token, None, json!({"tags": ["c"]})),
    );
    for changed in [first, second, third] {
        changed.ok();
    }
    let read = world.get(&format!("{path}/full"), &token).await.ok().json();
    assert_eq!((&read["title"], &read["description"], &read["tags"]), (&json!("a"), &json!("b"), &json!(["c"])));
    assert_eq!(read["version"], 4);
    world.close().await;
}

#[tokio::test]
async fn unknown_parameters_and_fields_are_ignored_everywhere() {
    let (world, strict) = (World::start_for_rcrt(AuthMode::Keys).await, World::start().await);
    let (token, strictly) = (world.token(&Role::ALL).await, strict.token(&Role::ALL).await);
    world.create(&token, note("one")).await;
    for path in [
        "/breadcrumbs?sort=updated_at&owner_id=x&nn=10000",
        "/breadcrumbs/search?q=one&updated_since=now",
        "/agents?page=1",
    ] {
        assert!(!world.get(path, &token).await.ok().json().as_array().unwrap().is_empty(), "{path}");
        strict.get(path, &strictly).await.problem(400, "invalid");
    }
    // A known parameter is still validated.
    world.get("/breadcrumbs?limit=many&sort=x", &token).await.violation("limit");
    let selector = json!({"any_tags": ["a"], "sensitivity_in": ["low"], "context_match": [{"path": "$.a", "op": "eq", "value": 1, "note": "x"}]});
    strict.post("/subscriptions/selectors", &strictly, selector.clone()).await.problem(400, "invalid");
    let kept = world.post("/subscriptions/selectors", &token, selector).await.ok().json();
    assert_eq!(kept["selector"]["context_match"][0]["value"], 1, "{kept}");
    let many: serde_json::Map<String, Value> = (0..200).map(|n| (format!("f{n}"), json!(n))).collect();
    world.post("/subscriptions/selectors", &token, Value::Object(many)).await.violation("");
    world.post("/subscriptions/selectors", &token, json!([])).await.violation("");
    world.close().await;
    strict.close().await;
}

#[tokio::test]
async fn a_request_can_have_any_fields_and_session_id_is_its_session() {
    let (world, strict) = (World::start_for_rcrt(AuthMode::Keys).await, World::start().await);
    let (token, strictly) = (world.token(&Role::ALL).await, strict.token(&Role::ALL).await);
    let request = json!({"title": "Chat", "schema_name": "tool.request.v1", "tags": ["workspace:tools", "tool:request"],
        "context": {"tool": "chat", "input": {}, "source": "extension", "session_id": "s1", "args": [], "timeout": 5}});
    strict.post("/breadcrumbs", &strictly, request.clone()).await.violation("context.session_id");
    let id = world.create(&token, request).await;
    let written = world.get(&format!("/breadcrumbs/{id}"), &token).await.ok().json()["context"].clone();
    assert_eq!((&written["session"], &written["session_id"]), (&json!("s1"), &json!("s1")));
    assert_eq!(world.get(&format!("/calls/{id}"), &token).await.ok().json()["state"], "queued");
    // Fields that the runtime reads keep their rules.
    let wrong = json!({"title": "Chat", "schema_name": "tool.request.v1", "context": {"tool": "chat", "session": 5}});
    world.post("/breadcrumbs", &token, wrong).await.violation("context.session");
    world.close().await;
    strict.close().await;
}

#[tokio::test]
async fn a_short_secret_is_readable_and_any_name_is_accepted() {
    let (world, strict) = (World::start_for_rcrt(AuthMode::Keys).await, World::start().await);
    let (token, strictly) = (world.token(&[Role::Curator]).await, strict.token(&[Role::Curator]).await);
    let short = |name: &str| json!({"name": name, "value": "1234", "scope_type": "", "scope_id": null});
    strict.post("/secrets", &strictly, short("KEY")).await.violation("value");
    let made = world.post("/secrets", &token, short("my pin")).await.ok().json();
    assert_eq!((&made["name"], &made["readable"]), (&json!("my pin"), &json!(true)));
    let long = json!({"name": "openrouter-api.key", "value": "a long value", "scope_type": "workspace"});
    assert_eq!(world.post("/secrets", &token, long.clone()).await.ok().json()["readable"], false);
    let rule = strict.post("/secrets", &strictly, long).await.violation("name");
    assert!(rule.starts_with("must be a letter or _, then letters, digits and _"), "{rule}");
    for (world, token) in [(&strict, &strictly), (&world, &token)] {
        world.post("/secrets", token, json!({"name": "a\"b", "value": "a long value"})).await.violation("name");
    }
    let kept = world.post("/secrets", &token, json!({"name": "K", "value": "a long value"})).await.ok().json();
    let path = format!("/secrets/{}", kept["id"].as_str().unwrap());
    let put = |body: Value| answer(world.request("PUT", &path, &token).json(&body));
    put(json!({"value": "1234", "readable": false})).await.violation("value");
    assert_eq!(put(json!({"value": "1234"})).await.ok().json()["readable"], true);
    world.close().await;
    strict.close().await;
}

#[tokio::test]
async fn rcrts_ids_and_roles_get_a_token_and_an_agent() {
    let world = World::start_for_rcrt(AuthMode::Open).await;
    let ask = json!({"owner_id": "00000000-0000-0000-0000-000000000001", "agent_id": "00000000-0000-0000-0000-000000000AAA",
        "roles": ["curator"], "ttl_sec": 3600, "client": "dashboard"});
    let given = world.post("/auth/token", "", ask).await.ok().json();
    let token = given["token"].as_str().unwrap();
    let agents = world.get("/agents", token).await.ok().json();
    assert!(agents.as_array().unwrap().iter().any(|agent| agent["id"] == given["agent_id"]), "{agents}");
    // It can get more roles than it had at first.
    let more = json!({"owner_id": given["owner_id"], "agent_id": given["agent_id"], "roles": ["curator", "emitter", "subscriber"]});
    assert_eq!(world.post("/auth/token", "", more).await.ok().json()["roles"].as_array().unwrap().len(), 3);
    assert!(!world.store.tenants().await.unwrap().is_empty());
    world.close().await;
}

#[tokio::test]
async fn a_secret_in_a_tools_configuration_is_granted() {
    let (world, strict) = (World::start_for_rcrt(AuthMode::Keys).await, World::start().await);
    let code = "export async function execute() { return await fetch('https://api.example.com/v1'); }";
    let tool = json!({"title": "Chat", "schema_name": "tool.code.v1", "tags": ["tool", "tool:chat"],
        "context": {"name": "chat", "code": {"language": "typescript", "source": code}, "permissions": {"net": true}}});
    let config = |name: &str, secret: &str| {
        json!({"title": "chat Configuration", "schema_name": "tool.config.v1", "tags": ["tool:config", "tool:chat"],
            "context": {name: "chat", "config": {"apiKeySecretId": secret, "model": "m"}, "last_updated": "now"}})
    };
    for (world, is_rcrt) in [(&world, true), (&strict, false)] {
        let tenant = world.tenant().await;
        let (_, curator) = world.agent(tenant, &Role::ALL).await;
        let (_, emitter) = world.agent(tenant, &[Role::Emitter, Role::Subscriber]).await;
        let tool = world.create(&curator, tool.clone()).await;
        let secret = |name: &str| json!({"name": name, "value": "sk-0123456789", "scope_type": "workspace"});
        let mut ids = Vec::new();
        for name in ["first", "second", "third"] {
            let made = world.post("/secrets", &curator, secret(name)).await.ok().json();
            ids.push(made["id"].as_str().unwrap().to_owned());
        }
        let granted = async || {
            let listed = world.get("/secrets", &curator).await.ok().json();
            let mut found = Vec::new();
            for one in listed.as_array().unwrap() {
                if one["tools"][0]["tool_id"] == json!(tool) {
                    found.push((one["name"].as_str().unwrap().to_owned(), one["hosts"].clone()));
                }
            }
            found
        };
        let bound = |name: &str| (name.to_owned(), json!(["api.example.com"]));
        // An agent that cannot grant secrets does not grant any by writing a record.
        world.create(&emitter, config("tool_name", &ids[0])).await;
        assert_eq!(granted().await, []);
        let written = world.create(&curator, config("tool_name", &ids[0])).await;
        // By an update, and in RCRT's second form.
        let changes = json!({"context": config("toolName", &ids[1])["context"]});
        patch(world, &format!("/breadcrumbs/{written}"), &curator, Some("1"), changes).await.ok();
        // An unknown secret, and a tool that does not exist: the record is written anyway.
        world.create(&curator, config("tool_name", &uuid::Uuid::new_v4().to_string())).await;
        let mut absent = config("tool_name", &ids[2]);
        absent["context"]["tool_name"] = json!("absent");
        world.create(&curator, absent).await;
        let wanted = if is_rcrt { vec![bound("first"), bound("second")] } else { vec![] };
        assert_eq!(granted().await, wanted);
    }
    world.close().await;
    strict.close().await;
}

#[tokio::test]
async fn a_tool_that_is_written_after_its_configuration_gets_its_secrets() {
    let world = World::start_for_rcrt(AuthMode::Keys).await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &Role::ALL).await;
    let (_, emitter) = world.agent(tenant, &[Role::Emitter, Role::Subscriber]).await;
    let mut ids = Vec::new();
    for name in ["first", "second", "third"] {
        let secret = json!({"name": name, "value": "sk-0123456789", "scope_type": "workspace"});
        ids.push(world.post("/secrets", &curator, secret).await.ok().json()["id"].clone());
    }
    let config = |field: &str, secret: &Value| {
        json!({"title": "chat Configuration", "schema_name": "tool.config.v1", "tags": ["tool:config", "tool:chat"],
            "context": {field: "chat", "config": {"apiKeySecretId": secret}}})
    };
    world.create(&curator, config("tool_name", &ids[0])).await;
    world.create(&curator, config("toolName", &ids[1])).await;
    // An agent without the right to grant wrote one, and changed another.
    world.create(&emitter, config("tool_name", &ids[2])).await;
    let changed = world.create(&curator, config("tool_name", &ids[0])).await;
    let changes = json!({"context": config("tool_name", &ids[2])["context"]});
    patch(&world, &format!("/breadcrumbs/{changed}"), &emitter, Some("1"), changes).await.ok();

    let tool = json!({"title": "Chat", "schema_name": "tool.code.v1", "tags": ["tool", "tool:chat"],
        "context": {"name": "chat", "code": {"language": "typescript", "source": "export async function execute() {}"},
            "permissions": {"net": ["api.example.com"]}}});
    let granted = async |tool: uuid::Uuid| {
        let listed = world.get("/secrets", &curator).await.ok().json();
        let has_tool =
            |one: &&Value| one["tools"].as_array().unwrap().iter().any(|grant| grant["tool_id"] == json!(tool));
        let names = listed.as_array().unwrap().iter().filter(has_tool);
        names.map(|one| (one["name"].clone(), one["hosts"].clone())).collect::<Vec<_>>()
    };
    let delete = async |id: uuid::Uuid, token: &str| {
        answer(world.request("DELETE", &format!("/breadcrumbs/{id}"), token)).await.ok();
    };
    let bound = |name: &str| (json!(name), json!(["api.example.com"]));
    let foreign = world.create(&emitter, tool.clone()).await;
    assert_eq!(granted(foreign).await, []);
    delete(foreign, &emitter).await;
    for _ in 0..2 {
        let id = world.create(&curator, tool.clone()).await;
        assert_eq!(granted(id).await, [bound("first"), bound("second")]);
        delete(id, &curator).await;
    }
    world.close().await;
}
