//! An event in memory, between its write and its subscribers.

use std::sync::Arc;
use std::time::Instant;

use rcrt_breadcrumb::Event;
use uuid::Uuid;

use super::visibility::{EventVisibility, VisibilityScope};

/// The event of a new record that this process wrote.
pub(crate) struct WrittenEvent {
    pub(crate) event: Event,
    /// Bytes of the context.
    pub(crate) size_bytes: i64,
    pub(crate) created_by: Option<Uuid>,
}

/// An event, and roughly how much memory it takes.
#[derive(Debug)]
pub(super) struct SizedEvent {
    pub(super) event: Arc<Event>,
    pub(super) visibility: EventVisibility,
    pub(super) bytes: usize,
}

impl SizedEvent {
    /// `size_bytes`: of the context's text.
    pub(super) fn new(event: Event, visibility: EventVisibility, size_bytes: i64) -> Self {
        Self { event: Arc::new(event), visibility, bytes: usize::try_from(size_bytes).unwrap_or_default() + 512 }
    }

    /// The record was just created, so it has no grants yet.
    pub(super) fn fresh(written: WrittenEvent) -> Self {
        let WrittenEvent { event, size_bytes, created_by } = written;
        let scope = if event.private { VisibilityScope::Private } else { VisibilityScope::Team };
        Self::new(
            event,
            EventVisibility { scope, created_by, readers: Vec::new(), read_at: Instant::now() },
            size_bytes,
        )
    }
}
