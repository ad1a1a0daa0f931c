//! The role `caller` and allow lists over HTTP. The rights to records are tested in `conformance`,
//! the refusal of a call in `runner`.

use rcrt_breadcrumb::{Annotations, Catalog, Registration, Role, Tenancy, ToolSource};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::events::Wire;
use crate::harness::{World, answer, note, request_for};
use crate::tools;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// A caller with this allow list, made by the curator. Returns its id and a token.
async fn caller(world: &World, curator: &str, tenant: Uuid, tools: Value) -> (String, String) {
    let body = json!({"name": Uuid::new_v4(), "roles": ["caller"], "tools": tools});
    let made = world.post("/agents", curator, body).await.ok().json();
    assert_eq!(made["tools"], tools);
    let (id, key) = (made["id"].as_str().unwrap().to_owned(), made["agent_key"].clone());
    let asked = json!({"owner_id": tenant, "agent_id": id, "agent_key": key});
    let token = world.post("/auth/token", "", asked).await.ok().json()["token"].as_str().unwrap().to_owned();
    (id, token)
}

#[tokio::test]
async fn a_caller_sees_the_tools_on_its_list() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, free) = world.agent(tenant, &[Role::Caller]).await;
    tools::offer(&world, tenant).await;
    let all = world.get("/tools", &free).await.ok().json();
    assert_eq!(names(&all["tools"]), ["cancel_scheduled_task", "echo", "say", "weather.now"]);
    assert_eq!(names(&all["waiting"]), ["web_search"]);

    let (id, token) = caller(&world, &curator, tenant, json!({"names": ["echo"], "sources": [], "tags": []})).await;
    let seen = world.get("/tools", &token).await.ok().json();
    assert_eq!((names(&seen["tools"]), names(&seen["waiting"])), (vec!["echo"], vec![]));
    for format in ["openai", "openai-responses", "anthropic", "mcp"] {
        let text = world.get(&format!("/tools?format={format}"), &token).await.ok().text;
        assert!(text.contains("echo") && !text.contains("weather"), "{text}");
    }
    world.get("/tools/echo", &token).await.ok();
    for hidden in ["say", "web_search", "sey"] {
        let problem = world.get(&format!("/tools/{hidden}"), &token).await.problem(404, "tool_not_found");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("the tool {hidden} is not on the allow list")), "{detail}");
    }
    // A change is seen at once.
    let change = json!({"roles": ["caller"], "tools": {"names": ["web_search"], "sources": ["rest"]}});
    world.post(&format!("/agents/{id}"), &curator, change).await.ok();
    let seen = world.get("/tools", &token).await.ok().json();
    assert_eq!((names(&seen["tools"]), names(&seen["waiting"])), (vec![], vec!["web_search"]));
    world.post(&format!("/agents/{id}"), &curator, json!({"roles": ["caller"]})).await.ok();
    assert_eq!(world.get(&format!("/agents/{id}"), &curator).await.ok().json()["tools"]["sources"], json!(["rest"]));
    world.post(&format!("/agents/{id}"), &curator, json!({"roles": ["caller"], "tools": null})).await.ok();
    assert_eq!(world.get("/tools", &token).await.ok().json(), all);
    world.close().await;
}

#[tokio::test]
async fn a_list_selects_by_source_and_by_tag() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (runner, _) = world.agent(tenant, &[Role::Runner]).await;
    let tool = |name: &str, source: ToolSource, tags: &[&str]| Registration {
        name: name.into(),
        description: String::new(),
        parameters: json!(true),
        output_schema: None,
        source,
        annotations: Annotations::default(),
        deprecated: None,
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        tool_id: Uuid::new_v4(),
        tool_version: 1,
    };
    let offered = vec![
        tool("files", ToolSource::Mcp("files".into()), &["io"]),
        tool("mail", ToolSource::Mcp("mail".into()), &["io", "weather"]),
        tool("native", ToolSource::Native, &["weather"]),
    ];
    let identity = rcrt_breadcrumb::Identity {
        owner_id: tenant,
        agent_id: runner.id,
        roles: vec![Role::Runner],
        profile: rcrt_breadcrumb::Profile::Main,
    };
    let store = world.store.acting_as(identity);
    for record in Catalog::new(offered, Vec::new()).records() {
        store.create(record, None).await.unwrap();
    }
    for (list, expected) in [
        (json!({"names": [], "sources": ["mcp"], "tags": []}), vec!["files", "mail"]),
        (json!({"names": [], "sources": ["mcp:mail"], "tags": []}), vec!["mail"]),
        (json!({"names": [], "sources": ["native"], "tags": []}), vec!["native"]),
        (json!({"names": [], "sources": [], "tags": ["weather"]}), vec!["mail", "native"]),
        (json!({"names": ["files"], "sources": ["sandbox"], "tags": ["weather"]}), vec!["files", "mail", "native"]),
    ] {
        let (_, token) = caller(&world, &curator, tenant, list).await;
        assert_eq!(names(&world.get("/tools", &token).await.ok().json()["tools"]), expected);
    }
    world.close().await;
}

