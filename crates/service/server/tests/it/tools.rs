//! The catalog over HTTP.

use rcrt_breadcrumb::{Annotations, Catalog, Profile, Registration, Role, ToolFormat, ToolSource, Waiting};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{World, answer};

fn tool(name: &str) -> Registration {
    Registration {
        name: name.into(),
        description: format!("What {name} does."),
        parameters: json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        output_schema: None,
        source: ToolSource::Native,
        tags: Vec::new(),
        annotations: Annotations::default(),
        deprecated: None,
        tool_id: Uuid::from_u128(5),
        tool_version: 1,
    }
}

pub fn catalog() -> Catalog {
    let said = Registration { parameters: json!({"type": "string"}), ..tool("say") };
    let missing_requirements = vec!["Secret BRAVE_API_KEY is not there.".into()];
    let waiting = Waiting {
        name: "web_search".into(),
        source: ToolSource::Native,
        tags: Vec::new(),
        tool_id: Uuid::from_u128(6),
        missing_requirements,
    };
    let tools = vec![tool("echo"), tool("cancel_scheduled_task"), tool("weather.now"), said];
    Catalog::new(tools, vec![waiting])
}

/// The catalog, written as a runner of the tenant writes it.
pub async fn offer(world: &World, tenant: Uuid) {
    publish(world, tenant, &catalog()).await;
}

/// Writes a catalog as a runner does.
pub async fn publish(world: &World, tenant: Uuid, catalog: &Catalog) {
    let runner = world.runner(tenant);
    for record in catalog.records() {
        runner.create(record, None).await.unwrap();
    }
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_catalog_has_every_format_filtered_by_profile() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Subscriber]).await;
    assert_eq!(world.get("/tools", &token).await.ok().json(), json!({"tools": [], "waiting": []}));
    offer(&world, tenant).await;

    let all = world.get("/tools", &token).await.ok().json();
    assert_eq!(all, json!(catalog()));
    assert_eq!(names(&all["tools"]), ["cancel_scheduled_task", "echo", "say", "weather.now"]);
    for format in ToolFormat::ALL {
        let listed = world.get(&format!("/tools?format={format}"), &token).await.ok().json();
        assert_eq!(listed, catalog().in_format(format), "{format}");
    }
    world.get("/tools?format=xml", &token).await.violation("format");
    world.get("/tools?profile=king", &token).await.violation("profile");
    world.get("/tools?page=2", &token).await.violation("page");
    for (query, found) in
        [("tool=echo&tool=say", vec!["echo", "say"]), ("tag=none", vec![]), ("tag=none&tool=say", vec!["say"])]
    {
        let listed = world.get(&format!("/tools?{query}"), &token).await.ok().json();
        assert_eq!((names(&listed["tools"]), &listed["waiting"]), (found, &json!([])), "{query}");
    }

    // The profile of the token applies; a parameter can only narrow it.
    let (_, subagent) = world.agent_of(tenant, &[Role::Emitter], Profile::Subagent).await;
    for (path, token) in
        [("/tools", &subagent), ("/tools?profile=main", &subagent), ("/tools?profile=subagent", &token)]
    {
        let seen = world.get(path, token).await.ok().json();
        assert_eq!(names(&seen["tools"]), ["echo", "say", "weather.now"], "{path}");
    }
    // Another tenant has its own catalog.
    let stranger = world.token(&[Role::Emitter]).await;
    assert_eq!(world.get("/tools", &stranger).await.ok().json(), json!({"tools": [], "waiting": []}));
    world.close().await;
}

