//! The records of tasks: read, written, changed. The version of a record decides which of several
//! writers succeeds, so a result is written once.

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbQuery, Breadcrumbs, MAX_PAGE, NewBreadcrumb, Selector, StoreError,
    TtlType, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use crate::A2a;
use crate::agent;
use crate::task::{TASK_SCHEMA, TaskRecord};

/// Attempts after conflicting changes.
const TRIES: usize = 10;

/// A task, as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredTask {
    pub id: Uuid,
    pub owner_id: Uuid,
    pub version: i64,
    pub task: TaskRecord,
}

/// The tag of the tasks of one call.
pub(crate) fn call_tag(call: Uuid) -> String {
    format!("a2a:call:{call}")
}

/// The tag of the tasks that are followed.
const OPEN: &str = "a2a:open";

fn tags(task: &TaskRecord) -> Vec<String> {
    let mut tags = vec!["a2a:task".into(), agent::tag(&task.agent), call_tag(task.begun_by)];
    tags.extend(task.is_open().then(|| OPEN.to_owned()));
    tags
}

/// The record of a new task. It is private to the agent that asked.
pub(crate) fn new(task: &TaskRecord) -> NewBreadcrumb {
    NewBreadcrumb {
        title: format!("Task of the agent {}", task.agent),
        context: task.context(),
        tags: tags(task),
        schema_name: Some(TASK_SCHEMA.into()),
        visibility: Visibility::Private,
        ..NewBreadcrumb::default()
    }
}

/// The task in a record; `None` if it is no task, or one that cannot be read.
pub(crate) fn of(record: &Breadcrumb) -> Option<StoredTask> {
    if record.schema_name.as_deref() != Some(TASK_SCHEMA) {
        return None;
    }
    match TaskRecord::read(&record.context) {
        Ok(task) => Some(StoredTask { id: record.id, owner_id: record.owner_id, version: record.version, task }),
        Err(error) => {
            tracing::warn!(record = %record.id, %error, "a record of a task cannot be read");
            None
        }
    }
}

/// Reads a task. [`StoreError::NotFound`] also for another record.
pub(crate) async fn get(store: &dyn Breadcrumbs, id: Uuid) -> Result<StoredTask, StoreError> {
    of(&store.get(id).await?).ok_or(StoreError::NotFound { what: "task", id })
}

/// Applies a change to the task as it is now, until it is written. `change` returns whether there
/// is something to write.
pub(crate) async fn change(
    a2a: &A2a,
    mut stored: StoredTask,
    change: impl Fn(&mut TaskRecord) -> bool + Send,
) -> Result<StoredTask, StoreError> {
    let store = &*a2a.store;
    let mut tries = 0;
    loop {
        let mut task = stored.task.clone();
        if !change(&mut task) {
            return Ok(stored);
        }
        let mut changes = BreadcrumbChanges { context: Some(task.context()), ..BreadcrumbChanges::default() };
        if !task.is_open() {
            changes.tags = Some(tags(&task));
            changes.ttl_type = Some(TtlType::Duration);
            changes.ttl_config = Some(json!({"duration": a2a.settings.keep_ended.as_secs().max(1)}));
        }
        match store.update(stored.id, stored.version, changes).await {
            Ok(written) => return Ok(StoredTask { version: written.version, task, ..stored }),
            Err(StoreError::VersionConflict { .. }) if tries < TRIES => {
                tries += 1;
                stored = get(store, stored.id).await?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The tasks that are followed, at most one page.
pub(crate) async fn open(store: &dyn Breadcrumbs) -> Result<Vec<Uuid>, StoreError> {
    let selector = Selector {
        all_tags: vec!["a2a:task".into(), OPEN.into()],
        schema_name: Some(TASK_SCHEMA.into()),
        ..Selector::default()
    };
    let query = BreadcrumbQuery { selector, limit: MAX_PAGE, offset: 0, include_context: false };
    Ok(store.list(&query).await?.into_iter().map(|row| row.id).collect())
}
