//! An agent makes tools through the public API, with nothing but the responses.

use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbQuery, CallQueue, CallState, ErrorCode, EventStream, Events, NewAgent, NewBreadcrumb, Profile, Records,
    Role, ToolRequest, ToolResponse,
};
use rcrt_client::{Client, Credentials};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::process::{Installation, PATIENCE};

/// The context of the next record with this tag.
pub async fn next(events: &mut EventStream, tag: &str) -> Map<String, Value> {
    let waited = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if event.tags.iter().any(|one| one == tag) {
                return event.context.clone().into();
            }
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.expect("the record appears")
}

pub fn request(request_id: &str, spec: &Value, mode: &str) -> NewBreadcrumb {
    let context = json!({"request_id": request_id, "agent_id": "agent-123", "tool_spec": spec, "mode": mode});
    NewBreadcrumb {
        title: "Create a tool".into(),
        schema_name: Some("tool.create.request.v1".into()),
        tags: vec!["tool:request".into(), "workspace:tools".into()],
        context: context.as_object().unwrap().clone(),
        ..NewBreadcrumb::default()
    }
}

/// Asks for a tool and returns the context of the response.
pub async fn ask(store: &Client, events: &mut EventStream, spec: &Value, mode: &str) -> Map<String, Value> {
    let id = Uuid::new_v4().to_string();
    store.create(request(&id, spec, mode), None).await.unwrap();
    let response = next(events, &ToolResponse::tag(&id)).await;
    assert_eq!(response["request_id"], json!(id));
    response
}

/// `(rule, field)` of each error.
fn errors(response: &Map<String, Value>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = response["validation"]["errors"].as_array().unwrap();
    errors.iter().map(|error| (text(&error["rule"]), text(&error["field"]))).collect()
}

pub async fn call(store: &Client, events: &mut EventStream, tool: &str, input: Value) -> ToolResponse {
    let id = Uuid::new_v4().to_string();
    store.create(ToolRequest::record(tool, input, Some(&id), None), None).await.unwrap();
    ToolResponse::from_context(&next(events, &ToolResponse::tag(&id)).await).unwrap()
}

