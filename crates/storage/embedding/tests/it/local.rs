use std::sync::Arc;

use rcrt_breadcrumb::{EmbedError, EmbedPriority, Embedder};
use rcrt_embedding::Local;
use serde::Deserialize;
use tokio::sync::OnceCell;

/// Vectors of the reference implementation: transformers 4.49, mean over all tokens, length 1.
const GOLDEN: &str = include_str!("golden.json");

#[derive(Deserialize)]
struct Golden {
    text: String,
    vector: Vec<f32>,
}

static LOCAL: OnceCell<Arc<Local>> = OnceCell::const_new();

async fn local() -> Arc<Local> {
    LOCAL
        .get_or_init(|| async {
            let local = Arc::new(Local::new(rcrt_wheel::default_cache_dir()));
            local.prepare().await.unwrap();
            local
        })
        .await
        .clone()
}

fn cosine(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn vectors_match_the_reference_implementation() {
    let golden: Vec<Golden> = serde_json::from_str(GOLDEN).unwrap();
    let local = local().await;
    assert!(golden.len() <= local.max_batch());
    let texts = golden.iter().map(|one| one.text.clone()).collect();
    let vectors = local.embed(texts, EmbedPriority::Records).await.unwrap();
    for (golden, vector) in golden.iter().zip(&vectors) {
        let cosine = cosine(&golden.vector, vector);
        assert!(cosine > 0.9999, "{cosine}: {:?}", golden.text);
    }
}

#[tokio::test]
async fn similar_meaning_is_nearer_than_the_same_words() {
    let texts = ["How do I get my money back?", "Refunds are paid within a week.", "Money trees like half shade."];
    let vectors = local().await.embed(texts.map(str::to_owned).into(), EmbedPriority::Search).await.unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.1);
}

#[tokio::test]
async fn only_the_beginning_of_a_long_text_is_used() {
    let local = local().await;
    let long = "The river rose over its banks after the rain. ".repeat(1000);
    let texts = vec![long.clone(), format!("{long} And then they went to a concert.")];
    let vectors = local.embed(texts, EmbedPriority::Records).await.unwrap();
    assert_eq!(vectors[0], vectors[1]);
}

#[tokio::test]
async fn the_model_is_known_after_prepare() {
    let fresh = Local::new(rcrt_wheel::default_cache_dir());
    assert_eq!(fresh.model(), None);
    let model = fresh.prepare().await.unwrap();
    assert_eq!(model.dimensions, 384);
    assert_eq!(fresh.model(), Some(model));
    assert!(fresh.is_local());
}

#[tokio::test]
async fn a_search_does_not_wait_for_records_and_a_dropped_job_is_cancelled() {
    let local = local().await;
    let long = "words without an end ".repeat(200);
    let (busy, records) = (local.clone(), vec![long; 16]);
    let records = tokio::spawn(async move { busy.embed(records, EmbedPriority::Records).await });
    // Sixteen long texts take seconds, so a search that finishes first did not wait for them.
    local.embed(vec!["a question".into()], EmbedPriority::Search).await.unwrap();
    assert!(!records.is_finished());
    records.abort();
    assert!(records.await.unwrap_err().is_cancelled());
    let next = local.embed(vec!["the next".into()], EmbedPriority::Records).await.unwrap();
    assert_eq!(next[0].len(), 384);
}

#[tokio::test]
async fn a_failed_installation_is_reported() {
    let file = std::env::current_exe().unwrap();
    let error = Local::new(file.join("no folder")).prepare().await.unwrap_err();
    let EmbedError::Unavailable(text) = error else { panic!("{error:?}") };
    assert!(text.contains("the model for search by meaning cannot be installed"), "{text}");
}
