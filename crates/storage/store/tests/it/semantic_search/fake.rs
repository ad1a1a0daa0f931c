//! An embedder that a test can observe and block.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rcrt_breadcrumb::{EmbedError, EmbedPriority, Embedder, EmbeddingModel};

/// A text's vector counts its letters, one dimension per letter.
#[derive(Debug)]
pub struct Fake {
    model: EmbeddingModel,
    is_local: bool,
    /// Every text of a record that it received.
    pub texts: Mutex<Vec<String>>,
    /// Never responds while this is set.
    pub is_stuck: AtomicBool,
}

impl Fake {
    pub fn new(id: &str, dimensions: usize) -> Arc<Self> {
        Arc::new(Self::of(id, dimensions, true))
    }

    /// An embedder on another machine.
    pub fn remote() -> Arc<Self> {
        Arc::new(Self::of("remote", 26, false))
    }

    fn of(id: &str, dimensions: usize, is_local: bool) -> Self {
        let model = EmbeddingModel { id: id.into(), dimensions };
        Self { model, is_local, texts: Mutex::default(), is_stuck: AtomicBool::new(false) }
    }

    pub fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.01_f32; self.model.dimensions];
        for letter in text.bytes().filter(u8::is_ascii_alphabetic) {
            vector[usize::from(letter.to_ascii_lowercase() - b'a') % self.model.dimensions] += 1.0;
        }
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.iter().map(|x| x / length).collect()
    }
}

#[async_trait]
impl Embedder for Fake {
    fn model(&self) -> Option<EmbeddingModel> {
        Some(self.model.clone())
    }

    async fn prepare(&self) -> Result<EmbeddingModel, EmbedError> {
        Ok(self.model.clone())
    }

    async fn embed(&self, texts: Vec<String>, priority: EmbedPriority) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.is_stuck.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let vectors = texts.iter().map(|text| self.vector(text)).collect();
        if priority == EmbedPriority::Records {
            self.texts.lock().unwrap().extend(texts);
        }
        Ok(vectors)
    }

    fn max_batch(&self) -> usize {
        4
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}