pub fn adder() -> Value {
    json!({
        "name": "adder",
        "description": "Adds two numbers.",
        "version": "1.0.0",
        "code": {
            "language": "typescript",
            "source": "export async function execute(input: { a: number; b: number }) {\n  return { sum: input.a + input.b };\n}\n"
        },
        "input_schema": {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first number."},
                "b": {"type": "number", "description": "The second number."}
            },
            "required": ["a", "b"]
        },
        "output_schema": {
            "type": "object",
            "properties": {"sum": {"type": "number", "description": "The sum."}},
            "required": ["sum"]
        },
        "examples": [{"description": "Small", "input": {"a": 1, "b": 2}, "output": {"sum": 3}}]
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_corrects_a_tool_by_its_responses_until_it_is_published() {
    let (installation, up, store) = Installation::up().await;
    let mut events = store.events(None).await.unwrap();

    let good = adder();
    // Each round corrects what the response before it named.
    let mut spec = json!({"name": "adder", "code": {"language": "typescript", "source": "import x from 'x';\nexport function execute() {}\n"}});
    let response = ask(&store, &mut events, &spec, "create").await;
    assert_eq!(response["status"], "rejected");
    let found = errors(&response);
    for rule in ["no-import", "execute-async", "description", "input-schema", "example-required"] {
        assert!(found.iter().any(|(one, _)| one == rule), "{rule}: {found:?}");
    }
    let import = response["validation"]["errors"].as_array().unwrap().iter().find(|one| one["rule"] == "no-import");
    assert_eq!((&import.unwrap()["line"], import.unwrap()["fix"].is_string()), (&json!(1), true));

    spec = good.clone();
    spec["code"]["source"] = json!("export async function execute(input: any) {\n  return { sum: input.a +; }\n}\n");
    let response = ask(&store, &mut events, &spec, "create").await;
    assert_eq!(errors(&response)[0].0, "syntax");
    assert_eq!(response["validation"]["errors"][0]["line"], 2);

    spec["code"]["source"] =
        json!("export async function execute(input: any) {\n  return { sum: input.a - input.b };\n}\n");
    let response = ask(&store, &mut events, &spec, "create").await;
    assert_eq!(errors(&response), [("example-fails".to_owned(), "examples[0]".to_owned())]);
    let example = &response["examples"][0];
    assert_eq!((&example["expected"], &example["actual"]), (&json!({"sum": 3}), &json!({"sum": -1})));
    assert_eq!(example["differences"][0]["path"], "$.sum");

    let response = ask(&store, &mut events, &good, "dry_run").await;
    assert_eq!((&response["status"], response.get("tool_id")), (&json!("dry_run"), None));
    let none = store.list(&BreadcrumbQuery::tagged("tool:adder")).await.unwrap();
    assert_eq!(none.len(), 0, "nothing is written before");

    let response = ask(&store, &mut events, &good, "create").await;
    assert_eq!(
        (&response["status"], &response["name"], &response["version"]),
        (&json!("created"), &json!("adder"), &json!("1.0.0"))
    );
    assert!(response["definition_hash"].as_str().unwrap().starts_with("sha256:"));
    let first = call(&store, &mut events, "adder", json!({"a": 20, "b": 22})).await;
    assert_eq!(first.output, Some(json!({"sum": 42})));

    // The name is taken now, for a new tool; a failing version does not replace a working one.
    let mut other = good.clone();
    other["description"] = json!("Another one.");
    assert_eq!(errors(&ask(&store, &mut events, &other, "create").await)[0].0, "name-exists");
    assert_eq!(ask(&store, &mut events, &spec, "update").await["status"], "rejected");
    assert_eq!(call(&store, &mut events, "adder", json!({"a": 1, "b": 1})).await.output, Some(json!({"sum": 2})));
    let updated = ask(&store, &mut events, &other, "update").await;
    assert_eq!((&updated["status"], &updated["record_version"]), (&json!("updated"), &json!(2)));
    let mut stale = request("stale", &good, "update");
    stale.context.insert("if_version".into(), json!(1));
    store.create(stale, None).await.unwrap();
    assert_eq!(errors(&next(&mut events, "request:stale").await)[0].0, "version-conflict");
    // A shipped tool belongs to another author.
    let mut shipped = good.clone();
    shipped["name"] = json!("read_file");
    assert_eq!(errors(&ask(&store, &mut events, &shipped, "create").await)[0].0, "name-taken");

    // Fields that are not in tool_spec, and one that is misspelled.
    let flat = call(&store, &mut events, "create_tool", good.clone()).await;
    assert!(flat.error.as_deref().unwrap().ends_with("input_schema: tool_spec: is required"), "{flat:?}");
    let changes = json!({"name": "adder", "changes": {"desc": "Adds."}});
    let output = call(&store, &mut events, "update_tool", changes).await.output.unwrap();
    let error = &output["validation"]["errors"][0];
    assert_eq!((&output["status"], &error["rule"]), (&json!("rejected"), &json!("misspelled-field")), "{output}");
    assert_eq!(error["message"], "is not a known field; did you mean description?");
    // The same as tools for models.
    let listed = call(&store, &mut events, "list_my_tools", json!({})).await.output.unwrap();
    assert_eq!(listed["tools"][0]["name"], "adder");
    let tested = call(&store, &mut events, "test_tool", json!({"name": "adder"})).await.output.unwrap();
    assert_eq!((&tested["passed"], &tested["examples"][0]["status"]), (&json!(true), &json!("passed")));
    let changes = json!({"name": "adder", "changes": {"version": "1.1.0"}, "if_version": 2});
    let updated = call(&store, &mut events, "update_tool", changes).await.output.unwrap();
    assert_eq!((&updated["status"], &updated["version"]), (&json!("updated"), &json!("1.1.0")));
    let described = call(&store, &mut events, "describe_tool", json!({"name": "adder"})).await.output.unwrap();
    assert_eq!((&described["is_yours"], &described["definition"]["version"]), (&json!(true), &json!("1.1.0")));
    let retired = call(&store, &mut events, "retire_tool", json!({"name": "adder"})).await.output.unwrap();
    assert_eq!(retired["retired"], true);
    let gone = call(&store, &mut events, "adder", json!({"a": 1, "b": 1})).await;
    assert_eq!(gone.error_code, Some(rcrt_breadcrumb::ErrorCode::ToolNotFound));
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_responses_of_creations_are_guarded_as_those_of_calls() {
    let (installation, up, store) = Installation::up().await;
    let mut events = store.events(None).await.unwrap();
    let mut wrong = request("wrong", &adder(), "upsert");
    wrong.context.remove("tool_spec");
    let refused = store.create(wrong, None).await.unwrap_err().to_string();
    assert!(refused.contains("context.tool_spec") && refused.contains("context.mode"), "{refused}");
    let forged = NewBreadcrumb {
        title: "Forged".into(),
        schema_name: Some("tool.create.response.v1".into()),
        ..NewBreadcrumb::default()
    };
    assert!(store.create(forged, None).await.is_err());
    let tagged =
        NewBreadcrumb { title: "Forged".into(), tags: vec!["tool:create:response".into()], ..NewBreadcrumb::default() };
    assert!(store.create(tagged, None).await.is_err());
    let response = ask(&store, &mut events, &adder(), "create").await;
    let kept = store.list(&BreadcrumbQuery::of_schema("tool.create.response.v1")).await.unwrap();
    assert_eq!(kept.len(), 1, "{response:?}");
    assert!(kept[0].tags.contains(&"tool:create:response".to_owned()));
    assert!(kept[0].tags.contains(&"workspace:tools".to_owned()));
    let request = store.list(&BreadcrumbQuery::of_schema("tool.create.request.v1")).await.unwrap()[0].id;
    assert_eq!(store.call(request).await.unwrap().state, CallState::Finished);
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

/// A client of a new agent of the tenant.
pub async fn agent(installation: &Installation, curator: &Client, name: &str) -> Client {
    let roles = vec![Role::Emitter, Role::Subscriber];
    let new = NewAgent { name: name.into(), roles, profile: Profile::Main, tools: None };
    let made = curator.create_agent(new).await.unwrap();
    let (owner_id, agent_id) = (made.agent.owner_id, made.agent.id);
    Client::new(installation.url(), Credentials::AgentKey { owner_id, agent_id, key: made.agent_key })
}

/// A tool that needs the network, which its example does not have.
fn weather() -> Value {
    let mut spec = adder();
    spec["name"] = json!("weather");
    spec["permissions"] = json!({"net": ["api.example.com"]});
    spec["code"]["source"] = json!(
        "export async function execute(input: any) {\n  if (input.a > 1) return { sum: 0 };\n  await fetch('https://api.example.com/');\n  return { sum: 3 };\n}\n"
    );
    spec
}

/// The same tool, whose example has the response of the network.
fn complete_weather() -> Value {
    let mut spec = weather();
    let exchange = json!({"request": {"url": "https://api.example.com/"}, "response": {"body": {}}});
    spec["examples"][0]["http"] = json!([exchange]);
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_whose_examples_do_not_run_is_its_authors_draft_until_it_is_published() {
    let (installation, up, curator) = Installation::up().await;
    let (author, other) =
        (agent(&installation, &curator, "author").await, agent(&installation, &curator, "other").await);
    let (mut events, mut others) = (author.events(None).await.unwrap(), other.events(None).await.unwrap());
    let two = || json!({"a": 2, "b": 2});

    let response = ask(&author, &mut events, &weather(), "create").await;
    assert_eq!((&response["status"], &response["draft"]), (&json!("created"), &json!(true)), "{response:?}");
    assert_eq!(response["examples"][0]["status"], "not_run");
    let warnings = response["validation"]["warnings"].as_array().unwrap();
    let why = warnings.iter().find(|warning| warning["rule"] == "draft").unwrap();
    assert!(why["fix"].as_str().unwrap().contains("rcrt tool publish weather"), "{why}");
    assert_eq!(call(&author, &mut events, "weather", two()).await.output, Some(json!({"sum": 0})));
    let refused = call(&other, &mut others, "weather", two()).await;
    assert_eq!(refused.error_code, Some(ErrorCode::ToolNotFound));
    let changes = json!({"name": "weather", "changes": {"version": "2.0.0"}});
    let refused = call(&other, &mut others, "update_tool", changes).await;
    assert_eq!(refused.error_code, Some(ErrorCode::InvalidArguments), "{refused:?}");

    // The author completes the example.
    let complete = complete_weather();
    let response = ask(&author, &mut events, &complete, "update").await;
    assert_eq!((&response["status"], &response["draft"]), (&json!("updated"), &json!(false)), "{response:?}");
    assert_eq!(call(&other, &mut others, "weather", two()).await.output, Some(json!({"sum": 0})));

    // The next version is a draft again: the others use the published one.
    let mut next = weather();
    next["code"]["source"] = json!(
        "export async function execute(input: any) {\n  if (input.a > 1) return { sum: 7 };\n  await fetch('https://api.example.com/');\n  return { sum: 3 };\n}\n"
    );
    let response = ask(&author, &mut events, &next, "update").await;
    assert_eq!((&response["draft"], &response["record_version"]), (&json!(true), &json!(3)), "{response:?}");
    assert_eq!(call(&author, &mut events, "weather", two()).await.output, Some(json!({"sum": 7})));
    assert_eq!(call(&other, &mut others, "weather", two()).await.output, Some(json!({"sum": 0})));
    assert!(author.publish_tool("weather", None, None).await.is_err(), "only a curator publishes");
    let published = curator.publish_tool("weather", None, Some(3)).await.unwrap();
    assert_eq!(published.record_version, 4);
    assert_eq!(call(&other, &mut others, "weather", two()).await.output, Some(json!({"sum": 7})));
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fix_of_an_example_that_is_not_run_names_what_it_lacks() {
    let (installation, up, store) = Installation::up().await;
    let mut events = store.events(None).await.unwrap();
    let mut calling = adder();
    calling["permissions"] = json!({"tools": ["calculator"]});
    calling["code"]["source"] = json!(
        "export async function execute(input: any, context: any) {\n  const found = await context.api.callTool('calculator', { expression: '1 + 2' });\n  return { sum: found.result };\n}\n"
    );
    for (spec, lacks) in [(calling, "Add `calls`"), (weather(), "Add `http`")] {
        let response = ask(&store, &mut events, &spec, "dry_run").await;
        let warnings = response["validation"]["warnings"].as_array().unwrap();
        let not_run = warnings.iter().find(|warning| warning["rule"] == "example-not-run").unwrap();
        assert!(not_run["fix"].as_str().unwrap().starts_with(lacks), "{not_run}");
    }
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_reserves_no_name() {
    let (installation, up, curator) = Installation::up().await;
    let (author, other) =
        (agent(&installation, &curator, "author").await, agent(&installation, &curator, "other").await);
    let (mut events, mut others) = (author.events(None).await.unwrap(), other.events(None).await.unwrap());
    let complete = complete_weather();

    for store in [(&author, &mut events), (&other, &mut others)] {
        let response = ask(store.0, store.1, &weather(), "create").await;
        assert_eq!((&response["status"], &response["draft"]), (&json!("created"), &json!(true)), "{response:?}");
    }
    let response = ask(&other, &mut others, &complete, "update").await;
    assert_eq!((&response["status"], &response["draft"]), (&json!("updated"), &json!(false)), "{response:?}");
    assert_eq!(call(&author, &mut events, "weather", json!({"a": 2, "b": 2})).await.metadata["tool_version"], 1);
    // The other draft stays one, and its author can still change and retire it.
    let response = ask(&author, &mut events, &complete, "update").await;
    assert_eq!((&response["status"], errors(&response)[0].0.as_str()), (&json!("rejected"), "name-taken"));
    let mut next = weather();
    next["description"] = json!("Adds, in another way.");
    let response = ask(&author, &mut events, &next, "update").await;
    assert_eq!((&response["status"], &response["draft"]), (&json!("updated"), &json!(true)), "{response:?}");
    let refused = curator.publish_tool("weather", None, None).await.unwrap_err().to_string();
    assert!(refused.contains("is the name of another tool"), "{refused}");
    let retired = call(&author, &mut events, "retire_tool", json!({"name": "weather"})).await.output.unwrap();
    assert_eq!(retired["retired"], true);
    // A tool whose newest version is a draft keeps its name by the version that serves.
    assert_eq!(ask(&other, &mut others, &weather(), "update").await["draft"], true);
    assert_eq!(errors(&ask(&author, &mut events, &complete, "create").await)[0].0, "name-taken");
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}
