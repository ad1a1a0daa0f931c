use rcrt_breadcrumb::Role;
use serde_json::{Value, json};

use crate::harness::{World, answer};

fn tool(name: &str, schema: &str) -> Value {
    json!({"title": "a tool", "schema_name": schema, "context": {"name": name}})
}

#[tokio::test]
async fn a_secret_is_stored_rotated_decrypted_and_deleted() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let made = world.post("/secrets", &curator, json!({"name": "API_KEY", "value": "the first"})).await;
    assert_eq!((made.status.as_u16(), &made.json()["version"]), (201, &json!(1)));
    let id = made.json()["id"].as_str().unwrap().to_owned();
    world.post("/secrets", &curator, json!({"name": "API_KEY", "value": "another value"})).await.violation("name");

    let listed = world.get("/secrets", &runner).await.ok();
    assert_eq!(listed.json()[0]["name"], "API_KEY");
    assert!(!listed.text.contains("the first"));
    let tool = world.create(&curator, tool("weather", "tool.code.v1")).await;
    world.post(&format!("/secrets/{id}/grants"), &curator, json!({"tool_id": tool})).await.ok();
    let decrypt = async || {
        let body = json!({"reason": "a call", "tool_id": tool});
        let answer = world.post(&format!("/secrets/{id}/decrypt"), &runner, body).await.ok();
        assert_eq!(answer.header("cache-control"), "no-store");
        answer.json()["value"].clone()
    };
    assert_eq!(decrypt().await, "the first");
    let put = world.request("PUT", &format!("/secrets/{id}"), &curator).json(&json!({"value": "the second"}));
    assert_eq!(answer(put).await.ok().json()["version"], 2);
    assert_eq!(decrypt().await, "the second");
    world.post(&format!("/secrets/{id}/decrypt"), &runner, json!({"reason": " "})).await.violation("reason");
    answer(world.request("DELETE", &format!("/secrets/{id}"), &curator)).await.ok();
    answer(world.request("DELETE", &format!("/secrets/{id}"), &curator)).await.problem(404, "not_found");
    world.close().await;
}

