//! The layer below a worker's isolates: the engine's extensions and their snapshot, without jail,
//! protocol or limits. Only for measuring the engine; nothing that runs untrusted tools uses it.

use deno_core::Extension;

use crate::extensions::{self, Scripts};
use crate::snapshot;

/// The start-up snapshot, or why there is none. Call it before any other isolate is created in this
/// process.
pub fn snapshot() -> Result<Box<[u8]>, String> {
    snapshot::make()
}

/// The extensions that belong to [`snapshot`], in their order.
pub fn extensions() -> Vec<Extension> {
    extensions::all(Scripts::InSnapshot)
}
