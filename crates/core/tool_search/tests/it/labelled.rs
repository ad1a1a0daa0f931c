//! How well the words alone find: 343 tools of 29 services, and 214 questions of four kinds.
//! `store/tests/it/semantic_search/tools.rs` measures the vectors, and both together.

use std::collections::BTreeMap;

use rcrt_breadcrumb::Registration;
use rcrt_tool_search::{ServiceRecords, ToolSearch};
use serde::Deserialize;

use crate::{question, search_of, tool};

const TOOLS: &str = include_str!("labelled/tools.json");
const QUESTIONS: &str = include_str!("labelled/questions.json");

#[derive(Deserialize)]
struct LabelledService {
    id: String,
    tools: Vec<LabelledTool>,
}

#[derive(Deserialize)]
struct LabelledTool {
    name: String,
    description: String,
    arguments: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct LabelledQuestion {
    kind: String,
    question: String,
    /// Each of them answers it.
    tools: Vec<String>,
}

fn registrations() -> Vec<Registration> {
    let services: Vec<LabelledService> = serde_json::from_str(TOOLS).unwrap();
    assert!(services.len() >= 25);
    let of_service = |service: LabelledService| {
        let source = format!("mcp:{}", service.id);
        service.tools.into_iter().map(move |one| {
            let arguments: Vec<(&str, &str)> =
                one.arguments.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            tool(&format!("{}__{}", service.id, one.name), &source, &one.description, &arguments)
        })
    };
    services.into_iter().flat_map(of_service).collect()
}

fn search() -> ToolSearch {
    let search = search_of(registrations());
    assert!(search.len() >= 300);
    search
}

#[test]
fn words_alone_find_most_tools() {
    let search = search();
    let questions: Vec<LabelledQuestion> = serde_json::from_str(QUESTIONS).unwrap();
    assert!(questions.len() >= 150);
    // By kind: asked, first, among five, and the service among two.
    let mut found: BTreeMap<&str, [f64; 4]> = BTreeMap::new();
    for one in &questions {
        let tools = search.tools(&question(&one.question), |_| true, 5);
        let is_wanted = |found: &rcrt_tool_search::FoundTool| one.tools.contains(&found.name);
        let services = search.services(&question(&one.question), |_| true, &ServiceRecords::default(), 2);
        let is_service = services.iter().any(|service| {
            one.tools.iter().any(|tool| tool.split_once("__").is_some_and(|(server, _)| server == service.id))
        });
        let hits = [true, tools.first().is_some_and(is_wanted), tools.iter().any(is_wanted), is_service];
        for kind in [one.kind.as_str(), "all"] {
            let sums = found.entry(kind).or_default();
            sums.iter_mut().zip(hits).for_each(|(sum, hit)| *sum += f64::from(u8::from(hit)));
        }
    }
    for (kind, [asked, first, five, service]) in &found {
        let [first, five, service] = [first, five, service].map(|sum| sum / asked);
        println!("{kind}: {asked} questions, recall@1 {first:.3}, recall@5 {five:.3}, service@2 {service:.3}");
        let least = match *kind {
            "words" => [0.95, 1.0, 1.0],
            "code" => [0.8, 0.95, 0.9],
            "misspelling" => [0.7, 0.9, 0.9],
            "paraphrase" => [0.3, 0.48, 0.5],
            _ => [0.55, 0.69, 0.7],
        };
        assert!(first >= least[0] && five >= least[1] && service >= least[2], "{kind}");
    }
}

/// The first result of an exact question scores high, and that of a question that no tool answers
/// scores low, whatever the other results are.
#[test]
fn scores_of_different_questions_can_be_compared() {
    let search = search();
    let best = |text: &str| search.tools(&question(text), |_| true, 1).first().map_or(0.0, |found| found.score);
    let (mut good, mut bad): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for text in ["merge pull request", "hourly forecast", "void invoice", "flight status", "trial balance"] {
        good.push(best(text));
    }
    for text in [
        "philosophy of the ancient stoics and their letters",
        "knitting a woollen jumper with cables",
        "who won the chess championship in 1972",
        "quantum chromodynamics lattice gauge weather",
        "zzzz qqqq",
    ] {
        bad.push(best(text));
    }
    let (lowest, highest) = (good.iter().copied().fold(1.0, f64::min), bad.iter().copied().fold(0.0, f64::max));
    assert!(good.iter().chain(&bad).all(|score| (0.0..=1.0).contains(score)));
    assert!(lowest > highest + 0.15, "{good:?} {bad:?}");
}
