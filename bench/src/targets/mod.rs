//! The targets, one file each. Each is measured in turns with what it is compared to.

pub mod authoring;
pub mod build;
pub mod clean_calls;
pub mod dashboard;
pub mod embedding;
pub mod first_call;
pub mod fresh;
pub mod idle_memory;
pub mod latency;
pub mod rare_tools;
mod sandboxed;
pub mod scale;
pub mod start;
pub mod throughput;
pub mod tool_search;
pub mod waiting;
pub mod warm_call;
