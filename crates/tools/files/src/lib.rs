//! The tools that read and write files in the working folder: `read_file`, `write_file`,
//! `append_file`.
//!
//! They reach only that folder. Every file is opened relative to an open handle on the folder, so
//! neither `..` nor a link leads out of it, even while others change the folder. This crate does
//! not depend on the queue, the store or the network.
//!
//! Begin with `folder.rs`, then `read` and `write.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod append;
mod atomic;
mod binary;
mod blocking;
mod docx;
mod failure;
mod folder;
mod read;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use rcrt_executors::NativeTool;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The working folder. It is created when a tool first needs it.
    pub folder: PathBuf,
    /// The absolute path of the same folder for programs in a jail. Paths that they print are
    /// accepted too.
    pub in_jail: Option<PathBuf>,
    /// Bytes that must stay free on the disk. Writes that would leave less fail. 0 disables the
    /// check.
    pub min_free: u64,
    /// The most bytes that the folder can hold. Writes that would exceed it fail. 0 disables the
    /// check.
    pub most_bytes: u64,
}

/// The tools of this family: `read_file`, `write_file`, `append_file`.
pub fn tools(settings: &Settings) -> Vec<Arc<dyn NativeTool>> {
    let folder = Arc::new(folder::WorkingFolder::new(settings));
    vec![
        Arc::new(read::ReadFile(folder.clone())),
        Arc::new(write::WriteFile(folder.clone())),
        Arc::new(append::AppendFile(folder)),
    ]
}
