//! Questions of servers during a call.

use rcrt_breadcrumb::ErrorCode;
use rcrt_mcp::Elicitation;
use rcrt_test_servers::network::Network;
use serde_json::{Value, json};

use crate::fixture::{Fixture, http};
use crate::server::{Era, Server, tool};

const TOOLS: [&str; 5] = ["ask", "later", "sample", "again", "request"];

/// A server `fix` with these tools.
async fn asked(era: Era, elicitation: Elicitation) -> (Server, Fixture) {
    let server = Server::new(era).await;
    server.change(|tools| {
        tools.extend(TOOLS.map(|name| tool(name, "Asks.")));
        let mut taken = tool("taken", "Has an input of that name.");
        taken["inputSchema"]["properties"]["request_state"] = json!({"type": "string"});
        tools.push(taken);
    });
    let fixture = Fixture::with(Network::new().inside(&format!("mcp.test:{}", server.port))).await;
    let mut config = http("fix", server.port);
    config.elicitation = elicitation;
    fixture.add(config).await;
    (server, fixture)
}

/// What the tool `ask` was given.
async fn given(fixture: &Fixture, input: Value) -> Value {
    let text = fixture.run("fix__ask", input).await.unwrap();
    serde_json::from_str(text.as_str().unwrap()).unwrap()
}

/// The capabilities that a request of 2026-07-28 declares.
fn declared(server: &Server) -> Value {
    let meta = server.seen("tools/list")[0].0["params"]["_meta"].clone();
    meta["io.modelcontextprotocol/clientCapabilities"].clone()
}

#[tokio::test]
async fn a_question_is_declined_unless_the_record_says_otherwise() {
    let (server, fixture) = asked(Era::Modern, Elicitation::Decline).await;
    let expected = json!({
        "responses": {"who": {"action": "decline"}, "where": {"roots": []}},
        "state": "opaque",
    });
    assert_eq!(given(&fixture, json!({"text": "x"})).await, expected);
    let calls = server.seen("tools/call");
    let [first, second] = [&calls[0].0, &calls[1].0];
    assert_ne!(first["id"], second["id"]);
    assert_eq!(first["params"]["arguments"], second["params"]["arguments"]);
    assert_eq!(declared(&server), json!({}));
    // One that only wants to be called again.
    assert_eq!(fixture.run("fix__later", json!({})).await.unwrap(), "now");
    fixture.stop().await;
}

#[tokio::test]
async fn a_form_can_be_accepted_with_its_defaults() {
    let accepted = json!({"action": "accept", "content": {"name": "Ada", "age": 36}});
    let (server, fixture) = asked(Era::Modern, Elicitation::Defaults).await;
    assert_eq!(given(&fixture, json!({})).await["responses"]["who"], accepted);
    assert_eq!(declared(&server), json!({"elicitation": {"form": {}}}));
    fixture.stop().await;

    let (server, fixture) = asked(Era::Legacy, Elicitation::Defaults).await;
    assert_eq!(fixture.run("fix__request", json!({})).await.unwrap(), "done");
    assert_eq!(server.response("form").await["result"], accepted);
    let initialized = &server.seen("initialize")[0].0;
    assert_eq!(initialized["params"]["capabilities"], json!({"elicitation": {"form": {}}}));
    fixture.stop().await;
}

#[tokio::test]
async fn the_caller_answers_if_the_record_says_so() {
    let (_server, fixture) = asked(Era::Modern, Elicitation::Ask).await;
    let asked = fixture.run("fix__ask", json!({"text": "x"})).await.unwrap();
    assert_eq!((&asked["resultType"], &asked["requestState"]), (&json!("input_required"), &json!("opaque")), "{asked}");
    assert_eq!(asked["inputRequests"]["who"]["params"]["message"], "Who are you?");
    let answers = json!({"who": {"action": "accept", "content": {"name": "Grace"}}});
    let expected = json!({"responses": answers, "state": "opaque"});
    let input = json!({"text": "x", "input_responses": answers, "request_state": "opaque"});
    assert_eq!(given(&fixture, input).await, expected);
    let properties = async |tool: &str| {
        let context = fixture.tool(tool).await.context.unwrap();
        context["definition"]["inputSchema"]["properties"].clone()
    };
    assert_eq!(properties("fix__ask").await["input_responses"]["type"], "object");
    assert_eq!(fixture.tool("fix__structured").await.context.unwrap()["definition"].get("outputSchema"), None);
    // An input of the tool itself stays that.
    assert_eq!(properties("fix__taken").await.get("input_responses"), None);
    fixture.stop().await;
}

#[tokio::test]
async fn nobody_answers_for_a_model_or_without_end() {
    let (server, fixture) = asked(Era::Modern, Elicitation::Decline).await;
    let failure = fixture.run("fix__sample", json!({})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    assert!(failure.message.contains("a model (sampling)"), "{failure}");
    let before = server.seen("tools/call").len();
    let failure = fixture.run("fix__again", json!({})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{failure}");
    assert_eq!(server.seen("tools/call").len() - before, 10);
    fixture.stop().await;
}