#[tokio::test]
async fn tools_are_ranked_for_a_text_among_those_that_the_caller_can_call() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    assert_eq!(
        world.get("/tools?for=rain", &token).await.ok().json(),
        json!({"tools": [], "waiting": [], "hints": []})
    );
    let described = |name: &str, source: &str, description: &str| Registration {
        description: description.into(),
        source: source.parse().unwrap(),
        ..tool(name)
    };
    let tools = vec![
        described("sky__forecast", "mcp:sky", "The weather of the next days."),
        described("sky__radar", "mcp:sky", "A picture of the rain."),
        described("cancel_scheduled_task", "native", "Cancels a weather report that was planned."),
        described("say", "native", "Says something."),
    ];
    publish(&world, tenant, &Catalog::new(tools, Vec::new())).await;
    let ranked = world.get("/tools?for=weather+of+the+next+days", &token).await.ok().json();
    assert_eq!(names(&ranked["tools"]), ["sky__forecast", "cancel_scheduled_task"]);
    let scores: Vec<f64> =
        ranked["tools"].as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores[0] > scores[1] && scores[1] > 0.0 && scores[0] <= 1.0, "{scores:?}");
    assert_eq!(ranked["tools"][0]["parameters"], tool("echo").parameters);
    let hints = ranked["hints"].as_array().unwrap();
    assert_eq!((&hints[0]["id"], &hints[0]["type"]), (&json!("sky"), &json!("mcp")));
    assert_eq!(hints[0]["top_tools"], json!(["sky__forecast", "sky__radar"]));
    assert!(hints.len() <= 2 && hints[0]["relevance_score"].as_f64().unwrap() > 0.0);

    // A server says itself what it is for, and is found by that.
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let says = "For\nsailors: barometer and wind.";
    for (schema, context) in [
        ("mcp.server.v1", json!({"name": "sky", "transport": {"type": "stdio", "command": "sky"}})),
        ("mcp.status.v1", json!({"server": "sky", "state": "connected", "tools": [], "instructions": says})),
    ] {
        let record = json!({"title": "sky", "schema_name": schema, "context": context});
        world.post("/breadcrumbs", &curator, record).await.ok();
    }
    let found = world.get("/tools?for=look+at+the+barometer", &token).await.ok().json();
    assert_eq!(found["hints"][0]["id"], "sky", "{found}");
    assert_eq!(found["hints"][0]["summary"], "For sailors: barometer and wind.");

    // Two words ask for nothing that is worth a hint.
    assert_eq!(world.get("/tools?for=weather+days", &token).await.ok().json()["hints"], json!([]));
    let one = world.get("/tools?for=weather&limit=1&format=anthropic", &token).await.ok().json();
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert!(one[0].get("score").is_none() && one[0].get("input_schema").is_some());

    // A subagent cannot call the native tool; a profile in the query narrows too.
    let (_, subagent) = world.agent_of(tenant, &[Role::Emitter], Profile::Subagent).await;
    for (path, token) in [("/tools?for=weather", &subagent), ("/tools?for=weather&profile=subagent", &token)] {
        assert_eq!(names(&world.get(path, token).await.ok().json()["tools"]), ["sky__forecast"]);
    }
    world.get("/tools?for=", &token).await.violation("for");
    world.get(&format!("/tools?for={}", "x".repeat(1001)), &token).await.violation("for");
    world.get("/tools?limit=3", &token).await.violation("limit");
    world.get("/tools?for=rain&limit=0", &token).await.violation("limit");
    world.close().await;
}

/// The others are in other parts of the catalog.
#[tokio::test]
async fn one_of_many_tools_is_read_as_one_of_few() {
    let world = World::start().await;
    let (few, many) = (world.tenant().await, world.tenant().await);
    let Catalog { mut tools, waiting } = catalog();
    let long = |number| Registration { description: "x".repeat(3000), ..tool(&format!("ledger_{number}")) };
    tools.extend((0..200).map(long));
    let whole = Catalog::new(tools, waiting);
    assert!(whole.records().len() >= 16, "{} parts", whole.records().len());
    offer(&world, few).await;
    publish(&world, many, &whole).await;
    let made = ToolFormat::OpenAi.name("weather.now");
    for profile in [Profile::Main, Profile::Subagent] {
        let (_, of_few) = world.agent_of(few, &[Role::Emitter], profile).await;
        let (_, of_many) = world.agent_of(many, &[Role::Emitter], profile).await;
        for name in ["echo", "weather.now", &made, "web_search", "say", "cancel_scheduled_task", "ecko"] {
            for format in ToolFormat::ALL {
                let path = format!("/tools/{name}?format={format}");
                let (expected, found) = (world.get(&path, &of_few).await, world.get(&path, &of_many).await);
                assert_eq!((found.status, found.json()), (expected.status, expected.json()), "{path}");
            }
        }
    }
    world.close().await;
}

/// An application that gives the tools to a model itself.
#[tokio::test]
async fn a_model_is_offered_five_of_three_thousand_tools() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    let described = |name: &str, description: &str| Registration { description: description.into(), ..tool(name) };
    let mut tools: Vec<Registration> =
        (1..3_000).map(|number| described(&format!("ledger_{number}"), "Books a payment.")).collect();
    tools.push(described("refund_charge", "Gives the money of a payment back."));
    publish(&world, tenant, &Catalog::new(tools, Vec::new())).await;
    let all = world.get("/tools", &token).await.ok().json();
    assert_eq!(all["tools"].as_array().unwrap().len(), 3_000);
    let path = "/tools?for=give+the+money+of+a+payment+back&limit=5&format=openai";
    let offered = world.get(path, &token).await.ok().json();
    let offered: Vec<&str> =
        offered.as_array().unwrap().iter().map(|one| one["function"]["name"].as_str().unwrap()).collect();
    assert_eq!((offered.len(), offered[0]), (5, "refund_charge"), "{offered:?}");
    world.close().await;
}

