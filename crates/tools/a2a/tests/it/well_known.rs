//! The operator's file of agents.

use rcrt_a2a::WellKnown;
use serde_json::{Value, json};

use crate::world::{Agent, HOST, World, sent, task};

fn file(url: &str) -> String {
    // The value is "key of the operator".
    json!([{"agentName": "Research", "url": url, "authHeaderName": "X-API-Key",
        "authHeaderValueBase64": "a2V5IG9mIHRoZSBvcGVyYXRvcg=="}])
    .to_string()
}

#[tokio::test]
async fn a_well_known_agent_is_used_with_its_header_and_stays() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(task("COMPLETED", "hello"))], Vec::new());
    let mut world = World::of(agent.service.port).await;
    world.settings.well_known = WellKnown::read_all(&file(&format!("http://{HOST}:{}", world.port))).unwrap();
    let list = world.ask("list_known_agents", json!({})).await.unwrap();
    assert_eq!((&list[0]["agentName"], &list[0]["lastSeen"]), (&json!("Research"), &Value::Null));
    let done = world.ask("invoke_agent", json!({"agent_name": "research", "message": "hi"})).await.unwrap();
    assert_eq!(done["result"]["text"], "hello");
    let message = agent.service.last();
    assert_eq!(message.header("x-api-key"), Some("key of the operator"));
    let details = world.ask("get_agent_details", json!({"agent_name": "research"})).await.unwrap();
    assert_eq!((&details["isWellKnown"], &details["hasAuth"]), (&json!(true), &json!(true)));
    assert!(!details.to_string().contains("operator"), "{details}");
    let refused = world.failure("unregister_agent", json!({"agent_name": "research"})).await;
    assert!(refused.message.contains("is the operator's"), "{refused}");
    let refused = world.failure("register_agent", json!({"url": "http://other.example", "name": "research"})).await;
    assert!(!refused.message.is_empty());
}

#[test]
fn a_file_that_is_not_right_is_refused_with_the_agent_and_the_problem() {
    for (text, expected) in [
        ("{}", "is not a JSON array"),
        (r#"[{"agentName": "a"}]"#, "is not a JSON array"),
        (r#"[{"agentName": "", "url": "https://a.example"}]"#, "the name must be"),
        (r#"[{"agentName": "a", "url": "a.example"}]"#, "url must be"),
        (r#"[{"agentName": "a", "url": "https://a.example", "authHeaderName": "X"}]"#, "belong together"),
        (
            r#"[{"agentName": "a", "url": "https://a.example", "authHeaderName": "X", "authHeaderValueBase64": "%"}]"#,
            "base64",
        ),
        (
            r#"[{"agentName": "a", "url": "https://a.example", "authHeaderName": "X", "authHeaderValueBase64": "YQ=="}]"#,
            "8 bytes",
        ),
        (
            r#"[{"agentName": "a", "url": "https://a.example"}, {"agentName": "A", "url": "https://a.example"}]"#,
            "twice",
        ),
    ] {
        let error = WellKnown::read_all(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(!format!("{:?}", WellKnown::read_all(&file("https://a.example")).unwrap()).contains("operator"));
}
