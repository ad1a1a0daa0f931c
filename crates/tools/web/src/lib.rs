//! The tools that read the web: `web_search`, `web_fetch`, `web_browse`.
//!
//! Every request goes through the egress gate. Pages are parsed on separate threads, with bounds on
//! time and memory. Scripts in pages do not run. Long pages go to working memory. This crate knows
//! no queue, and no way to the network except the egress gate.
//!
//! Begin with `web_fetch.rs`, `http_client.rs` and `search/mod.rs`.

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

use rcrt_egress::Egress;
use rcrt_executors::NativeTool;

pub use search::{SearchProvider, SearchResult, WebSearchQuery};
pub use settings::{SearchChoice, Settings};

/// The tools of this crate. All their requests go through the gate.
pub fn tools(gate: Arc<Egress>, settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    let reader_pool = Arc::new(reader_pool::ReaderPool::new(&settings));
    let settings = Arc::new(settings);
    vec![
        Arc::new(web_search::WebSearch::new(gate.clone(), &settings, reader_pool.clone())),
        Arc::new(web_fetch::WebFetch::new(gate.clone(), settings.clone(), reader_pool.clone())),
        Arc::new(web_browse::WebBrowse::new(gate, settings, reader_pool)),
    ]
}
