//! What a client discovers: the server, tools, prompts, resources.

use rcrt_breadcrumb::{AllowedTools, NewAgent, Profile, Registration, Role, Tenancy};
use rcrt_server::{AllowedHosts, AuthMode, PublicUrl};
use serde_json::{Value, json};

use super::client::{self, MODERN, answer, create, error, modern, post, result};
use crate::harness::{World, note};

fn texts<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap()).collect()
}

#[tokio::test]
async fn discovery_names_both_eras_and_what_is_served() {
    let scene = client::scene(Vec::new()).await;
    let found = result(modern(&scene.world, &scene.token, "server/discover", json!({}))).await;
    let versions: Vec<&str> = found["supportedVersions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(versions.contains(&MODERN) && versions.contains(&"2025-11-25"), "{found}");
    for capability in ["tools", "prompts", "resources"] {
        assert_eq!(found["capabilities"][capability]["listChanged"], true, "{found}");
    }
    assert_eq!(found["capabilities"]["resources"]["subscribe"], true);
    assert!(found["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object());
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "rcrt");
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
    // An unknown method has a status of its own in this era.
    let (status, refused) = error(modern(&scene.world, &scene.token, "no/method", json!({}))).await;
    assert_eq!((status, &refused["code"]), (404, &json!(-32601)));
    scene.world.close().await;
}

#[tokio::test]
async fn the_tools_are_those_that_the_agent_can_call_with_their_schemas() {
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let described = Registration {
        output_schema: Some(json!({"type": "object", "$defs": {"n": {"type": "number"}},
            "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]})),
        ..client::tool("weather", object.clone())
    };
    let tools = vec![client::tool("zip", object.clone()), described, client::tool("say", json!({"type": "string"}))];
    let scene = client::scene(tools).await;
    let list = result(modern(&scene.world, &scene.token, "tools/list", json!({}))).await;
    assert_eq!(texts(&list["tools"], "name"), ["weather", "zip"], "in order, without what takes no object");
    assert!(list["ttlMs"].as_u64().unwrap() > 0 && list["cacheScope"] == "private", "{list}");
    let weather = &list["tools"][0];
    assert_eq!((&weather["inputSchema"], &weather["description"]), (&object, &json!("What weather does.")));
    assert_eq!(weather["annotations"]["destructiveHint"], true);
    let schema = &weather["outputSchema"];
    assert_eq!((&schema["type"], &schema["$defs"]["n"]["type"]), (&json!("object"), &json!("number")), "{schema}");
    assert_eq!(schema["anyOf"][0]["properties"]["n"]["$ref"], "#/$defs/n");
    assert_eq!(schema["anyOf"][1]["properties"]["type"]["const"], "large_result");
    assert!(list["tools"][1]["outputSchema"].is_null());

    let allowed = AllowedTools { names: vec!["zip".into()], ..AllowedTools::default() };
    let (name, roles) = ("caller".to_owned(), vec![Role::Caller]);
    let agent = NewAgent { name, roles, profile: Profile::Main, tools: Some(allowed) };
    let caller = scene.world.store.create_agent(scene.tenant, None, agent).await.unwrap().agent;
    let token = scene.world.token_of(scene.tenant, caller.id, Role::Caller);
    let list = result(modern(&scene.world, &token, "tools/list", json!({}))).await;
    assert_eq!(texts(&list["tools"], "name"), ["zip"]);
    let (_, refused) = error(modern(&scene.world, &token, "tools/call", json!({"name": "weather"}))).await;
    assert_eq!(refused["code"], -32602, "{refused}");
    scene.world.close().await;
}

#[tokio::test]
async fn a_long_list_has_pages() {
    let tools = (0..205).map(|number| client::tool(&format!("tool-{number:03}"), json!({"type": "object"}))).collect();
    let scene = client::scene(tools).await;
    let first = result(modern(&scene.world, &scene.token, "tools/list", json!({}))).await;
    assert_eq!(first["tools"].as_array().unwrap().len(), 200);
    let params = json!({"cursor": first["nextCursor"]});
    let second = result(modern(&scene.world, &scene.token, "tools/list", params)).await;
    assert_eq!(texts(&second["tools"], "name").first(), Some(&"tool-200"));
    assert_eq!((second["tools"].as_array().unwrap().len(), second["nextCursor"].is_null()), (5, true));
    let (_, refused) = error(modern(&scene.world, &scene.token, "tools/list", json!({"cursor": "%"}))).await;
    assert_eq!(refused["code"], -32602);
    scene.world.close().await;
}

#[tokio::test]
async fn guides_are_prompts() {
    let scene = client::scene(Vec::new()).await;
    let guide = json!({"title": "Guide", "schema_name": "tool.guide.v1", "context":
        {"name": "files-guide", "title": "Files", "summary": "How to use the files.", "content": "# Read it\nFirst."}});
    scene.world.create(&scene.token, guide).await;
    let list = result(modern(&scene.world, &scene.token, "prompts/list", json!({}))).await;
    assert_eq!(
        list["prompts"],
        json!([{"name": "files-guide", "title": "Files", "description": "How to use the files."}])
    );
    let got = result(modern(&scene.world, &scene.token, "prompts/get", json!({"name": "files-guide"}))).await;
    assert_eq!(got["messages"][0]["content"], json!({"type": "text", "text": "# Read it\nFirst."}));
    let (_, refused) = error(modern(&scene.world, &scene.token, "prompts/get", json!({"name": "none"}))).await;
    assert_eq!((&refused["code"], &refused["data"]["prompt"]), (&json!(-32602), &json!("none")));
    scene.world.close().await;
}

#[tokio::test]
async fn records_are_resources_and_the_runtimes_own_are_not_listed() {
    let scene = client::scene(Vec::new()).await;
    let (world, token) = (&scene.world, scene.token.as_str());
    let id = world.create(token, note("a note")).await;
    world.create(token, crate::harness::request_for("echo")).await;
    let uri = format!("breadcrumb://{id}");
    let list = result(modern(world, token, "resources/list", json!({}))).await;
    assert_eq!(texts(&list["resources"], "uri"), [uri.as_str()]);
    assert_eq!(list["resources"][0]["description"], "note.v1, version 1");

    let read = result(modern(world, token, "resources/read", json!({"uri": uri}))).await;
    let view: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&view["id"], &view["context"]["text"]), (&json!(id), &json!("a note")));
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    let read = result(modern(world, token, "resources/read", json!({"uri": "breadcrumb://schema/note.v1"}))).await;
    let rows: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["id"]), (1, &json!(id)));

    let other = world.token(&[Role::Emitter]).await;
    for (uri, token) in [(uri.as_str(), other.as_str()), ("breadcrumb://nothing", token), ("other://1", token)] {
        let (_, refused) = error(modern(world, token, "resources/read", json!({"uri": uri}))).await;
        assert_eq!((&refused["code"], &refused["data"]["uri"]), (&json!(-32602), &json!(uri)), "{refused}");
    }
    let templates = result(modern(world, token, "resources/templates/list", json!({}))).await;
    let expected = ["breadcrumb://schema/{schema_name}", "breadcrumb://{id}"];
    assert_eq!(texts(&templates["resourceTemplates"], "uriTemplate"), expected);
    for (template, argument, typed, expected) in [
        (expected[0], "schema_name", "no", json!(["note.v1"])),
        (expected[0], "schema_name", "x", json!([])),
        (expected[1], "id", "", json!([id])),
    ] {
        let params = json!({"ref": {"type": "ref/resource", "uri": template},
            "argument": {"name": argument, "value": typed}});
        let completed = result(modern(world, token, "completion/complete", params)).await;
        assert_eq!(completed["completion"]["values"], expected);
    }
    scene.world.close().await;
}

#[tokio::test]
async fn a_foreign_page_a_wrong_header_and_an_old_version_are_refused() {
    let scene = client::scene(Vec::new()).await;
    let list = || modern(&scene.world, &scene.token, "tools/list", json!({}));
    for origin in ["https://evil.example", "null"] {
        let refused = crate::harness::answer(list().header("Origin", origin)).await;
        assert!(refused.problem(403, "forbidden")["detail"].as_str().unwrap().contains("--cors-origin"));
    }
    for origin in ["http://localhost:3000", "http://127.0.0.1:9", "http://[::1]"] {
        result(list().header("Origin", origin)).await;
    }
    crate::harness::answer(modern(&scene.world, "", "tools/list", json!({}))).await.problem(401, "unauthorized");
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}}});
    let headed = |version: &str, method: &str| {
        post(&scene.world, &scene.token, &message).header("MCP-Protocol-Version", version).header("Mcp-Method", method)
    };
    for (version, method) in [("2025-11-25", "tools/list"), (MODERN, "tools/call")] {
        let (status, refused) = error(headed(version, method)).await;
        assert_eq!((status, &refused["code"]), (400, &json!(-32020)), "{refused}");
    }
    let mut unknown = message.clone();
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2027-01-01");
    let request = post(&scene.world, &scene.token, &unknown);
    let refused = answer(request.header("MCP-Protocol-Version", "2027-01-01").header("Mcp-Method", "tools/list")).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["requested"]),
        (&json!(-32022), &json!("2027-01-01"))
    );
    for (method, path) in [("GET", "/mcp"), ("DELETE", "/mcp")] {
        let request = scene.world.request(method, path, &scene.token);
        let request = request.header("Accept", "text/event-stream").header("MCP-Protocol-Version", MODERN);
        assert_eq!(crate::harness::answer(request).await.status, 405, "{method}");
    }
    scene.world.close().await;
}