#[tokio::test]
async fn an_invalid_list_is_refused_with_its_place() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    for (roles, list, field) in [
        (json!(["caller"]), json!({}), "tools"),
        (json!(["caller"]), json!({"sources": ["nowhere else"]}), "tools.sources[0]"),
        (json!(["caller"]), json!({"names": [""]}), "tools.names[0]"),
        (json!(["caller"]), json!({"name": ["echo"]}), "tools.name"),
        (json!(["caller", "emitter"]), json!({"names": ["echo"]}), "tools"),
        (json!(["subscriber"]), json!({"names": ["echo"]}), "tools"),
    ] {
        let body = json!({"name": Uuid::new_v4(), "roles": roles, "tools": list});
        let refused = world.post("/agents", &curator, body).await;
        assert!(!refused.violation(field).is_empty());
    }
    // A role that ends the list's effect is refused, too.
    let (id, _) = caller(&world, &curator, tenant, json!({"names": ["echo"], "sources": [], "tags": []})).await;
    let path = format!("/agents/{id}");
    let why = world.post(&path, &curator, json!({"roles": ["caller", "emitter"]})).await.violation("tools");
    assert!(why.contains("remove the list (tools: null"), "{why}");
    world.post(&path, &curator, json!({"roles": ["caller", "emitter"], "tools": null})).await.ok();
    world.close().await;
}

#[tokio::test]
async fn a_runner_gets_the_list_with_the_call() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let list = json!({"names": ["echo"], "sources": [], "tags": []});
    let (id, token) = caller(&world, &curator, tenant, list.clone()).await;
    let claim = async || {
        let asked = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 60_000});
        world.post("/calls/claim", &curator, asked).await.ok().json()
    };
    world.create(&token, request_for("anything")).await;
    assert_eq!(claim().await[0]["allowed_tools"], list);
    let asked = world.request("POST", "/tools/other/invoke", &token).header("Prefer", "respond-async");
    assert_eq!(answer(asked.json(&json!({}))).await.status.as_u16(), 202);
    // The list at the time of the claim counts.
    world.post(&format!("/agents/{id}"), &curator, json!({"roles": ["caller"], "tools": null})).await.ok();
    assert!(claim().await[0].get("allowed_tools").is_none());
    world.close().await;
}

#[tokio::test]
async fn a_caller_follows_its_own_calls_over_http_and_nothing_else() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Caller]).await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let mut wire = Wire::open(world.request("GET", "/events/stream", &token)).await;
    wire.next().await.unwrap();
    world.create(&curator, note("of others")).await;
    world.create(&curator, request_for("of others")).await;
    let own = world.create(&token, request_for("mine")).await;
    let heard = loop {
        let (_, event) = wire.next().await.unwrap();
        if event["type"] != "ping" {
            break event;
        }
    };
    assert_eq!(heard["breadcrumb_id"], json!(own));
    let listed = world.get("/calls", &token).await.ok().json();
    let ids: Vec<_> = listed["calls"].as_array().unwrap().iter().map(|call| &call["request"]).collect();
    assert_eq!(ids, [&json!(own)]);
    assert_eq!(world.get("/calls", &curator).await.ok().json()["calls"].as_array().unwrap().len(), 2);
    for (method, path, body) in [
        ("POST", "/breadcrumbs", note("mine")),
        ("PATCH", &*format!("/breadcrumbs/{own}"), json!({"title": "x"})),
        ("DELETE", &*format!("/breadcrumbs/{own}"), json!({})),
        ("POST", "/acl/grant", json!({"breadcrumb_id": own, "grantee_owner_id": tenant, "action": "update"})),
        ("GET", "/audit", json!({})),
        ("GET", "/calls/stats", json!({})),
        ("GET", "/secrets", json!({})),
        ("POST", "/calls/claim", json!({"runner_id": own, "limit": 1, "lease_ms": 5000})),
    ] {
        let refused = answer(world.request(method, path, &token).header("If-Match", "1").json(&body)).await;
        refused.problem(403, "forbidden");
    }
    world.close().await;
}
