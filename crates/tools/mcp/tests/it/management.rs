//! The tools by which agents use and manage servers.

use rcrt_breadcrumb::{AllowedTools, ErrorCode, NewAgent, Profile, Profiles, Role, Tenancy, schema_names};
use rcrt_test_servers::network::Network;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixture::{Fixture, http};
use crate::server::{Era, Server, tool};

#[tokio::test]
async fn agents_list_describe_and_find_tools() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    let services = fixture.manage("mcp_list_services", json!({})).await.unwrap();
    assert_eq!(services[0]["serverName"], "fix");
    assert_eq!(services[0]["toolCount"], 7);
    assert_eq!(services[0]["state"], "connected");
    let described = fixture.manage("mcp_get_service_details", json!({"server_name": "Fix", "tool_name": "ECHO"})).await;
    let described = described.unwrap();
    assert_eq!(described["tools"][0]["name"], "fix__echo");
    assert_eq!(described["tools"][0]["inputSchema"]["properties"]["text"]["type"], "string");
    let found = fixture.manage("mcp_find_tools", json!({"query": "echo please", "limit": 1})).await.unwrap();
    assert_eq!(found[0]["tool_name"], "echo");
    let failure = fixture.manage("mcp_get_service_details", json!({"server_name": "nope"})).await.unwrap_err();
    assert!(failure.message.contains("the servers are: fix"), "{failure}");
    let unknown = json!({"server_name": "fix", "tool_name": "nope"});
    let failure = fixture.manage("mcp_invoke_tool", unknown).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidArguments);
    assert!(failure.message.contains("echo, fail"), "{failure}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_tool_whose_schema_is_elsewhere_is_not_offered_and_the_others_are() {
    let server = Server::new(Era::Legacy).await;
    server.change(|tools| {
        let mut input = tool("input", "Refers to another document.");
        input["inputSchema"]["properties"]["text"] = json!({"$ref": "https://schemas.test/text"});
        let mut output = tool("output", "Refers to another document.");
        output["outputSchema"] = json!({"type": "object", "allOf": [{"$ref": "other.json"}]});
        let mut local = tool("local", "Refers to its own definitions.");
        local["inputSchema"]["$defs"] = json!({"text": {"type": "string"}});
        local["inputSchema"]["properties"]["text"] = json!({"$ref": "#/$defs/text"});
        tools.extend([input, output, local]);
    });
    let fixture = Fixture::with_http(server.port).await;
    let status = fixture.records(schema_names::MCP_STATUS).await.remove(0).context.unwrap();
    assert_eq!(status["tools"].as_array().unwrap().len(), 8);
    assert_eq!(fixture.run("fix__local", json!({"text": "hi"})).await.unwrap_err().code, ErrorCode::InvalidArguments);
    let details = json!({"server_name": "fix", "refresh": true});
    let described = fixture.manage("mcp_get_service_details", details).await.unwrap();
    assert_eq!(described["refused"], status["refused"]);
    let reason = |at: usize, tool: &str| {
        assert_eq!(described["refused"][at]["tool"], tool);
        described["refused"][at]["reason"].as_str().unwrap().to_owned()
    };
    let (input, output) = (reason(0, "input"), reason(1, "output"));
    assert!(input.starts_with("its inputSchema cannot be used: properties.text.$ref: is \"https://"), "{input}");
    assert!(output.starts_with("its outputSchema cannot be used: allOf.0.$ref: is \"other.json\""), "{output}");
    fixture.stop().await;
}

#[tokio::test]
async fn agents_read_resources_and_prompts() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    let listed = fixture.manage("mcp_list_resources", json!({"server_name": "fix"})).await.unwrap();
    assert_eq!(listed["resources"][0]["uri"], "doc://one");
    let read = fixture.manage("mcp_read_resource", json!({"server_name": "fix", "uri": "doc://one"})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], "the document");
    let prompts = fixture.manage("mcp_get_prompt", json!({"server_name": "fix"})).await.unwrap();
    assert_eq!(prompts["prompts"][0]["name"], "greet");
    fixture.stop().await;
}

