//! `find_tools` and `search_known_services`: what a call finds is what its caller can call.

use std::sync::Arc;

use rcrt_breadcrumb::{
    AllowedTools, Breadcrumbs, ErrorCode, Identity, NewAgent, NewBreadcrumb, Profile, ResponseStatus, Role, Tenancy,
    ToolRequest, Visibility,
};
use rcrt_conformance::harness::object;
use rcrt_executors::{BuiltinExecutor, Executors};
use rcrt_runner::Runner;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, native, options};
use crate::scale;

/// A runner with the real tools of the family, and with fake code and http tools.
fn start(fixture: &Fixture, fake: &Arc<Fake>) -> Running {
    let builtin = BuiltinExecutor::new().with(rcrt_discovery::tools());
    let executors = Executors::new()
        .with_code(fake.clone())
        .with_native("builtin", Arc::new(builtin))
        .with_native("http", fake.clone());
    let runner = Runner::new(fixture.runner.clone(), executors, options());
    Running::of(runner.with_local_dispatch(fixture.registration.clone()))
}

fn described(name: &str, category: &str, description: &str) -> NewBreadcrumb {
    let mut record = code(name, json!({"description": description}));
    record.tags.push(format!("category:{category}"));
    record
}

async fn fixture() -> (Fixture, Arc<Fake>) {
    let fixture = Fixture::new().await;
    for record in [
        native("find_tools", json!({})),
        native("search_known_services", json!({})),
        described("refund_charge", "payments", "Gives the money of a payment back."),
        described("create_charge", "payments", "Takes money from a card."),
        described("cancel_scheduled_task", "schedule", "Cancels a task that was planned for later."),
    ] {
        fixture.create(record).await;
    }
    (fixture, Fake::new())
}

async fn output(fixture: &Fixture, store: &Arc<dyn Breadcrumbs>, tool: &str, query: &str) -> Value {
    let input = json!({"query": query});
    let request = store.create(ToolRequest::record(tool, input, None, None), None).await.unwrap().id;
    let response = fixture.answer(request).await;
    assert_eq!(response.status, ResponseStatus::Success, "{:?}", response.error);
    response.output.unwrap()
}

