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
//!
//! # Example
//! ```no_run
//! use rcrt_wheel::{Wheel, default_cache_dir};
//!
//! const WHEEL: Wheel = Wheel {
//!     package: "some-package",
//!     version: "1.0.0",
//!     sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
//!     room: "some-package",
//!     what: "a package (3 MB)",
//! };
//!
//! # async fn example() -> Result<(), String> {
//! let folder = WHEEL.install(&default_cache_dir(), &|step| eprintln!("{step}"), |_| Ok(())).await?;
//! assert!(folder.join("some_package").is_dir());
//! # Ok(())
//! # }
//! ```

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
