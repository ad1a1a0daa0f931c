//! The tools that read the web: `web_search`, `web_fetch`, `web_browse`. Every request goes through the egress gate,
//! and every page is read apart from the threads that others wait for, within bounds of time and memory.
//!
//! It knows no queue and no way to the network but the gate; long pages go to working memory. Pages run no scripts
//! here.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod arguments;
mod charset;
mod content;
mod failures;
mod github;
mod html;
mod http_client;
mod json_text;
mod media_type;
mod page_name;
mod reader_pool;
mod search;
mod settings;
mod text;
mod web_browse;
mod web_fetch;
mod web_search;

use std::sync::Arc;

use executors::NativeTool;
use executors::egress::Egress;

pub use search::{SearchProvider, SearchQuery, SearchResult};
pub use settings::{SearchChoice, Settings};

/// The tools of this family. All their requests go through the gate.
pub fn tools(gate: Arc<Egress>, settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    let reader_pool = Arc::new(reader_pool::ReaderPool::new(&settings));
    let settings = Arc::new(settings);
    vec![
        Arc::new(web_search::WebSearch::new(gate.clone(), &settings, reader_pool.clone())),
        Arc::new(web_fetch::WebFetch::new(gate.clone(), settings.clone(), reader_pool.clone())),
        Arc::new(web_browse::WebBrowse::new(gate, settings, reader_pool)),
    ]
}
