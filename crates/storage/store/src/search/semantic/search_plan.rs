//! How one search runs: its mode, and the vector of the query.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rcrt_breadcrumb::{EmbedError, EmbedPriority, EmbeddingModel, Search, SearchMode, StoreError, Violations};
use tokio::time::timeout;

use super::{EmbeddingState, SemanticSearch};

/// The most query vectors in the cache.
const MAX_CACHED_VECTORS: usize = 256;

/// How to search.
pub(crate) struct SearchPlan {
    pub(crate) mode: SearchMode,
    /// The database's number of the model and the query's vector, for every mode except text.
    pub(crate) vector: Option<(i32, Arc<[f32]>)>,
    pub(crate) fallback: Option<String>,
}

impl SearchPlan {
    fn by_words(fallback: Option<String>) -> Self {
        Self { mode: SearchMode::Text, vector: None, fallback }
    }
}

/// Vectors of earlier queries. The oldest are dropped first.
#[derive(Default)]
pub(super) struct QueryVectorCache(Mutex<CachedVectors>);

/// The vectors by query, and the queries in the order of their arrival.
type CachedVectors = (HashMap<String, Arc<[f32]>>, VecDeque<String>);

impl QueryVectorCache {
    fn get(&self, question: &str) -> Option<Arc<[f32]>> {
        self.0.lock().0.get(question).cloned()
    }

    fn keep(&self, question: &str, vector: Arc<[f32]>) {
        let mut known = self.0.lock();
        let (vectors, order) = &mut *known;
        if vectors.insert(question.to_owned(), vector).is_none() {
            order.push_back(question.to_owned());
        }
        if order.len() > MAX_CACHED_VECTORS
            && let Some(oldest) = order.pop_front()
        {
            vectors.remove(&oldest);
        }
    }
}

/// Chooses the mode and gets the query's vector. The caller has validated `search`. Uses no
/// database connection.
pub(crate) async fn plan(semantic_search: Option<&SemanticSearch>, search: &Search) -> Result<SearchPlan, StoreError> {
    let wanted = match (search.mode, &search.q, &search.qvec) {
        (Some(SearchMode::Text), ..) => return Ok(SearchPlan::by_words(None)),
        (Some(mode), ..) => mode,
        (None, None, _) => SearchMode::Vector,
        (None, Some(_), _) => SearchMode::Hybrid,
    };
    // Full-text search needs words, and a caller that did not ask for vectors alone.
    let can_fall_back = wanted == SearchMode::Hybrid && search.qvec.is_none();
    let Some(semantic_search) = semantic_search else {
        if search.mode.is_none() && can_fall_back {
            return Ok(SearchPlan::by_words(None));
        }
        let field = if search.mode.is_some() { "mode" } else { "qvec" };
        let message =
            "semantic search is off; start the server with --embeddings local (or an endpoint's URL), or use mode=text";
        return Err(Violations::one(field, message).into());
    };
    match vector(semantic_search, search).await? {
        Ok(vector) => Ok(SearchPlan { mode: wanted, vector: Some(vector), fallback: None }),
        Err(reason) if can_fall_back => Ok(SearchPlan::by_words(Some(reason))),
        Err(reason) => {
            Err(StoreError::Busy(format!("semantic search is unavailable: {reason}; try again, or use mode=text")))
        }
    }
}

/// The inner error says why there is no vector now.
async fn vector(
    semantic_search: &SemanticSearch,
    search: &Search,
) -> Result<Result<(i32, Arc<[f32]>), String>, StoreError> {
    if let EmbeddingState::Replaced { model } = &*semantic_search.state.borrow() {
        // The vectors of this process's model are being deleted.
        return Ok(Err(format!("records are embedded with another model now ({model})")));
    }
    let number = *semantic_search.model.borrow();
    let (Some(number), Some(model)) = (number, semantic_search.options.embedder.model()) else {
        return Ok(Err("the model is not ready yet".to_owned()));
    };
    if let Some(qvec) = &search.qvec {
        check(qvec, &model)?;
        return Ok(Ok((number, to_length_one(qvec))));
    }
    let question = search.q.as_deref().unwrap_or_default();
    if let Some(vector) = semantic_search.query_vectors.get(question) {
        return Ok(Ok((number, vector)));
    }
    let asked = semantic_search.options.embedder.embed(vec![question.to_owned()], EmbedPriority::Search);
    Ok(match timeout(semantic_search.options.timeout, asked).await {
        Ok(Ok(mut vectors)) => match vectors.pop() {
            Some(vector) if vector.len() == model.dimensions => {
                let vector: Arc<[f32]> = vector.into();
                semantic_search.query_vectors.keep(question, vector.clone());
                Ok((number, vector))
            }
            _ => Err("the embedder returned no vector of its model".to_owned()),
        },
        Ok(Err(error)) => {
            tracing::debug!(%error, "a query was not embedded");
            Err(match error {
                EmbedError::Unavailable(_) => "the embedder does not respond".to_owned(),
                EmbedError::Refused(_) => "the embedder refused this query".to_owned(),
            })
        }
        Err(_) => Err("the embedder took too long".to_owned()),
    })
}

fn check(qvec: &[f32], model: &EmbeddingModel) -> Result<(), Violations> {
    if qvec.len() == model.dimensions {
        return Ok(());
    }
    let message = format!("has {} numbers; vectors of the model {} have {}", qvec.len(), model.id, model.dimensions);
    Err(Violations::one("qvec", message))
}

/// Normalizes in f64: squares of the largest f32 values overflow in f32.
fn to_length_one(vector: &[f32]) -> Arc<[f32]> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    vector.iter().map(|number| (f64::from(*number) / length) as f32).collect()
}
