//! The progress of embedding, for the operator.

use serde::Serialize;

/// The state of semantic search in this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EmbeddingState {
    /// Switched off: searches use full text.
    Off,
    /// The model is being installed, loaded or queried. Until then searches use full text.
    Preparing {
        /// Why the last attempt failed. It is retried.
        #[serde(skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    Ready {
        model: String,
        dimensions: usize,
        /// Records whose text may have changed, in all tenants; at most 100,000 are counted.
        waiting: u64,
        /// Tenants whose older records are still being queued.
        tenants_walked: u64,
        /// Why the last attempt to embed failed. It is retried.
        #[serde(skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    /// Another process embeds with a model that was chosen later.
    Replaced { model: String },
}
