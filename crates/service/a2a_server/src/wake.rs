//! Push notifications of other agents about the tasks that `invoke_agent` began. A notification
//! only makes the followers of the task ask the agent for its state, so a forged one changes
//! nothing.

use chrono::Utc;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, Breadcrumbs, PUSH_HASH, PushToken, StoreError, WOKEN_AT, schema_names,
};
use serde_json::json;
use uuid::Uuid;

/// Attempts after conflicting changes of a task.
const TRIES: usize = 5;

/// Whether a token is that of the notifications about this task. `store`: of the tenant, with the
/// rights of a runner.
pub async fn is_notified(store: &dyn Breadcrumbs, task: Uuid, token: &str) -> Result<bool, StoreError> {
    let Some(record) = read(store, task).await? else { return Ok(false) };
    let hash = record.context.get(PUSH_HASH).and_then(|hash| hash.as_str());
    Ok(hash.is_some_and(|hash| PushToken::is(token, hash)))
}

/// Makes the followers of a task ask for its state, if they wait for the agent.
pub async fn wake(store: &dyn Breadcrumbs, task: Uuid) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        let Some(record) = read(store, task).await? else { return Ok(()) };
        let status = record.context.get("status").and_then(|status| status.as_str()).unwrap_or_default();
        if !matches!(status, "working" | "timed_out") {
            return Ok(());
        }
        let mut context = record.context;
        context.insert(WOKEN_AT.to_owned(), json!(Utc::now()));
        let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
        match store.update(task, record.version, changes).await {
            Err(StoreError::VersionConflict { .. }) => {}
            Ok(_) | Err(StoreError::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    // Whoever changes the task all the time looks at it, too.
    Ok(())
}

/// `None` if the task does not exist.
async fn read(store: &dyn Breadcrumbs, task: Uuid) -> Result<Option<Breadcrumb>, StoreError> {
    match store.get(task).await {
        Ok(record) => Ok(Some(record).filter(|record| record.schema_name.as_deref() == Some(schema_names::A2A_TASK))),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
