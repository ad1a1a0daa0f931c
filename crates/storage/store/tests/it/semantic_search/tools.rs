//! How well tools are found by the vectors that the store has of their records, by their words, and
//! by both: the labelled questions of the crate `tool_search`, with the local model.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rcrt_breadcrumb::{Embedder, NewBreadcrumb, Registration, schema_names::TOOL_V1};
use rcrt_conformance::harness::object;
use rcrt_embedding::Local;
use rcrt_tool_search::{MEANING_WEIGHT, Question, ServiceRecords, ToolSearch};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::fake::Fake;
use super::{World, options};

const TOOLS: &str = include_str!("../../../../../core/tool_search/tests/it/labelled/tools.json");
const QUESTIONS: &str = include_str!("../../../../../core/tool_search/tests/it/labelled/questions.json");

#[derive(Deserialize)]
struct Service {
    id: String,
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    description: String,
    arguments: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Labelled {
    kind: String,
    question: String,
    tools: Vec<String>,
}

/// A tool as an MCP server's tool is stored.
fn tool(service: &str, tool: &Tool) -> (NewBreadcrumb, Value) {
    let name = format!("{service}__{}", tool.name);
    let properties: Map<String, Value> =
        tool.arguments.iter().map(|(name, text)| (name.clone(), json!({"description": text}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let record = NewBreadcrumb {
        title: name.clone(),
        description: Some(tool.description.clone()),
        tags: vec!["tool".into(), format!("tool:{name}")],
        schema_name: Some(TOOL_V1.into()),
        context: object(json!({
            "name": name,
            "description": tool.description,
            "definition": {"inputSchema": schema},
            "implementation": {"type": "mcp", "server": service, "tool": tool.name},
        })),
        ..NewBreadcrumb::default()
    };
    let registration = json!({
        "name": name, "description": tool.description, "parameters": schema, "source": format!("mcp:{service}"),
        "tool_version": 1,
    });
    (record, registration)
}

/// The shares of questions whose tool is first, or among five; and whose service is among two.
#[derive(Debug, Clone, Copy, Default)]
struct Recall {
    asked: f64,
    first: f64,
    five: f64,
    service: f64,
}

impl Recall {
    fn of(search: &ToolSearch, questions: &[(&Labelled, Question)], weight: Option<f64>) -> Self {
        let mut sum = Self::default();
        for (labels, question) in questions {
            let question = weight.map_or(question.clone(), |weight| question.clone().with_meaning_weight(weight));
            let tools = search.tools(&question, |_| true, 5);
            let services = search.services(&question, |_| true, &ServiceRecords::default(), 2);
            let is_wanted = |name: &str| labels.tools.iter().any(|wanted| wanted == name);
            let is_service =
                |id: &str| labels.tools.iter().any(|tool| tool.split_once("__").is_some_and(|(one, _)| one == id));
            sum.asked += 1.0;
            sum.first += f64::from(u8::from(tools.first().is_some_and(|found| is_wanted(&found.name))));
            sum.five += f64::from(u8::from(tools.iter().any(|found| is_wanted(&found.name))));
            sum.service += f64::from(u8::from(services.iter().any(|found| is_service(&found.id))));
        }
        let share = |count: f64| count / sum.asked;
        Self { asked: sum.asked, first: share(sum.first), five: share(sum.five), service: share(sum.service) }
    }
}

#[tokio::test]
async fn tools_are_found_best_by_words_and_meaning_together() {
    let local = Arc::new(Local::new(rcrt_wheel::default_cache_dir()));
    local.prepare().await.unwrap();
    let world = World::with(options(local)).await;
    let services: Vec<Service> = serde_json::from_str(TOOLS).unwrap();
    let mut search = ToolSearch::default();
    for service in &services {
        for one in &service.tools {
            let (record, mut registration) = tool(&service.id, one);
            let id: Uuid = world.agent.create(record, None).await.unwrap().id;
            registration["tool_id"] = json!(id);
            search.insert(serde_json::from_value::<Registration>(registration).unwrap());
        }
        // Few at a time, because the wait for all of them has a limit.
        world.until_embedded(search.len() as i64).await;
    }

    let labelled: Vec<Labelled> = serde_json::from_str(QUESTIONS).unwrap();
    let mut questions = Vec::new();
    let mut by_words = Vec::new();
    for labels in &labelled {
        let question = Question::new("query", &labels.question).unwrap();
        by_words.push((labels, question.clone()));
        questions.push((labels, question.with_meaning(&*world.agent, &[], 0).await));
    }
    let words = Recall::of(&search, &by_words, None);
    let vectors = Recall::of(&search, &questions, Some(1.0));
    let both = Recall::of(&search, &questions, None);
    println!("words {words:?}\nvectors {vectors:?}\nboth {both:?}");
    let mut kinds: HashMap<&str, Vec<(&Labelled, Question)>> = HashMap::new();
    for (labels, question) in &questions {
        kinds.entry(labels.kind.as_str()).or_default().push((labels, question.clone()));
    }
    for (kind, questions) in &kinds {
        let by_words = Recall::of(&search, questions, Some(0.0));
        let (vectors, both) = (Recall::of(&search, questions, Some(1.0)), Recall::of(&search, questions, None));
        println!("{kind}: words {by_words:?}\n  vectors {vectors:?}\n  both {both:?}");
    }
    for other in [words, vectors] {
        assert!(both.first >= other.first && both.five >= other.five && both.service >= other.service);
    }
    assert!(both.first >= 0.7 && both.five >= 0.83 && both.service >= 0.83, "{both:?}");

    // No other weight finds more. One question more or less is chance.
    let quality = |recall: Recall| recall.first + recall.five;
    for step in 0..=20 {
        let weight = f64::from(step) / 20.0;
        let recall = Recall::of(&search, &questions, Some(weight));
        println!("weight {weight:.2}: {recall:?}");
        let margin = 1.5 / recall.asked;
        assert!(quality(recall) <= quality(both) + margin, "{weight} finds more than {MEANING_WEIGHT}");
    }
}

/// Of an agent that can call few tools the meaning of each counts, although a hundred other tools
/// are nearer to the question.
#[tokio::test]
async fn an_agent_that_can_call_few_tools_finds_them_by_their_meaning() {
    let world = World::with(options(Fake::new("letters", 26))).await;
    let own = [("a_far", "zzzaaaa "), ("b_near", "zzzyyyaaaa ")].map(|(name, text)| (name.to_owned(), text));
    let others = (0..120).map(|number| (format!("other{number}"), "zzzyyyxxx "));
    let (mut search, mut callable) = (ToolSearch::default(), Vec::new());
    for (name, text) in own.into_iter().chain(others) {
        let one = Tool { name, description: text.repeat(20), arguments: BTreeMap::new() };
        let (record, mut registration) = tool("s", &one);
        let id = world.agent.create(record, None).await.unwrap().id;
        registration["tool_id"] = json!(id);
        search.insert(serde_json::from_value::<Registration>(registration).unwrap());
        if callable.len() < 2 {
            callable.push(id);
        }
    }
    world.until_embedded(122).await;
    let question = Question::new("query", "yyxxzz").unwrap();
    let found = |question: &Question| -> Vec<String> {
        let found = search.tools(question, |tool| callable.contains(&tool.tool_id), 5);
        found.into_iter().map(|found| found.name).collect()
    };
    let compared = question.clone().with_meaning(&*world.agent, &callable, search.len()).await;
    assert_eq!(found(&compared), ["s__b_near", "s__a_far"]);
    // Otherwise it is only known that both are not among the nearest, so the names decide.
    let nearest = question.with_meaning(&*world.agent, &[], 0).await;
    assert_eq!(found(&nearest), ["s__a_far", "s__b_near"]);
}
