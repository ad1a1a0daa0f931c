//! Bounds for what a document may be.

/// Bytes of the file; most of them are pictures.
pub const FILE: u64 = 128 * 1024 * 1024;
/// Bytes of the archive's directory.
pub const DIRECTORY: u64 = 8 * 1024 * 1024;
/// Bytes that are unpacked, of all parts together.
pub const UNPACKED: u64 = 64 * 1024 * 1024;
/// Bytes of the text that becomes of it.
pub const TEXT: usize = 16 * 1024 * 1024;
/// How deep elements may stand in each other. Word's own documents have some dozens.
pub const DEPTH: usize = 256;
