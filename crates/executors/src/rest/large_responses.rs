//! Permits for large responses: many exchanges can wait at once, but only a few hold more than the
//! beginning of a response in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// What an answer may have without a turn, in bytes.
pub(super) const SMALL: usize = 64 * 1024;
/// Large answers that are in memory at the same time, in all and of one tool, so that not even two that send slowly keep
/// out the others.
const TURNS: usize = 16;
const TURNS_OF_ONE: usize = 6;

pub(super) struct LargeResponses {
    turns: Arc<Semaphore>,
    by_tool: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

/// Held until what was made of the answer is written.
pub(super) struct LargeResponsePermit {
    _of_all: OwnedSemaphorePermit,
    _of_tool: OwnedSemaphorePermit,
}

impl Default for LargeResponses {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(TURNS)), by_tool: Mutex::default() }
    }
}

impl LargeResponses {
    /// Waits for a turn. `None` only when the program ends.
    pub async fn turn(&self, tool: Uuid) -> Option<LargeResponsePermit> {
        // First the tool's own: who waits for those holds none of the others.
        let of_tool = self.of_tool(tool).acquire_owned().await.ok()?;
        let of_all = self.turns.clone().acquire_owned().await.ok()?;
        Some(LargeResponsePermit { _of_all: of_all, _of_tool: of_tool })
    }

    fn of_tool(&self, tool: Uuid) -> Arc<Semaphore> {
        let mut by_tool = self.by_tool.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_tool.get(&tool).and_then(Weak::upgrade) {
            return known;
        }
        by_tool.retain(|_, known| known.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(TURNS_OF_ONE));
        by_tool.insert(tool, Arc::downgrade(&turns));
        turns
    }
}