/// A web site can point its own name at a server on loopback (DNS rebinding).
#[tokio::test]
async fn a_server_on_loopback_answers_only_its_own_names() {
    let scene = client::scene(Vec::new()).await;
    let asked = crate::harness::answer;
    let discover = |world: &World| modern(world, &scene.token, "server/discover", json!({}));
    for host in ["evil.example", "evil.example:8081", "127.0.0.1.evil.example", "rcrt"] {
        let refused = asked(discover(&scene.world).header("Host", host)).await.problem(421, "foreign_host");
        assert!(refused["detail"].as_str().unwrap().contains("--public-url"), "{refused}");
        // A browser sends no Origin with such a request.
        let stream = scene.world.request("GET", "/mcp", &scene.token).header("Accept", "text/event-stream");
        asked(stream.header("Host", host)).await.problem(421, "foreign_host");
    }
    for host in ["localhost:8081", "127.0.0.1", "[::1]:80"] {
        result(discover(&scene.world).header("Host", host)).await;
    }
    // Behind a proxy that passes on the name, or with a name of its own.
    let proxied = scene.world.beside_as(|options| {
        options.public_url = Some(PublicUrl::new("https://tools.example.com:8443/rcrt").unwrap());
        options.hosts = AllowedHosts::new(&["rcrt.internal"]).unwrap();
    });
    let proxied = proxied.await;
    for host in ["tools.example.com", "tools.example.com:8443", "rcrt.internal:80", "localhost"] {
        result(discover(&proxied).header("Host", host)).await;
    }
    assert_eq!(asked(discover(&proxied).header("Host", "example.com")).await.status, 421);
    result(discover(&proxied).header("Origin", "https://tools.example.com:8443")).await;
    for origin in ["https://tools.example.com", "http://tools.example.com:8443", "https://example.com:8443"] {
        assert_eq!(asked(discover(&proxied).header("Origin", origin)).await.status, 403, "{origin}");
    }
    proxied.close().await;
    scene.world.close().await;
}

