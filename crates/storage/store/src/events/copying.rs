//! Copies all events elsewhere: a follower in every tenant.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::EventSink;
use uuid::Uuid;

use super::following::{CatchUpReason, EventHeader, Follower};
use super::page;
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// Sends each event to a sink. A tenant's copy begins with what commits after its first step. After
/// a crash between sending and the move of the cursor, events are sent again.
pub(crate) struct EventCopier {
    database: Arc<Database>,
    sink: Arc<dyn EventSink>,
}

impl EventCopier {
    pub(crate) fn new(database: Arc<Database>, sink: Arc<dyn EventSink>) -> Self {
        Self { database, sink }
    }
}

#[async_trait]
impl Follower for EventCopier {
    fn name(&self) -> &'static str {
        "event-copy"
    }

    fn is_in_every_tenant(&self) -> bool {
        true
    }

    type Prepared = ();

    async fn prepare(&self, owner_id: Uuid, events: &[EventHeader]) -> Result<((), usize)> {
        let Some(first) = events.first() else { return Ok(((), 0)) };
        // From the primary: a replica may not have them yet. A page can have fewer, if their
        // contexts are large, and those of other tenants' records.
        let Some((own, last)) = page::read_own(&self.database, owner_id, first.number - 1).await? else {
            // All of them were deleted meanwhile, with their tenant or as too old.
            return Ok(((), events.len()));
        };
        if !own.is_empty() {
            self.sink.send(&own).await?;
        }
        Ok(((), events.iter().take_while(|event| event.number <= last).count()))
    }

    async fn take(&self, _tx: &mut TenantTransaction, _events: &[EventHeader], _prepared: ()) -> Result<()> {
        Ok(())
    }

    async fn catch_up(&self, tx: &mut TenantTransaction, missed: CatchUpReason) -> Result<()> {
        if missed == CatchUpReason::EventsForgotten {
            tracing::warn!(tenant = %tx.owner_id, "events were deleted before they were copied (see --keep-events)");
        }
        Ok(())
    }
}
