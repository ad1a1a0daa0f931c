//! Search quality: 165 short documents on 15 topics with 45 questions in other words and 15 that
//! name one document; and 72 records of a company with 62 questions of three kinds, each answered
//! by one record.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rcrt_breadcrumb::{Embedder, NewBreadcrumb, Search, SearchMode, Selector};
use rcrt_conformance::harness::object;
use rcrt_embedding::Local;
use rcrt_store::EmbeddingOptions;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::{World, note, options, titles};

const TOPICS: &str = include_str!("labelled.tsv");
/// Its lines begin with `doc`, or with the kind of a question: `code`, `name` or `paraphrase`.
const CODES_AND_NAMES: &str = include_str!("codes_and_names.tsv");
const KINDS: [&str; 3] = ["code", "name", "paraphrase"];

/// Which documents answer which question, by title.
struct Labelled {
    documents: Vec<(&'static str, NewBreadcrumb)>,
    questions: Vec<Labels>,
}

struct Labels {
    kind: &'static str,
    question: &'static str,
    wanted: HashSet<&'static str>,
}

fn labelled(text: &'static str) -> Labelled {
    let mut documents = Vec::new();
    let mut questions = Vec::new();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let mut by_topic: HashMap<&str, HashSet<&str>> = HashMap::new();
    for line in lines.iter().filter(|line| line[0] == "doc") {
        let record = NewBreadcrumb {
            tags: vec![if documents.len() % 3 == 0 { "third" } else { "other" }.into()],
            schema_name: Some(if documents.len() % 2 == 0 { "even.v1" } else { "odd.v1" }.into()),
            context: object(json!({"text": line[3]})),
            ..note(line[2])
        };
        documents.push((line[2], record));
        by_topic.entry(line[1]).or_default().insert(line[2]);
    }
    for line in &lines {
        let wanted = match line[0] {
            "doc" => continue,
            "ask" => by_topic[line[1]].clone(),
            _ => HashSet::from([line[1]]),
        };
        questions.push(Labels { kind: line[0], question: line[2], wanted });
    }
    Labelled { documents, questions }
}

async fn model() -> Arc<Local> {
    let local = Arc::new(Local::new(rcrt_wheel::default_cache_dir()));
    local.prepare().await.unwrap();
    local
}

async fn filled(options: EmbeddingOptions, labelled: &Labelled) -> World {
    let world = World::with(options).await;
    for (_, record) in &labelled.documents {
        world.agent.create(record.clone(), None).await.unwrap();
    }
    world.until_embedded(labelled.documents.len() as i64).await;
    world
}

/// The normalized discounted cumulative gain of the first ten.
fn gain(found: &[&str], wanted: &HashSet<&str>) -> f64 {
    let worth = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let got: f64 = found.iter().enumerate().filter(|(_, one)| wanted.contains(*one)).map(|(at, _)| worth(at)).sum();
    got / (0..wanted.len().min(10)).map(worth).sum::<f64>()
}

#[tokio::test]
async fn hybrid_search_finds_better_than_either_mode_alone() {
    let labelled = labelled(TOPICS);
    assert!(labelled.documents.len() >= 150 && labelled.questions.len() >= 45);
    let world = filled(options(model().await), &labelled).await;
    let mut gains = HashMap::new();
    for mode in [SearchMode::Text, SearchMode::Vector, SearchMode::Hybrid] {
        let mut sum = 0.0;
        for Labels { question, wanted, .. } in &labelled.questions {
            let found = world.search(Search { mode: Some(mode), ..Search::of(*question) }).await;
            assert_eq!(found.mode, mode);
            sum += gain(&titles(&found), wanted);
        }
        gains.insert(mode.as_str(), sum / labelled.questions.len() as f64);
    }
    println!("nDCG@10: {gains:?}");
    assert!(gains["hybrid"] > gains["vector"] + 0.01 && gains["hybrid"] > gains["text"] + 0.01, "{gains:?}");
    assert!(gains["hybrid"] > 0.7, "{gains:?}");
}

/// The share of the questions of this kind whose record is among the first `most`.
async fn recall(world: &World, labelled: &Labelled, mode: SearchMode, kinds: &[&str], most: u32) -> f64 {
    let (mut found, mut asked) = (0, 0);
    for Labels { question, wanted, .. } in labelled.questions.iter().filter(|labels| kinds.contains(&labels.kind)) {
        let search = Search { mode: Some(mode), nn: most, ..Search::of(*question) };
        found += usize::from(titles(&world.search(search).await).iter().any(|title| wanted.contains(title)));
        asked += 1;
    }
    found as f64 / f64::from(asked)
}

#[tokio::test]
async fn hybrid_search_finds_codes_names_and_paraphrases() {
    let labelled = labelled(CODES_AND_NAMES);
    assert!(labelled.documents.len() >= 60 && labelled.questions.len() >= 60);
    let world = filled(options(model().await), &labelled).await;
    for kind in KINDS {
        for mode in [SearchMode::Text, SearchMode::Vector, SearchMode::Hybrid] {
            let first = recall(&world, &labelled, mode, &[kind], 1).await;
            println!(
                "{kind}, {}: {first:.2} / {:.2}",
                mode.as_str(),
                recall(&world, &labelled, mode, &[kind], 5).await
            );
        }
    }
    for most in [1, 5] {
        let [text, vector, hybrid] = [SearchMode::Text, SearchMode::Vector, SearchMode::Hybrid]
            .map(|mode| recall(&world, &labelled, mode, &KINDS, most));
        let (text, vector, hybrid) = (text.await, vector.await, hybrid.await);
        println!("recall@{most}: text {text:.2}, vector {vector:.2}, hybrid {hybrid:.2}");
        assert!(hybrid > text + 0.02 && hybrid > vector + 0.02, "{text} {vector} {hybrid}");
        assert!(hybrid > 0.9, "{hybrid}");
    }
    // Neither loses what the other one finds.
    for kind in ["code", "name"] {
        let found = recall(&world, &labelled, SearchMode::Hybrid, &[kind], 1).await;
        assert!(found > 0.95, "{kind}: {found}");
    }
    let [by_meaning, hybrid] =
        [SearchMode::Vector, SearchMode::Hybrid].map(|mode| recall(&world, &labelled, mode, &["paraphrase"], 1));
    assert!(hybrid.await >= by_meaning.await);
}

/// Codes that differ in one digit, in records that otherwise say the same.
#[tokio::test]
async fn a_code_in_a_question_is_found_among_similar_records() {
    const REASONS: [&str; 6] = ["lost", "slow", "full", "unreadable", "unknown to the service", "expired"];
    const PARTS: [&str; 10] = [
        "database",
        "mail relay",
        "payment provider",
        "file share",
        "index",
        "cache",
        "scheduler",
        "gateway",
        "archive",
        "printer",
    ];
    let mut labelled = Labelled { documents: Vec::new(), questions: Vec::new() };
    let parts = REASONS.iter().flat_map(|reason| PARTS.map(|part| format!("The {part} is {reason}.")));
    for (number, text) in parts.enumerate() {
        let code = 4700 + number;
        let title: &str = Box::leak(format!("Error E{code}").into_boxed_str());
        let question = Box::leak(format!("what does error E{code} mean").into_boxed_str());
        labelled.documents.push((title, NewBreadcrumb { context: object(json!({"text": text})), ..note(title) }));
        labelled.questions.push(Labels { kind: "code", question, wanted: HashSet::from([title]) });
    }
    let world = filled(options(model().await), &labelled).await;
    for mode in [SearchMode::Text, SearchMode::Hybrid] {
        let found = recall(&world, &labelled, mode, &["code"], 1).await;
        assert!(found > 0.98, "{mode:?}: {found}");
    }
}

#[tokio::test]
async fn the_index_finds_what_an_exact_search_finds() {
    let labelled = labelled(TOPICS);
    let local = model().await;
    let exact = filled(EmbeddingOptions { exact_up_to: 1_000_000, ..options(local.clone()) }, &labelled).await;
    // Another tenant's vectors fill the index: one of each twenty neighbours is this tenant's.
    let mut admin = PgConnection::connect(&exact.database.admin_url).await.unwrap();
    let crowd = sqlx::query(
        "WITH other AS (INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'other') RETURNING id)
         INSERT INTO breadcrumb_embeddings (owner_id, breadcrumb_id, model, checksum, embedding)
         SELECT other.id, gen_random_uuid(), a.model, a.checksum, l2_normalize(a.embedding + b.embedding)
         FROM other, breadcrumb_embeddings a CROSS JOIN LATERAL (
            SELECT b.embedding FROM breadcrumb_embeddings b WHERE b.breadcrumb_id <> a.breadcrumb_id
            ORDER BY md5(b.breadcrumb_id::text || a.breadcrumb_id::text) LIMIT 20) b",
    )
    .execute(&mut admin)
    .await
    .unwrap()
    .rows_affected();
    assert_eq!(crowd, 20 * labelled.documents.len() as u64);

    let filters = [
        json!({}),
        json!({"all_tags": ["third"]}),
        json!({"schema_name": "odd.v1"}),
        json!({"any_tags": ["third"], "schema_name": "even.v1"}),
    ];
    let searches: Vec<Search> = filters
        .iter()
        .flat_map(|filter| {
            let selector: Selector = serde_json::from_value(filter.clone()).unwrap();
            labelled.questions.iter().map(move |Labels { question, .. }| Search {
                mode: Some(SearchMode::Vector),
                selector: selector.clone(),
                ..Search::of(*question)
            })
        })
        .collect();
    let mut wanted = Vec::new();
    for search in &searches {
        wanted.push(exact.search(search.clone()).await);
    }
    // Every search uses the index.
    let indexed = exact.again(EmbeddingOptions { exact_up_to: 0, ..options(local) }).await;
    indexed.until("SELECT count(*) FROM embedding_models WHERE is_indexed", 1).await;
    let (mut found, mut there) = (0, 0);
    for (search, wanted) in searches.iter().zip(&wanted) {
        let wanted: HashSet<_> = wanted.items.iter().map(|item| item.id).collect();
        assert_eq!(wanted.len(), 10);
        there += wanted.len();
        found += indexed.search(search.clone()).await.items.iter().filter(|item| wanted.contains(&item.id)).count();
    }
    let recall = found as f64 / there as f64;
    println!("recall@10: {recall}");
    assert!(recall >= 0.95, "{recall}");
}
