//! Turns texts into vectors, in two ways: [`Local`], a small sentence model in plain Rust on this
//! machine's processor, and [`Endpoint`], a service with OpenAI's protocol for embeddings (OpenAI
//! itself, Ollama).
//!
//! Both implement [`rcrt_breadcrumb::Embedder`]. This crate deliberately does not know what the
//! texts are, who can see them or where the vectors are stored. The store decides which text is
//! sent to which embedder.
//!
//! Begin with `endpoint.rs` and `local/mod.rs`.
//!
//! # Example
//! ```no_run
//! use rcrt_breadcrumb::{EmbedError, EmbedPriority, Embedder};
//! use rcrt_embedding::Local;
//!
//! async fn similarity(cache: std::path::PathBuf) -> Result<f32, EmbedError> {
//!     let embedder = Local::new(cache);
//!     let model = embedder.prepare().await?; // Downloads the model once.
//!     let texts = vec!["a cat".to_owned(), "a kitten".to_owned()];
//!     let vectors = embedder.embed(texts, EmbedPriority::Records).await?;
//!     assert_eq!(vectors[0].len(), model.dimensions);
//!     Ok(vectors[0].iter().zip(&vectors[1]).map(|(a, b)| a * b).sum())
//! }
//! ```

mod endpoint;
mod local;

pub use endpoint::{Endpoint, EndpointError, EndpointOptions};
pub use local::Local;

/// Divides by the length, so that the cosine of two vectors is their dot product. A zero vector is
/// not changed.
fn to_length_one(vector: &mut [f32]) {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if length > 0.0 {
        for x in vector.iter_mut() {
            *x = (f64::from(*x) / length) as f32;
        }
    }
}
