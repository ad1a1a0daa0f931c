//! How far embedding is, for the operator.

use serde::Serialize;
use tokio::sync::watch;

use crate::Store;

/// How search by meaning stands in this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EmbeddingState {
    /// It was switched off: searches go by words.
    Off,
    /// The model is being installed, read or asked for; until then searches go by words.
    Preparing {
        /// Why the last attempt failed. It is repeated.
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
        /// Why the last attempt to embed failed. It is repeated.
        #[serde(skip_serializing_if = "Option::is_none")]
        trouble: Option<String>,
    },
    /// Another process embeds with another model that was chosen later.
    Replaced { model: String },
}

impl Store {
    /// How search by meaning stands, as this process saw it some seconds ago at most.
    pub fn embedding_state(&self) -> EmbeddingState {
        self.inner
            .semantic_search
            .as_ref()
            .map_or(EmbeddingState::Off, |semantic_search| semantic_search.state.borrow().clone())
    }

    /// Hears of each batch that was embedded and of each change of [`Store::embedding_state`]. `None` where it was switched off.
    pub fn embedding_changes(&self) -> Option<watch::Receiver<EmbeddingState>> {
        Some(self.inner.semantic_search.as_ref()?.state.subscribe())
    }
}
