//! Semantic search: records become vectors after they were written, and a query is compared with
//! them.
//!
//! [`follower`] queues changed records. [`worker`] embeds the queued records. [`search_plan`] gets
//! the query's vector from the embedder, [`nearest`] queries the database with it, and [`fusion`]
//! combines the result with full-text search. Writers do not wait for any of it, and searches only
//! briefly: without a model that responds, a search uses full text.

mod backfill;
mod batch;
mod follower;
mod fusion;
mod index;
mod nearest;
mod search_plan;
mod state;
mod text;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{Embedder, schema_names};
use tokio::sync::{Notify, watch};

pub(crate) use self::follower::EmbeddingFollower;
pub(crate) use self::fusion::fuse;
pub(crate) use self::nearest::{nearest, nearest_of};
pub(crate) use self::search_plan::{SearchPlan, plan};
pub use self::state::EmbeddingState;
pub(crate) use self::worker::run;

/// Records of the runtime itself, which users do not search by meaning.
pub(crate) const NOT_EMBEDDED: [&str; 12] = [
    schema_names::TOOL_REQUEST,
    schema_names::TOOL_RESPONSE,
    schema_names::TOOL_CREATE_REQUEST,
    schema_names::TOOL_CREATE_RESPONSE,
    schema_names::TOOL_PROGRESS,
    schema_names::TOOL_LOG,
    schema_names::TOOL_SHADOW,
    schema_names::TOOL_ERROR,
    schema_names::TOOL_CATALOG,
    schema_names::TOOL_RUNNER,
    schema_names::SCHEDULE,
    schema_names::SCHEDULE_FIRED,
];

/// How records are embedded, and how they are compared.
#[derive(Debug, Clone)]
pub struct EmbeddingOptions {
    pub embedder: Arc<dyn Embedder>,
    /// Up to this many vectors are compared one by one. Above it, an index is used.
    pub exact_up_to: u32,
    /// How long a search waits for the vector of its query before it uses full-text search.
    pub timeout: Duration,
}

impl EmbeddingOptions {
    pub fn new(embedder: Arc<dyn Embedder>) -> Self {
        Self { embedder, exact_up_to: 10_000, timeout: Duration::from_secs(3) }
    }
}

/// The state that the parts share.
pub(crate) struct SemanticSearch {
    pub(crate) options: EmbeddingOptions,
    /// The database's number of the embedder's model, once the model is ready.
    model: watch::Sender<Option<i32>>,
    /// Notified when there is something to embed.
    wake: Notify,
    query_vectors: search_plan::QueryVectorCache,
    state: watch::Sender<EmbeddingState>,
}

impl SemanticSearch {
    pub(crate) fn new(options: EmbeddingOptions) -> Self {
        Self {
            options,
            model: watch::Sender::new(None),
            wake: Notify::new(),
            query_vectors: search_plan::QueryVectorCache::default(),
            state: watch::Sender::new(EmbeddingState::Preparing { trouble: None }),
        }
    }

    pub(crate) fn state(&self) -> &watch::Sender<EmbeddingState> {
        &self.state
    }
}
