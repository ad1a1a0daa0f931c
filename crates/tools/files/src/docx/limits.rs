//! Limits for a document.

/// Bytes of the file; most of them are usually pictures.
pub const FILE: u64 = 128 * 1024 * 1024;
/// Bytes of the archive's directory.
pub const DIRECTORY: u64 = 8 * 1024 * 1024;
/// Bytes that are unpacked, for all parts together.
pub const UNPACKED: u64 = 64 * 1024 * 1024;
/// Bytes of the resulting text.
pub const TEXT: usize = 16 * 1024 * 1024;
/// Nesting depth of elements. Word's own documents have a few dozen.
pub const DEPTH: usize = 256;