#[tokio::test]
async fn a_foreign_page_is_refused_with_every_kind_of_authentication() {
    for (listen, auth) in
        [("127.0.0.1:0", AuthMode::Keys), ("127.0.0.1:0", AuthMode::Open), ("0.0.0.0:0", AuthMode::Keys)]
    {
        let world = World::start_listening(listen, auth, |_| {}).await;
        let token = world.token(&[Role::Subscriber]).await;
        let discover = || modern(&world, &token, "server/discover", json!({}));
        for origin in ["https://evil.example", "http://evil.example:8081", "null", ""] {
            crate::harness::answer(discover().header("Origin", origin)).await.problem(403, "forbidden");
        }
        result(discover().header("Origin", "http://localhost:3000")).await;
        // The names of a server that others can reach are not known.
        let named = crate::harness::answer(discover().header("Host", "tools.example.com")).await;
        assert_eq!(named.status.is_success(), listen.starts_with("0.0.0.0"), "{listen} {auth:?}");
        world.close().await;
    }
}

#[tokio::test]
async fn what_the_transport_refuses_is_a_problem_document() {
    let scene = client::scene(Vec::new()).await;
    let (world, token) = (&scene.world, scene.token.as_str());
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"});
    let asked = crate::harness::answer;
    asked(world.request("POST", "/mcp", token).json(&ping)).await.problem(406, "not_acceptable");
    asked(world.request("GET", "/mcp", token)).await.problem(406, "not_acceptable");
    assert!(asked(post(world, token, &ping)).await.violation("Mcp-Session-Id").contains("initialize"));
    let unknown = asked(post(world, token, &ping).header("Mcp-Session-Id", "none")).await.problem(404, "not_found");
    assert_eq!(unknown["what"], "session");
    asked(post(world, token, &ping).header("MCP-Protocol-Version", "1999-01-01"))
        .await
        .violation("MCP-Protocol-Version");
    asked(post(world, token, &json!({"no": "message"}))).await.violation("");
    let broken = world.request("POST", "/mcp", token).header("Content-Type", "application/json").body("{");
    asked(broken).await.problem(400, "malformed_json");
    let modern = world.request("DELETE", "/mcp", token).header("MCP-Protocol-Version", MODERN);
    let refused = asked(modern).await;
    refused.problem(405, "method_not_allowed");
    assert_eq!(refused.header("allow"), "POST");
    scene.world.close().await;
}