#[tokio::test]
async fn restricted_profiles_use_servers_and_register_none() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    for profile in [Profile::Subagent, Profile::Scheduled, Profile::A2aSynthesis] {
        let ask = async |tool: &str, input: Value| {
            let mut call = fixture.tenant.call(rcrt_test_tenant::seeded(tool), input);
            call.profiles = Profiles::of(profile);
            fixture.manage_as(call).await
        };
        let services = ask("mcp_list_services", json!({})).await.unwrap();
        assert_eq!((&services[0]["serverName"], &services[0]["toolCount"]), (&json!("fix"), &json!(7)), "{profile}");
        let resources = ask("mcp_list_resources", json!({"server_name": "fix"})).await.unwrap();
        assert_eq!(resources["resources"][0]["uri"], "doc://one", "{profile}");
        for (tool, input) in [
            ("mcp_register_server", json!({"server_name": "own", "command": "true"})),
            ("mcp_unregister_server", json!({"server_name": "fix"})),
        ] {
            assert_eq!(ask(tool, input).await.unwrap_err().code, ErrorCode::PermissionDenied, "{profile} {tool}");
        }
    }
    fixture.stop().await;
}

#[tokio::test]
async fn an_agent_sees_the_servers_whose_tools_its_list_allows() {
    let (first, second) = (Server::new(Era::Legacy).await, Server::new(Era::Legacy).await);
    let network =
        Network::new().inside(&format!("mcp.test:{}", first.port)).inside(&format!("mcp.test:{}", second.port));
    let fixture = Fixture::with(network).await;
    fixture.add(http("fix", first.port)).await;
    fixture.add(http("other", second.port)).await;
    let list = |names: &[&str], sources: &[&str]| {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        AllowedTools { names: texts(names), sources: texts(sources), tags: Vec::new() }
    };
    for (allowed, expected) in [
        (list(&["mcp_list_services"], &[]), json!([])),
        (list(&["mcp_list_services", "fix__echo"], &[]), json!([["fix", 1]])),
        (list(&[], &["native", "mcp:other"]), json!([["other", 7]])),
        (list(&[], &["native", "mcp"]), json!([["fix", 7], ["other", 7]])),
    ] {
        let (name, roles) = (Uuid::new_v4().to_string(), vec![Role::Caller]);
        let agent = NewAgent { name, roles, profile: Profile::Main, tools: Some(allowed) };
        let agent = fixture.tenant.store.create_agent(fixture.tenant.owner, None, agent).await.unwrap().agent;
        let mut call = fixture.tenant.call(rcrt_test_tenant::seeded("mcp_list_services"), json!({}));
        call.breadcrumbs = fixture.runner.on_behalf_of(agent.id).unwrap();
        let services = fixture.manage_as(call).await.unwrap();
        let seen = services.as_array().unwrap().iter().map(|one| json!([one["serverName"], one["toolCount"]]));
        assert_eq!(Value::Array(seen.collect()), expected);
    }
    fixture.stop().await;
}

#[tokio::test]
async fn curators_register_servers_and_remove_only_those() {
    let server = Server::new(Era::Legacy).await;
    let fixture = Fixture::with_http(server.port).await;
    let url = format!("http://mcp.test:{}/mcp", server.port);
    let input = json!({"server_name": "own", "url": url});
    let registered = fixture.manage("mcp_register_server", input.clone()).await.unwrap();
    assert_eq!((&registered["state"], &registered["toolCount"]), (&json!("connected"), &json!(7)));
    let failure = fixture.manage("mcp_register_server", input).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::InvalidArguments);
    let failure = fixture.manage("mcp_register_server", json!({"server_name": "a__b", "url": url})).await.unwrap_err();
    assert!(failure.message.starts_with("server_name: "), "{failure}");
    let failure = fixture.manage("mcp_unregister_server", json!({"server_name": "fix"})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied);
    fixture.manage("mcp_unregister_server", json!({"server_name": "OWN"})).await.unwrap();
    let servers = fixture.records(schema_names::MCP_SERVER).await;
    assert_eq!(servers.len(), 1);
    fixture.stop().await;
}
