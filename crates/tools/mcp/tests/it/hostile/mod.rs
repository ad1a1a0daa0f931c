//! Servers that misbehave. Each is reported, and affects nothing else.

mod attacks;
mod calls;
mod server;

use std::collections::BTreeMap;
use std::time::Instant;

use rcrt_breadcrumb::ErrorCode;
use rcrt_mcp::{ServerState, Status};
use rcrt_test_servers::PATIENCE;
use rcrt_test_servers::network::Network;
use serde_json::{Value, json};

use crate::fixture::{FIRST_PAUSE, Fixture, config, http};
use crate::server::{Era, Server, tool};
use attacks::{ATTACKS, Outcome};
use calls::{CALLS, Ended};
use server::Hostile;

/// How long a text of a stranger can be in a record, and in the message of a failure.
const MAX_STATUS: usize = 2001;
const MAX_FAILURE: usize = 8300;

/// The text is bounded, changes nothing on a terminal, and has no names of our types.
fn assert_harmless(case: &str, text: &str, most: usize) {
    assert!(!text.contains("rmcp") && !text.contains("rcrt_"), "{case}: {text}");
    assert!(text.chars().count() <= most, "{case}: {} characters", text.chars().count());
    assert!(!text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{case}: {text:?}");
}

/// One good server, and all servers of the tables, at paths of one program.
async fn attacked() -> (Hostile, Fixture, BTreeMap<String, Status>) {
    let (good, hostile) = (Server::new(Era::Legacy).await, Hostile::new().await);
    let network =
        Network::new().inside(&format!("mcp.test:{}", good.port)).inside(&format!("mcp.test:{}", hostile.port));
    let fixture = Fixture::with(network).await;
    let mut watch = fixture.watch().await;
    fixture.create(&http("good", good.port)).await;
    let attacks = ATTACKS.iter().map(|attack| (attack.name, attack.connect_timeout_ms()));
    let mut awaited = vec!["good"];
    for (name, timeout) in attacks.chain(CALLS.iter().map(|call| (call.name, 60_000))) {
        let url = format!("http://mcp.test:{}/{name}", hostile.port);
        let transport = json!({"type": "http", "url": url});
        fixture.create(&config(json!({"name": name, "transport": transport, "connect_timeout_ms": timeout}))).await;
        awaited.push(name);
    }
    let mut statuses = BTreeMap::new();
    // With an attempt to connect, or more, for each of them.
    let all = tokio::time::timeout(PATIENCE * 2, async {
        while statuses.len() < awaited.len() {
            let status = watch.status(|_| true).await;
            statuses.insert(status.server.clone(), status);
        }
    });
    all.await.unwrap_or_else(|_| panic!("no state of some of {awaited:?}"));
    assert_eq!(fixture.run("good__echo", json!({"text": "hi"})).await.unwrap(), "hi");
    (hostile, fixture, statuses)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_server_does_harm() {
    let began = Instant::now();
    let (hostile, fixture, statuses) = attacked().await;
    for attack in ATTACKS {
        let (name, status) = (attack.name, &statuses[attack.name]);
        let error = status.error.as_deref().unwrap_or_default();
        assert_harmless(name, error, MAX_STATUS);
        match attack.outcome {
            Outcome::Unusable(why) => {
                assert_eq!(status.state, ServerState::Error, "{name}: {status:?}");
                assert!(error.contains(why), "{name}: {error}");
            }
            Outcome::Any => {}
            Outcome::Usable(tools) => {
                assert_eq!(status.state, ServerState::Connected, "{name}: {error}");
                assert_eq!(status.tools.len(), tools, "{name}: {status:?}");
                for refused in &status.refused {
                    assert_harmless(name, &format!("{} {}", refused.tool, refused.reason), MAX_STATUS);
                }
                for tool in &status.tools {
                    let context = Value::Object(fixture.tool(tool).await.context.unwrap());
                    assert!(tool.len() <= 64, "{name}: {tool}");
                    assert_harmless(name, context["description"].as_str().unwrap(), 4001);
                }
            }
        }
    }
    for call in CALLS {
        let name = call.name;
        let mut asked = fixture.call(&format!("{name}__attack"), json!({})).await;
        asked.limits.timeout_ms = call.timeout_ms;
        let result = tokio::time::timeout(PATIENCE, fixture.execute(asked)).await.expect("it ends").result;
        match (call.ended, result) {
            (Ended::Returns(expected), Ok(output)) => assert_eq!(output, expected, "{name}"),
            (Ended::Fails(code), Err(failure)) => {
                assert_eq!(failure.code, code.unwrap_or(failure.code), "{name}: {failure}");
                assert_harmless(name, &failure.message, MAX_FAILURE);
                assert!(json!(failure.details).to_string().len() < 100_000, "{name}");
            }
            (_, result) => panic!("{name}: {result:?}"),
        }
    }
    // A server that announces changes without end is asked for its list once in each pause.
    let (lists, pauses) = (hostile.lists("storm"), began.elapsed().as_millis() / FIRST_PAUSE.as_millis());
    assert!(lists as u128 <= pauses + 10, "{lists} lists in {pauses} pauses");
    assert!(hostile.inner.seen().is_empty(), "{:?}", hostile.inner.seen());
    assert_eq!(fixture.run("good__echo", json!({"text": "hi"})).await.unwrap(), "hi");
    tokio::time::timeout(PATIENCE, fixture.stop()).await.expect("it stops");
}

#[tokio::test]
async fn a_private_address_needs_the_operator() {
    let server = Server::new(Era::Legacy).await;
    let network = Network::new();
    network.names.set("mcp.test", vec![vec![rcrt_test_servers::network::LOOPBACK]]);
    let fixture = Fixture::with(network).await;
    let mut watch = fixture.watch().await;
    fixture.create(&http("inside", server.port)).await;
    watch.status(|status| status.state == ServerState::Error).await;
    assert!(server.seen("initialize").is_empty() && server.seen("server/discover").is_empty());
    let failure = fixture.manage("mcp_list_resources", json!({"server_name": "inside"})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::PermissionDenied, "{failure}");
    fixture.stop().await;
}

#[tokio::test]
async fn names_and_texts_of_strangers_are_bounded_and_collisions_are_refused() {
    let server = Server::new(Era::Legacy).await;
    server.change(|tools| {
        tools.clear();
        tools.push(tool("a b", "Has\u{1b}[31m control\u{0} characters\u{202e} and \u{200b}hidden\u{e0041} ones."));
        tools.push(tool("a_b", "The same name here."));
        tools.push(tool(&"x".repeat(200), &"y".repeat(100_000)));
        tools.push(json!({"name": "schemaless"}));
        tools.push(tool("twice", "One."));
        tools.push(tool("twice", "Two."));
    });
    let fixture = Fixture::with_http(server.port).await;
    let status = fixture.records("mcp.status.v1").await.remove(0).context.unwrap();
    let refused: Vec<&str> =
        status["refused"].as_array().unwrap().iter().map(|one| one["tool"].as_str().unwrap()).collect();
    assert!(refused.contains(&"a_b") && refused.contains(&"twice"), "{refused:?}");
    let description = fixture.tool("fix__a_b").await.context.unwrap()["description"].clone();
    assert_eq!(description, "Has[31m control characters and hidden ones.");
    for tool in status["tools"].as_array().unwrap() {
        let name = tool.as_str().unwrap();
        assert!(name.len() <= 64, "{name}");
        let context = fixture.tool(name).await.context.unwrap();
        assert!(context["description"].as_str().unwrap().chars().count() <= 4001);
    }
    // It is called by its own name, not by the name here.
    fixture.run("fix__a_b", json!({})).await.unwrap_err();
    assert_eq!(server.seen("tools/call")[0].0["params"]["name"], "a b");
    fixture.stop().await;
}
