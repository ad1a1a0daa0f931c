//! Permits for large responses: many exchanges can wait at once, but only a few hold more than the
//! beginning of a response in memory.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Bytes of a response that need no permit.
pub(super) const SMALL: usize = 64 * 1024;
/// Large responses in memory at the same time, in total and per tool. The limit per tool is lower,
/// so that two slow tools cannot take all permits.
const TURNS: usize = 16;
const TURNS_OF_ONE: usize = 6;

pub(super) struct LargeResponses {
    turns: Arc<Semaphore>,
    by_tool: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

/// Held until the result of the response is written.
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
    /// Waits for a permit. `None` only when the program shuts down.
    pub async fn turn(&self, tool: Uuid) -> Option<LargeResponsePermit> {
        // The tool's own permit first: a tool that waits for it holds none of the shared ones.
        let of_tool = self.of_tool(tool).acquire_owned().await.ok()?;
        let of_all = self.turns.clone().acquire_owned().await.ok()?;
        Some(LargeResponsePermit { _of_all: of_all, _of_tool: of_tool })
    }

    fn of_tool(&self, tool: Uuid) -> Arc<Semaphore> {
        let mut by_tool = self.by_tool.lock();
        if let Some(known) = by_tool.get(&tool).and_then(Weak::upgrade) {
            return known;
        }
        by_tool.retain(|_, known| known.strong_count() > 0);
        let turns = Arc::new(Semaphore::new(TURNS_OF_ONE));
        by_tool.insert(tool, Arc::downgrade(&turns));
        turns
    }
}
