//! The targets, one file each. Each is measured in turns with what it is compared to.

pub mod at_rest;
pub mod build;
pub mod frames;
pub mod fresh;
pub mod idle_memory;
mod sandboxed;
pub mod scale;
pub mod start;
pub mod throughput;
pub mod unseen;
pub mod waiting;
