//! Search quality: 165 short documents on 15 topics, 45 questions in other words, and 15 that name
//! one document.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rcrt_breadcrumb::{Embedder, NewBreadcrumb, Search, SearchMode, Selector};
use rcrt_conformance::harness::object;
use rcrt_embedding::Local;
use rcrt_store::EmbeddingOptions;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::{World, note, options, titles};

const LABELLED: &str = include_str!("labelled.tsv");

/// Which documents answer which question, by title.
struct Labelled {
    documents: Vec<(&'static str, NewBreadcrumb)>,
    questions: Vec<(&'static str, HashSet<&'static str>)>,
}

fn labelled() -> Labelled {
    let mut documents = Vec::new();
    let mut questions = Vec::new();
    let lines: Vec<Vec<&str>> = LABELLED.lines().map(|line| line.split('\t').collect()).collect();
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
        match line[0] {
            "ask" => questions.push((line[2], by_topic[line[1]].clone())),
            "find" => questions.push((line[2], HashSet::from([line[1]]))),
            _ => {}
        }
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
    let labelled = labelled();
    assert!(labelled.documents.len() >= 150 && labelled.questions.len() >= 45);
    let world = filled(options(model().await), &labelled).await;
    let mut gains = HashMap::new();
    for mode in [SearchMode::Text, SearchMode::Vector, SearchMode::Hybrid] {
        let mut sum = 0.0;
        for (question, wanted) in &labelled.questions {
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

#[tokio::test]
async fn the_index_finds_what_an_exact_search_finds() {
    let labelled = labelled();
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
            labelled.questions.iter().map(move |(question, _)| Search {
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
