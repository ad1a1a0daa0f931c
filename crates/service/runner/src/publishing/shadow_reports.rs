//! Adds what came of the runs of shadows to their `tool.shadow.v1` records, which all runners of
//! the tenant share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, Breadcrumbs, ContextMatch, ContextPath, MatchOp, NewBreadcrumb, Selector,
    ShadowReport, StoreError, TtlType, Visibility, schema_names,
};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::with_retries;
use crate::on_behalf_of::on_behalf_of;

/// How long counts are collected before they are written.
const COLLECTED: Duration = Duration::from_secs(1);
/// How long the last counts of a runner may take to be written.
const LAST_WRITE: Duration = Duration::from_secs(5);
/// How often a write is tried while other runners write the same record.
const TRIES: u32 = 10;

pub(crate) struct ShadowReports {
    store: Arc<dyn Breadcrumbs>,
    /// What is not written yet, by the shadow's record.
    unwritten: Mutex<HashMap<Uuid, ShadowReport>>,
    more: Notify,
}

impl ShadowReports {
    pub fn new(store: Arc<dyn Breadcrumbs>) -> Arc<Self> {
        Arc::new(Self { store, unwritten: Mutex::default(), more: Notify::new() })
    }

    pub fn count(&self, report: ShadowReport) {
        self.unwritten.lock().entry(report.tool_id).or_default().add(report);
        self.more.notify_one();
    }

    /// Writes until the calls have ended, and then what they counted last.
    pub async fn run(&self, end: CancellationToken) {
        let work = async {
            loop {
                self.more.notified().await;
                sleep(COLLECTED).await;
                self.write().await;
            }
        };
        end.run_until_cancelled(work).await;
        if timeout(LAST_WRITE, self.write()).await.is_err() {
            tracing::warn!("the last counts of shadows are not written");
        }
    }

    async fn write(&self) {
        loop {
            // One at a time: what is not taken yet survives if this write is stopped.
            let next = self.unwritten.lock().keys().next().copied();
            let Some(report) = next.and_then(|id| self.unwritten.lock().remove(&id)) else { return };
            let tool_id = report.tool_id;
            if let Err(error) = self.add(&report).await {
                tracing::warn!(%tool_id, %error, "the counts of a shadow cannot be written");
            }
        }
    }

    /// Adds the counts to the record, which another runner may change at the same time.
    async fn add(&self, report: &ShadowReport) -> Result<(), StoreError> {
        let path = ContextPath::try_from("$.tool_id".to_owned()).map_err(StoreError::Internal)?;
        let of_tool = ContextMatch { path, op: MatchOp::Eq, value: report.tool_id.to_string().into() };
        let mut query = BreadcrumbQuery::of_schema(schema_names::TOOL_SHADOW);
        query.selector = Selector { context_match: vec![of_tool], ..query.selector };
        // A private record of the author, which only runners and curators can write.
        let authors = on_behalf_of(&self.store, report.author)?;
        // The same on every runner, so that only one record is created.
        let mut key = Some(format!("tool.shadow:{}", report.tool_id));
        for _ in 0..TRIES {
            let existing = with_retries("find the report on a shadow", || self.store.list(&query)).await?.pop();
            let written = match existing {
                Some(existing) => {
                    let read = existing.context.as_ref().and_then(ShadowReport::from_context);
                    let mut sum = read.unwrap_or_default();
                    if sum.author != report.author {
                        let delete = || self.store.delete(existing.id, Some(existing.version));
                        match with_retries("delete the report of a former author", delete).await {
                            Ok(()) | Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => continue,
                            failed => return failed,
                        }
                    }
                    sum.add(report.clone());
                    let content = record(&sum)?;
                    let changes = BreadcrumbChanges {
                        context: Some(content.context),
                        ttl_type: content.ttl_type,
                        ttl_config: content.ttl_config,
                        ..BreadcrumbChanges::default()
                    };
                    let update = || self.store.update(existing.id, existing.version, changes.clone());
                    with_retries("change the report on a shadow", update).await.map(|_| ())
                }
                None => {
                    let record = record(report)?;
                    let create = || authors.create(record.clone(), key.as_deref());
                    match with_retries("write the report on a shadow", create).await {
                        // It was deleted since.
                        Ok(created) if created.replayed => {
                            key = None;
                            continue;
                        }
                        created => created.map(|_| ()),
                    }
                }
            };
            match written {
                Err(StoreError::IdempotencyMismatch) => key = None,
                Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => {}
                other => return other,
            }
        }
        Ok(())
    }
}

/// Only its author, runners and curators read it: it has parts of the outputs of calls.
fn record(report: &ShadowReport) -> Result<NewBreadcrumb, StoreError> {
    Ok(NewBreadcrumb {
        title: format!("The shadow of the tool {}", report.name),
        context: context(report)?,
        tags: vec!["tool:shadow".to_owned(), format!("tool:{}", report.name)],
        schema_name: Some(schema_names::TOOL_SHADOW.to_owned()),
        visibility: Visibility::Private,
        ttl_type: Some(TtlType::Duration),
        ttl_config: Some(json!({"duration": ShadowReport::TTL_SECONDS})),
        ..NewBreadcrumb::default()
    })
}

fn context(report: &ShadowReport) -> Result<Map<String, Value>, StoreError> {
    match serde_json::to_value(report) {
        Ok(Value::Object(context)) => Ok(context),
        other => Err(StoreError::Internal(format!("a report on a shadow is not an object: {other:?}"))),
    }
}
