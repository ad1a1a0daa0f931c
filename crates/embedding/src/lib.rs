//! Texts to vectors, two ways: [`Local`], a small sentence model that runs on this machine's processor in plain Rust, and
//! [`Endpoint`], a service that speaks OpenAI's protocol for embeddings (OpenAI's own, Ollama).
//!
//! Both are a [`breadcrumb::Embedder`]. This crate deliberately does not know what the texts are, who may see them or where the vectors
//! are kept; which text may go to which embedder is the store's to decide.

mod endpoint;
mod local;

pub use endpoint::{Endpoint, EndpointError, EndpointOptions};
pub use local::Local;

/// Divides by the length, so that the cosine of two vectors is their product. A vector without a direction stays as it is.
fn to_length_one(vector: &mut [f32]) {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if length > 0.0 {
        for x in vector.iter_mut() {
            *x = (f64::from(*x) / length) as f32;
        }
    }
}