#[tokio::test]
async fn a_tool_is_not_offered_after_its_last_day() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    let deprecated = |name: &str, last: &str| Registration {
        deprecated: Some(
            serde_json::from_value(json!({"since": "2020-01-31", "use": "echo", "remove_after": last})).unwrap(),
        ),
        ..tool(name)
    };
    let tools = vec![tool("echo"), deprecated("ending", "2999-12-31"), deprecated("ended", "2020-12-31")];
    publish(&world, tenant, &Catalog::new(tools, Vec::new())).await;
    let listed = world.get("/tools", &token).await.ok().json();
    assert_eq!(names(&listed["tools"]), ["echo", "ending"]);
    assert_eq!(listed["tools"][1]["deprecated"]["remove_after"], "2999-12-31");
    assert_eq!(names(&world.get("/tools?format=anthropic", &token).await.ok().json()), ["echo", "ending"]);
    world.get("/tools/ending?format=openai", &token).await.ok();
    for format in ToolFormat::ALL {
        let problem = world.get(&format!("/tools/ended?format={format}"), &token).await.problem(404, "tool_not_found");
        let why = problem["detail"].as_str().unwrap();
        assert!(why.ends_with("was removed after 2020-12-31; use echo instead"), "{why}");
        assert_eq!(problem["nearest"], json!(["echo"]));
    }
    world.close().await;
}

#[tokio::test]
async fn a_tool_is_read_by_its_name_or_its_name_in_a_format() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Emitter]).await;
    offer(&world, tenant).await;
    assert_eq!(world.get("/tools/echo", &token).await.ok().json(), json!(tool("echo")));
    let openai = world.get("/tools/weather.now?format=openai", &token).await.ok().json();
    let other_name = openai["function"]["name"].as_str().unwrap();
    assert_ne!(other_name, "weather.now");
    assert_eq!(world.get(&format!("/tools/{other_name}"), &token).await.ok().json(), json!(tool("weather.now")));

    let waiting = world.get("/tools/web_search", &token).await.ok().json();
    assert_eq!(waiting["missing_requirements"], json!(["Secret BRAVE_API_KEY is not there."]));
    let refused = world.get("/tools/web_search?format=mcp", &token).await.problem(404, "tool_not_found");
    assert!(refused["detail"].as_str().unwrap().contains("BRAVE_API_KEY"), "{refused}");
    assert!(world.get("/tools/say?format=openai", &token).await.violation("format").contains("never an object"));

    let unknown = world.get("/tools/ecko", &token).await.problem(404, "tool_not_found");
    assert_eq!(unknown["nearest"], json!(["echo"]));
    assert!(unknown["detail"].as_str().unwrap().contains("echo"), "{unknown}");
    let (_, subagent) = world.agent_of(tenant, &[Role::Emitter], Profile::Subagent).await;
    let closed = world.get("/tools/cancel_scheduled_task", &subagent).await.problem(404, "tool_not_found");
    let why = closed["detail"].as_str().unwrap();
    assert!(why.starts_with("the profile subagent does not allow the tool cancel_scheduled_task;"), "{why}");
    let near = world.get("/tools/cancel_scheduled_tasks", &subagent).await.problem(404, "tool_not_found");
    assert_eq!(near["nearest"], Value::Null, "no name outside the profile");
    world.get(&format!("/tools/{}", "x".repeat(201)), &token).await.violation("name");
    world.get("/tools/%00", &token).await.violation("name");
    world.close().await;
}

#[tokio::test]
async fn only_runners_can_write_catalog_records() {
    let world = World::start().await;
    let (_, token) = world.agent(world.tenant().await, &[Role::Emitter]).await;
    let record = json!(catalog().records()[0]);
    world.post("/breadcrumbs", &token, record).await.problem(403, "forbidden");
    let note = world.create(&token, crate::harness::note("mine")).await;
    let patch = world.request("PATCH", &format!("/breadcrumbs/{note}"), &token).header("If-Match", "1");
    answer(patch.json(&json!({"schema_name": "tool.catalog.v1"}))).await.problem(403, "forbidden");
    world.close().await;
}
