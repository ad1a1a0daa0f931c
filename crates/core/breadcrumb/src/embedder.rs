//! The trait of embedders, which turn texts into vectors for semantic search.

use async_trait::async_trait;

/// Identifies an embedding model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EmbeddingModel {
    /// Changes whenever the vectors of a text would change. Vectors of different models are never
    /// compared. 1 to 200 characters.
    pub id: String,
    /// The length of a vector, 1 to 16,000.
    pub dimensions: usize,
}

/// Who waits for the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbedPriority {
    /// A search. It goes before all work that can wait.
    Search,
    /// Written records. They can wait.
    Records,
}

/// Why texts could not be embedded. The messages are for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// Temporary: a retry can succeed.
    #[error("{0}")]
    Unavailable(String),
    /// These texts were refused; others may work.
    #[error("{0}")]
    Refused(String),
}

/// Turns texts into vectors. Dropping a future cancels its work.
#[async_trait]
pub trait Embedder: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the model once [`Embedder::prepare`] has prepared it. Never blocks.
    fn model(&self) -> Option<EmbeddingModel>;

    /// Prepares the model. This can take minutes the first time: the model is downloaded, loaded,
    /// or asked for its dimensions.
    async fn prepare(&self) -> Result<EmbeddingModel, EmbedError>;

    /// Returns one vector of length 1 for each text, in the order given. Accepts at most
    /// [`Embedder::max_batch`] texts. If a text is too long for the model, only its beginning
    /// counts.
    async fn embed(&self, texts: Vec<String>, priority: EmbedPriority) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// The most texts in one batch.
    fn max_batch(&self) -> usize;

    /// Whether texts stay on this machine. Texts with personal data are not sent elsewhere.
    fn is_local(&self) -> bool;
}
