//! The trait of embedders, which turn texts into vectors for semantic search.

use async_trait::async_trait;

/// A model, by what can be told apart from outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EmbeddingModel {
    /// Changes whenever the vectors of the same text would: vectors of two models are never compared. 1 to 200 characters.
    pub id: String,
    /// How many numbers a vector has, 1 to 16,000.
    pub dimensions: usize,
}

/// Who waits for the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPriority {
    /// A search: it goes before everything that can wait.
    Search,
    /// Records that were written: when there is time.
    Records,
}

/// Why there are no vectors. The texts are for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// Not now; the same again can succeed.
    #[error("{0}")]
    Unavailable(String),
    /// Not these texts; others may do.
    #[error("{0}")]
    Refused(String),
}

/// Texts in, vectors out. Dropping a future gives the work up.
#[async_trait]
pub trait Embedder: std::fmt::Debug + Send + Sync + 'static {
    /// The model, once [`Embedder::prepare`] has made it ready. Never waits.
    fn model(&self) -> Option<EmbeddingModel>;

    /// Makes the model ready, which may take minutes the first time: it is downloaded, read, or asked for its dimensions.
    async fn prepare(&self) -> Result<EmbeddingModel, EmbedError>;

    /// One vector of length 1 for each text, in the order given. Takes at most [`Embedder::max_batch`] texts at once; of a text that is
    /// too long for the model, its beginning counts.
    async fn embed(&self, texts: Vec<String>, priority: EmbedPriority) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// How many texts are taken at once.
    fn max_batch(&self) -> usize;

    /// Whether texts stay on this machine. Those with personal data go nowhere else.
    fn is_local(&self) -> bool;
}
