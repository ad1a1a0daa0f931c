//! Compares the known tools with the store's list: at the start, after a gap in the events, and
//! periodically.

use std::collections::HashSet;
use std::time::Duration;

use rcrt_breadcrumb::{BreadcrumbListItem, BreadcrumbQuery, MAX_PAGE, StoreError, schema_names};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::with_retries;
use crate::registry::load_queue::{Depth, Urgency};
use crate::registry::tool_loader::ToolLoader;

/// Rows in one page of recent changes.
const RECENT_ROWS: u32 = 50;
/// In every tenth round the whole list is compared: only that shows deleted tools.
const WHOLE_EVERY: u32 = 10;

const SCHEMAS: [&str; 2] = [schema_names::TOOL_CODE, schema_names::TOOL_V1];

impl ToolLoader {
    /// Compares the whole list, and reads what differs.
    pub async fn reconcile(&self) -> Result<(), StoreError> {
        let mut gone = self.registry.ids();
        for schema in SCHEMAS {
            for id in self.list_all(schema).await? {
                gone.remove(&id);
            }
        }
        for id in gone {
            self.check_soon(id);
        }
        Ok(())
    }

    fn compare(&self, row: &BreadcrumbListItem) -> bool {
        match self.registry.version_of(row.id) {
            Some(version) if version == row.version => return false,
            Some(_) => self.check_soon(row.id),
            None => self.enqueue(row.id, Urgency::List, Depth::Parse),
        }
        true
    }

    /// Pages overlap by one row. If the first row of a page was not seen before, rows moved up
    /// because one was deleted, and the list is read again.
    async fn list_all(&self, schema: &str) -> Result<HashSet<Uuid>, StoreError> {
        'again: loop {
            let mut query =
                BreadcrumbQuery { limit: MAX_PAGE, include_context: false, ..BreadcrumbQuery::of_schema(schema) };
            let mut seen = HashSet::new();
            loop {
                let page = with_retries("list tools", || self.store.list(&query)).await?;
                if query.offset > 0 && page.first().is_some_and(|row| !seen.contains(&row.id)) {
                    continue 'again;
                }
                let is_last = page.len() < MAX_PAGE as usize;
                for row in page {
                    self.compare(&row);
                    seen.insert(row.id);
                }
                if is_last {
                    return Ok(seen);
                }
                query.offset += MAX_PAGE - 1;
            }
        }
    }

    /// Compares recent changes. The list has the newest changes first, so it reads until a page
    /// brings nothing new.
    async fn read_recent_changes(&self) -> Result<(), StoreError> {
        for schema in SCHEMAS {
            let mut query =
                BreadcrumbQuery { limit: RECENT_ROWS, include_context: false, ..BreadcrumbQuery::of_schema(schema) };
            loop {
                let page = with_retries("list tools", || self.store.list(&query)).await?;
                let mut is_news = false;
                for row in &page {
                    is_news |= self.compare(row);
                }
                if !is_news || page.len() < RECENT_ROWS as usize {
                    break;
                }
                query.offset += RECENT_ROWS;
            }
        }
        Ok(())
    }

    /// Compares periodically, until stopped.
    pub async fn keep_reconciled(&self, every: Duration, stop: CancellationToken) {
        let work = async {
            self.listed().await;
            for round in 1_u32.. {
                tokio::time::sleep(every).await;
                let outcome =
                    if round % WHOLE_EVERY == 0 { self.reconcile().await } else { self.read_recent_changes().await };
                if let Err(error) = outcome {
                    tracing::warn!(%error, "the list of tools cannot be compared with the store's");
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }
}
