//! How messages get to a server and back.

mod http_client;
mod legacy_sse;
mod raw_lists;
mod sse;
mod stdio;

pub use http_client::EgressClient;
pub use legacy_sse::LegacySseTransport;
pub use raw_lists::{RawList, RawLists};
pub use stdio::{ProgramLog, StdioTransport};
