//! The tools that read and write files in the working folder: `read_file`, `write_file`,
//! `append_file`.
//!
//! They reach only that folder. Every file is opened relative to an open handle on the folder, so
//! neither `..` nor a link leads out of it, even while others change the folder. This crate knows
//! no queue, no store and no network.
//!
//! Begin with `folder.rs`, then `read` and `write.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod append;
mod arguments;
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

use executors::NativeTool;

/// What the operator decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The working folder. It is made when a tool first needs it.
    pub folder: PathBuf,
    /// An absolute path by which programs in a jail know the same folder: what they print is taken too.
    pub in_jail: Option<PathBuf>,
    /// Bytes that must be left on the disk: with less nothing is written. 0 for no such bound.
    pub min_free: u64,
}

/// The tools of this family: `read_file`, `write_file`, `append_file`.
pub fn tools(settings: &Settings) -> Vec<Arc<dyn NativeTool>> {
    let folder = Arc::new(folder::WorkingFolder::new(settings));
    vec![
        Arc::new(read::ReadFile::new(folder.clone())),
        Arc::new(write::WriteFile::new(folder.clone())),
        Arc::new(append::AppendFile::new(folder)),
    ]
}