#[tokio::test]
async fn secrets_are_listed_by_scope() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let scope = uuid::Uuid::new_v4().to_string();
    for (name, labels) in [("A_KEY", json!({})), ("B_KEY", json!({"scope_type": "workspace", "scope_id": scope}))] {
        let mut body = json!({"name": name, "value": "a long value"});
        body.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
        world.post("/secrets", &curator, body).await.ok();
    }
    let names = async |query: &str| {
        let listed = world.get(&format!("/secrets{query}"), &curator).await.ok().json();
        listed.as_array().unwrap().iter().map(|secret| secret["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["A_KEY", "B_KEY"]);
    assert_eq!(names("?scope_type=workspace").await, ["B_KEY"]);
    assert_eq!(names(&format!("?scope_id={scope}")).await, ["B_KEY"]);
    assert!(names("?scope_type=tool").await.is_empty());
    world.get("/secrets?scope_id=x", &curator).await.violation("scope_id");
    let body = json!({"name": "C_KEY", "value": "a long value", "scope_type": " "});
    world.post("/secrets", &curator, body).await.violation("scope_type");
    world.close().await;
}

#[tokio::test]
async fn a_secret_is_bound_granted_and_revoked() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (who, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let new = json!({"name": "KEY", "value": "a long value", "hosts": ["API.Example.com."]});
    let made = world.post("/secrets", &curator, new).await.ok().json();
    assert_eq!(
        (&made["hosts"], &made["readable"], &made["tools"]),
        (&json!(["api.example.com"]), &json!(false), &json!([]))
    );
    let path = format!("/secrets/{}", made["id"].as_str().unwrap());
    let put = async |body: Value| answer(world.request("PUT", &path, &curator).json(&body)).await;

    let changed = put(json!({"hosts": ["*.example.com:8443"], "readable": true})).await.ok().json();
    assert_eq!((&changed["hosts"], &changed["readable"]), (&json!(["*.example.com:8443"]), &json!(true)));
    assert_eq!(changed["version"], 1, "the value is the same");
    put(json!({"value": "short"})).await.ok();
    put(json!({"readable": false})).await.violation("value");
    put(json!({"readable": false, "value": "long enough"})).await.ok();

    let weather = world.create(&curator, tool("weather", "tool.code.v1")).await;
    let grants = format!("{path}/grants");
    let decrypt = async |token: &str, body: Value| world.post(&format!("{path}/decrypt"), token, body).await;
    let for_weather = json!({"reason": "a call", "tool_id": weather});
    decrypt(&runner, for_weather.clone()).await.problem(403, "forbidden");
    let granted = world.post(&grants, &curator, json!({"tool": "weather"})).await.ok().json();
    let grant = &granted["tools"][0];
    assert_eq!((&grant["tool_id"], &grant["tool"]), (&json!(weather), &json!("weather")));
    assert_eq!(grant["granted_by"], json!(who.id));
    assert_eq!(world.post(&grants, &curator, json!({"tool_id": weather})).await.ok().json(), granted);
    assert_eq!(decrypt(&runner, for_weather.clone()).await.ok().json()["value"], "long enough");
    // Only a curator can read a value without naming a tool.
    decrypt(&runner, json!({"reason": "a look"})).await.problem(403, "forbidden");
    decrypt(&runner, json!({"reason": "a look", "tool_id": null})).await.problem(403, "forbidden");
    assert_eq!(decrypt(&curator, json!({"reason": "a look"})).await.ok().json()["value"], "long enough");
    assert_eq!(world.get("/secrets", &runner).await.ok().json()[0]["tools"][0]["tool"], "weather");

    let grant = format!("{grants}/{weather}");
    let revoked = answer(world.request("DELETE", &grant, &curator)).await.ok().json();
    assert_eq!(revoked["tools"], json!([]));
    let problem = answer(world.request("DELETE", &grant, &curator)).await.problem(404, "not_found");
    assert_eq!(problem["what"], "grant");
    decrypt(&runner, for_weather).await.problem(403, "forbidden");
    world.close().await;
}

#[tokio::test]
async fn a_grant_by_name_requires_a_unique_tool() {
    let world = World::start().await;
    let curator = world.token(&[Role::Curator]).await;
    let made = world.post("/secrets", &curator, json!({"name": "KEY", "value": "a long value"})).await.ok().json();
    let grants = format!("/secrets/{}/grants", made["id"].as_str().unwrap());
    let first = world.create(&curator, tool("weather", "tool.v1")).await;
    let second = world.create(&curator, tool("weather", "tool.code.v1")).await;
    let message = world.post(&grants, &curator, json!({"tool": "weather"})).await.violation("tool");
    assert!(message.contains(&first.to_string()) && message.contains(&second.to_string()), "{message}");
    world.post(&grants, &curator, json!({"tool_id": second})).await.ok();
    let note = world.create(&curator, crate::harness::note("weather")).await;
    world.post(&grants, &curator, json!({"tool_id": note})).await.violation("tool_id");
    let unknown = uuid::Uuid::new_v4();
    let problem = world.post(&grants, &curator, json!({"tool_id": unknown})).await.problem(404, "not_found");
    assert_eq!((&problem["what"], &problem["id"]), (&json!("tool"), &json!(unknown)));
    world.close().await;
}

#[tokio::test]
async fn only_a_curator_can_change_a_tool_with_a_grant() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (_, emitter) = world.agent(tenant, &[Role::Emitter]).await;
    let made = world.post("/secrets", &curator, json!({"name": "KEY", "value": "a long value"})).await.ok().json();
    let weather = world.create(&emitter, tool("weather", "tool.code.v1")).await;
    let grants = format!("/secrets/{}/grants", made["id"].as_str().unwrap());
    world.post(&grants, &curator, json!({"tool_id": weather})).await.ok();
    let change = |token: &str| {
        let request = world.request("PATCH", &format!("/breadcrumbs/{weather}"), token).header("If-Match", "\"1\"");
        answer(request.json(&json!({"context": {"name": "weather", "code": "theirs"}})))
    };
    let problem = change(&emitter).await.problem(403, "forbidden");
    assert!(problem["detail"].as_str().unwrap().contains("KEY"), "{problem}");
    change(&curator).await.ok();
    // A runner deletes on behalf of the tools that it runs.
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let delete = |token: &str| answer(world.request("DELETE", &format!("/breadcrumbs/{weather}"), token));
    for token in [&emitter, &runner] {
        let problem = delete(token).await.problem(403, "forbidden");
        assert!(problem["detail"].as_str().unwrap().contains("KEY"), "{problem}");
    }
    delete(&curator).await.ok();
    assert_eq!(world.get("/secrets", &curator).await.ok().json()[0]["tools"], json!([]));
    world.close().await;
}
