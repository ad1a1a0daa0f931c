//! A search of 10,000 tools in memory, in turns with a scan of all their texts.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::ensure;
use rcrt_breadcrumb::Registration;
use rcrt_load::{Histogram, Row};
use rcrt_tool_search::{Question, ToolSearch};
use serde_json::json;
use uuid::Uuid;

use crate::run::{Run, millis};

const SECTION: &str = "search over tools";
const TOOLS: usize = 10_000;
const SEARCHES: usize = 500;
const MOST: Duration = Duration::from_millis(5);
/// Parts of names and descriptions. Some are in nearly every tool, as in real catalogs.
const VERBS: [&str; 10] =
    ["create", "list", "get", "update", "delete", "search", "send", "export", "approve", "archive"];
const THINGS: [&str; 20] = [
    "issue",
    "invoice",
    "message",
    "ticket",
    "deployment",
    "contact",
    "event",
    "document",
    "order",
    "payment",
    "user",
    "report",
    "alert",
    "shipment",
    "page",
    "branch",
    "snapshot",
    "metric",
    "subscription",
    "file",
];

/// Repeatable numbers.
fn words(random: &mut fastrand::Rng, many: usize) -> String {
    let word = |random: &mut fastrand::Rng| match random.usize(..4) {
        0 => VERBS[random.usize(..VERBS.len())].to_owned(),
        1 => THINGS[random.usize(..THINGS.len())].to_owned(),
        // Few of them are frequent.
        _ => {
            let most = random.usize(1..5_000);
            format!("word{}", random.usize(..most))
        }
    };
    (0..many).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

fn tool(number: usize, random: &mut fastrand::Rng) -> Registration {
    let server = format!("server{}", number / 40);
    let (verb, thing) = (VERBS[random.usize(..VERBS.len())], THINGS[random.usize(..THINGS.len())]);
    let arguments: serde_json::Map<String, serde_json::Value> =
        (0..5).map(|_| (words(random, 1), json!({"type": "string", "description": words(random, 6)}))).collect();
    Registration {
        name: format!("{server}__{verb}_{thing}_{number}"),
        description: words(random, 25),
        parameters: json!({"type": "object", "properties": arguments}),
        output_schema: None,
        source: rcrt_breadcrumb::ToolSource::Mcp(server),
        annotations: rcrt_breadcrumb::Annotations::default(),
        deprecated: None,
        tags: vec!["tool".into()],
        tool_id: Uuid::from_u128(number as u128),
        tool_version: 1,
    }
}

/// Counts the words of the question in each text, which is the least that an answer without an
/// index does.
fn scan(texts: &[String], question: &str) -> Option<usize> {
    let wanted: Vec<&str> = question.split_whitespace().collect();
    let found = |text: &String| wanted.iter().filter(|word| text.contains(*word)).count();
    (0..texts.len()).max_by_key(|number| found(&texts[*number]))
}

// Awaited like the other targets.
#[allow(clippy::unused_async)]
pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::with_seed(7);
    let tools: Vec<Registration> = (0..TOOLS).map(|number| tool(number, &mut random)).collect();
    let texts: Vec<String> =
        tools.iter().map(|tool| format!("{} {} {}", tool.name, tool.description, tool.parameters)).collect();
    let mut search = ToolSearch::default();
    let begun = Instant::now();
    for tool in tools {
        ensure!(search.insert(tool), "there is no room for {TOOLS} tools");
    }
    let filled = begun.elapsed();

    let (mut searched, mut scanned) = (Histogram::new(), Histogram::new());
    for _ in 0..run.times(SEARCHES) {
        // Two of its words are in thousands of tools.
        let (verb, thing) = (VERBS[random.usize(..VERBS.len())], THINGS[random.usize(..THINGS.len())]);
        let text = format!("{verb} the {thing} {}", words(&mut random, 5));
        let begun = Instant::now();
        let question = Question::new("query", &text)?;
        let found = search.tools(&question, |tool| !tool.name.is_empty(), 5);
        searched.record(begun.elapsed());
        ensure!(found.len() == 5, "{text:?} found {} tools", found.len());
        let begun = Instant::now();
        black_box(scan(&texts, &text));
        scanned.record(begun.elapsed());
    }
    let scan = millis(scanned.quantile(0.5));
    run.push(Row::new(SECTION, "a scan of all texts, p50", scan, "ms").note("10,000 tools; counts words only"));
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let took = searched.quantile(quantile);
        run.push(
            Row::new(SECTION, format!("a search of 10,000 tools, {name}"), millis(took), "ms")
                .target("under 5 ms", took < MOST)
                .ratio(scan, "a scan of all texts, p50")
                .note("by words; the vectors of a search come from the database"),
        );
    }
    run.push(Row::new(SECTION, "filling the index", millis(filled), "ms").note("10,000 tools, once for each process"));
    Ok(())
}