/// The names that the store's agent finds.
async fn tools(fixture: &Fixture, store: &Arc<dyn Breadcrumbs>, query: &str) -> Vec<String> {
    let found = output(fixture, store, "find_tools", query).await;
    found["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn services(fixture: &Fixture, store: &Arc<dyn Breadcrumbs>, query: &str) -> Vec<String> {
    let found = output(fixture, store, "search_known_services", query).await;
    found["results"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

/// An agent with these rights, as the tenant's store sees it.
async fn agent(fixture: &Fixture, role: Role, profile: Profile, names: Option<&[&str]>) -> Arc<dyn Breadcrumbs> {
    let names = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let tools = names.map(|names| AllowedTools { names, ..AllowedTools::default() });
    let agent = NewAgent { name: format!("{role:?} {profile}"), roles: vec![role], profile, tools };
    let agent = fixture.store.create_agent(fixture.owner, None, agent).await.unwrap().agent;
    let identity = Identity { owner_id: fixture.owner, agent_id: agent.id, roles: agent.roles, profile };
    fixture.dispatch.acting_as(identity)
}

async fn caller(fixture: &Fixture, names: &[&str]) -> Arc<dyn Breadcrumbs> {
    agent(fixture, Role::Caller, Profile::Main, Some(names)).await
}

#[tokio::test]
async fn a_tool_is_found_as_soon_as_it_is_written() {
    let (fixture, fake) = fixture().await;
    let runner = start(&fixture, &fake);
    fixture.catalog(|catalog| catalog.find("find_tools").is_some() && catalog.find("create_charge").is_some()).await;
    let found = output(&fixture, &fixture.person, "find_tools", "give the money back").await;
    let first = &found["tools"][0];
    assert_eq!((&first["name"], &first["source"]), (&json!("refund_charge"), &json!("sandbox")));
    assert_eq!(first["parameters"], json!({"type": "object"}));
    assert!(first["score"].as_f64().unwrap() > 0.2 && first["score"].as_f64().unwrap() <= 1.0, "{first}");

    for number in 0..5 {
        let (name, word) = (format!("made{number}"), format!("gadget{number}"));
        let id = fixture.create(described(&name, "made", &format!("Builds a {word}."))).await;
        assert_eq!(tools(&fixture, &fixture.person, &word).await, [name.as_str()]);
        let changed = described(&name, "made", "Breaks a thing.").context;
        fixture.change(id, 1, Value::Object(changed)).await;
        assert!(tools(&fixture, &fixture.person, &word).await.is_empty());
        fixture.person.delete(id, None).await.unwrap();
        assert!(tools(&fixture, &fixture.person, "breaks a thing").await.is_empty());
    }
    runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_three_thousand_tools_is_offered_five() {
    const TOOLS: usize = 3_000;
    let (fixture, fake) = fixture().await;
    let implementation = "json_build_object('type', 'http', 'url', 'https://example.com')";
    scale::insert(&fixture, TOOLS, "'Books the payment number ' || n", implementation).await;
    let runner = start(&fixture, &fake);
    let catalog = fixture.catalog(|catalog| catalog.tools.len() == TOOLS + 5).await;
    let query = "give the money of a payment back";
    let offered = tools(&fixture, &fixture.person, query).await;
    assert_eq!((offered.len(), offered[0].as_str()), (5, "refund_charge"), "{offered:?}");
    let limited = fixture.call("find_tools", json!({"query": query, "limit": 2})).await.output.unwrap();
    assert_eq!(limited["tools"].as_array().unwrap().len(), 2);
    let found = output(&fixture, &fixture.person, "find_tools", query).await;
    let lengths = (found.to_string().len(), json!(catalog.tools).to_string().len());
    assert!(lengths.0 * 100 < lengths.1, "{lengths:?}");
    runner.stop().await;
}

#[tokio::test]
async fn what_a_caller_cannot_call_is_not_found() {
    let (fixture, fake) = fixture().await;
    let runner = start(&fixture, &fake);
    fixture.catalog(|catalog| catalog.find("find_tools").is_some() && catalog.find("create_charge").is_some()).await;
    let person = &fixture.person;
    assert_eq!(tools(&fixture, person, "cancel a planned task").await[0], "cancel_scheduled_task");
    assert_eq!(services(&fixture, person, "cancel a planned task").await[0], "schedule");

    let subagent = fixture.agent_of(Profile::Subagent).await;
    assert!(!tools(&fixture, &subagent, "cancel a planned task").await.contains(&"cancel_scheduled_task".to_owned()));
    assert!(!services(&fixture, &subagent, "cancel a planned task").await.contains(&"schedule".to_owned()));

    let both = ["find_tools", "search_known_services"];
    let caller = caller(&fixture, &[both[0], both[1], "create_charge"]).await;
    assert_eq!(tools(&fixture, &caller, "money of a payment").await, ["create_charge"]);
    assert_eq!(services(&fixture, &caller, "money of a payment").await, ["payments"]);
    let found = output(&fixture, &caller, both[1], "payments").await;
    assert_eq!(found["results"][0]["top_tools"], json!(["create_charge"]));
    assert!(tools(&fixture, &caller, "cancel planned").await.is_empty());
    runner.stop().await;
}

#[tokio::test]
async fn agents_are_found_by_who_can_invoke_agents() {
    let (fixture, fake) = fixture().await;
    let runner = start(&fixture, &fake);
    fixture.catalog(|catalog| catalog.find("find_tools").is_some() && catalog.find("create_charge").is_some()).await;
    let card = |name: &str, visibility: Visibility| NewBreadcrumb {
        title: name.into(),
        visibility,
        schema_name: Some("a2a.agent.v1".into()),
        context: object(json!({
            "name": name,
            "description": "Plans\n journeys\u{7} through Europe.",
            "skills": [
                {"id": "book-hotel", "name": "Hotels", "description": "Books rooms."},
                {"id": "plan-route", "name": "Routes", "description": "Finds trains.", "tags": ["railway"]},
                {"id": "visa", "name": "Visas", "examples": ["Do I need a visa?"]},
                {"id": "luggage", "name": "Luggage"},
            ],
        })),
        ..NewBreadcrumb::default()
    };
    // Only runners and curators write them.
    for card in [card("TravelAgent", Visibility::default()), card("PrivateAgent", Visibility::Private)] {
        fixture.runner.create(card, None).await.unwrap();
    }
    let query = "a railway journey";
    assert!(services(&fixture, &fixture.person, query).await.is_empty(), "no tool can call it");

    let invoke = json!({"implementation": {"type": "http", "url": "https://example.com"}});
    fixture.create(native("invoke_agent", invoke)).await;
    let narrow = caller(&fixture, &["search_known_services"]).await;
    assert!(services(&fixture, &narrow, query).await.is_empty());
    let synthesis = fixture.agent_of(Profile::A2aSynthesis).await;
    assert!(services(&fixture, &synthesis, query).await.is_empty());

    let subagent = agent(&fixture, Role::Emitter, Profile::Subagent, None).await;
    let found = output(&fixture, &subagent, "search_known_services", query).await;
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "the private agent is another's: {found}");
    assert_eq!((&results[0]["id"], &results[0]["type"]), (&json!("TravelAgent"), &json!("a2a")));
    assert_eq!(results[0]["summary"], "Plans journeys through Europe.");
    assert_eq!(results[0]["top_skills"].as_array().unwrap().len(), 3);
    assert_eq!(results[0]["top_skills"][0], "plan-route");
    assert!(results[0].get("top_tools").is_none());
    runner.stop().await;
}

#[tokio::test]
async fn a_question_without_a_text_names_the_field() {
    let (fixture, fake) = fixture().await;
    let runner = start(&fixture, &fake);
    for (tool, input, field) in [
        ("find_tools", json!({}), "query"),
        ("find_tools", json!({"query": "  "}), "query"),
        ("find_tools", json!({"query": "x".repeat(1001)}), "query"),
        ("find_tools", json!({"query": "x", "limit": 21}), "limit"),
        ("search_known_services", json!({}), "query"),
    ] {
        let response = fixture.call(tool, input).await;
        assert_eq!(response.error_code, Some(ErrorCode::InvalidArguments), "{tool}");
        assert_eq!(response.error_details.unwrap()["violations"][0]["field"], field, "{tool}");
    }
    assert!(tools(&fixture, &fixture.person, "xylophone").await.is_empty());
    assert!(services(&fixture, &fixture.person, "xylophone").await.is_empty());
    runner.stop().await;
}
