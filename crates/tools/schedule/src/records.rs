//! The schedule records of a tenant.

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, ContextMatch, ContextPath, MAX_PAGE, MatchOp,
    Records, Selector, StoreError, TtlType, schema_names,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::Settings;
use crate::schedule::{Schedule, Status, name_tag};

/// A schedule's record.
#[derive(Debug, Clone)]
pub(crate) struct ScheduleRecord {
    pub id: Uuid,
    pub version: i64,
    pub workspace: Option<String>,
    pub context: Map<String, Value>,
    /// The schedule in the context, or why it is invalid.
    pub schedule: Result<Schedule, String>,
}

impl ScheduleRecord {
    fn new(id: Uuid, version: i64, tags: &[String], context: Map<String, Value>) -> Self {
        let workspace = tags.iter().find(|tag| tag.starts_with("workspace:")).cloned();
        let schedule = Schedule::read(&context).map(|schedule| schedule.held_to(tags));
        Self { id, version, workspace, context, schedule }
    }

    pub fn is_active(&self) -> bool {
        self.schedule.as_ref().is_ok_and(|schedule| schedule.status == Status::Active)
    }

    /// Whether it is active or paused, so that its name is taken.
    pub fn is_open(&self) -> bool {
        self.schedule.as_ref().is_ok_and(|schedule| !schedule.status.is_ended())
    }

    /// The change that writes this schedule into the record.
    pub fn changed_to(&self, schedule: &Schedule) -> BreadcrumbChanges {
        BreadcrumbChanges { context: Some(schedule.written_into(self.context.clone())), ..BreadcrumbChanges::default() }
    }
}

impl From<Breadcrumb> for ScheduleRecord {
    fn from(record: Breadcrumb) -> Self {
        Self::new(record.id, record.version, &record.tags, record.context)
    }
}

impl From<BreadcrumbListItem> for ScheduleRecord {
    fn from(item: BreadcrumbListItem) -> Self {
        Self::new(item.id, item.version, &item.tags, item.context.unwrap_or_default())
    }
}

/// The schedules that have not ended: at most one page, newest change first.
pub(crate) async fn active(store: &dyn Records) -> Result<Vec<ScheduleRecord>, StoreError> {
    let has_not = |status: Status| status_is(MatchOp::Ne, status);
    let conditions = [has_not(Status::Done), has_not(Status::Cancelled)];
    list(store, Selector { context_match: conditions.into_iter().flatten().collect(), ..Selector::default() }, MAX_PAGE)
        .await
}

/// The schedules that ended last, newest first.
pub(crate) async fn ended(store: &dyn Records, most: u32) -> Result<Vec<ScheduleRecord>, StoreError> {
    let mut found = Vec::new();
    for status in [Status::Done, Status::Cancelled] {
        let conditions = status_is(MatchOp::Eq, status).into_iter().collect();
        found.extend(list(store, Selector { context_match: conditions, ..Selector::default() }, most).await?);
    }
    let ended_at = |entry: &ScheduleRecord| entry.schedule.as_ref().ok().and_then(|schedule| schedule.state.ended_at);
    found.sort_by_key(|entry| std::cmp::Reverse(ended_at(entry)));
    found.truncate(most as usize);
    Ok(found)
}

/// All schedules with this name, oldest first. There is one, unless a record was written
/// manually.
pub(crate) async fn named(store: &dyn Records, name: &str) -> Result<Vec<ScheduleRecord>, StoreError> {
    let mut found = list(store, Selector { all_tags: vec![name_tag(name)], ..Selector::default() }, 100).await?;
    found.retain(|entry| entry.schedule.as_ref().is_ok_and(|schedule| schedule.name == name));
    found.sort_by_key(|entry| entry.id);
    Ok(found)
}

async fn list(store: &dyn Records, selector: Selector, limit: u32) -> Result<Vec<ScheduleRecord>, StoreError> {
    let selector = Selector { schema_name: Some(schema_names::SCHEDULE.into()), ..selector };
    let query = BreadcrumbQuery { selector, limit, offset: 0, include_context: true };
    let mut entries = Vec::new();
    for item in store.list(&query).await? {
        entries.push(ScheduleRecord::from(item));
        // A page can have a thousand large schedules. Other tasks of this thread go on in between.
        tokio::task::yield_now().await;
    }
    Ok(entries)
}

fn status_is(op: MatchOp, status: Status) -> Option<ContextMatch> {
    let path = ContextPath::try_from("$.status".to_owned()).ok()?;
    Some(ContextMatch { path, op, value: status.as_str().into() })
}

/// When a task ends, its record gets a time to live.
pub(crate) fn ending(mut changes: BreadcrumbChanges, settings: &Settings) -> BreadcrumbChanges {
    changes.ttl_type = Some(TtlType::Duration);
    changes.ttl_config = Some(json!({"duration": settings.keep_ended.as_secs().max(1)}));
    changes
}