#[tokio::test]
async fn what_a_tool_provides_is_a_prompt_and_a_resource() {
    let mut scene = client::scene(vec![client::tool("greet", json!({"type": "object"}))]).await;
    let record = |schema: &str, context: Value| {
        serde_json::from_value(json!({"title": "Published", "schema_name": schema, "context": context})).unwrap()
    };
    let (world, tenant) = (&scene.world, scene.tenant);
    let prompt = json!({"name": "hello", "description": "Greets.", "arguments": [{"name": "who", "required": true}], "tool": "greet"});
    create(world, tenant, record("mcp.prompt.v1", prompt)).await;
    let resource =
        json!({"uri_template": "greeting://{who}/card", "name": "card", "mime_type": "text/markdown", "tool": "greet"});
    create(world, tenant, record("mcp.resource.v1", resource)).await;
    let list = result(modern(world, &scene.token, "prompts/list", json!({}))).await;
    assert_eq!(list["prompts"][0]["arguments"], json!([{"name": "who", "required": true}]));
    let (_, refused) = error(modern(world, &scene.token, "prompts/get", json!({"name": "hello"}))).await;
    assert!(refused["message"].as_str().unwrap().contains("arguments.who"), "{refused}");

    let params = json!({"name": "hello", "arguments": {"who": "Ada"}});
    let asking = tokio::spawn(result(modern(world, &scene.token, "prompts/get", params)));
    let claim = scene.hand.claim().await;
    assert_eq!(claim.request.context["input"], json!({"who": "Ada"}));
    scene.hand.answer(&claim, Ok(json!("Greet Ada."))).await;
    let got = asking.await.unwrap();
    assert_eq!(got["messages"], json!([{"role": "user", "content": {"type": "text", "text": "Greet Ada."}}]));

    let params = json!({"uri": "greeting://Ada/card"});
    let asking = tokio::spawn(result(modern(&scene.world, &scene.token, "resources/read", params)));
    let claim = scene.hand.claim().await;
    assert_eq!(claim.request.context["input"], json!({"uri": "greeting://Ada/card", "who": "Ada"}));
    scene.hand.answer(&claim, Ok(json!("# Ada"))).await;
    let expected = json!([{"uri": "greeting://Ada/card", "mimeType": "text/markdown", "text": "# Ada"}]);
    assert_eq!(asking.await.unwrap()["contents"], expected);
    scene.world.close().await;
}
