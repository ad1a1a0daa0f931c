//! Local dispatch: [`LocalDispatch`] is a decorator of the store, in a process that has both the
//! store and a runner. For each new request it asks the runner ([`admission`]) and then writes the
//! request in one of three ways. The store never calls the runner.
//!
//! What is not admitted is created as usual, queued. From the admission on, one task of the runner
//! ([`call`]) owns the call; the caller waits for the task's reply. States of an admitted call:
//!
//! | state | event | next |
//! |---|---|---|
//! | admitted | the tool is pure and quick | held back |
//! | admitted | any other tool | claiming |
//! | held back | a small valid result in time (`HOLD_BACK` in [`call`]) | answering |
//! | held back | an effect, a failure, a large result, no result in time, no slot, stop | claiming |
//! | answering | written | ended |
//! | answering | an error that may concern the response | claiming |
//! | answering | a replay, another error | discarded |
//! | claiming | written, with its claim | runs (`Calls::with_slot`) |
//! | claiming | the store cannot be reached | searching |
//! | claiming | a replay, another error | discarded |
//! | searching | the request is found | runs |
//! | searching | the lease would have ended, stop | discarded |
//!
//! In each state, a tool that may compute before its request is written does so as soon as the call
//! has a slot, behind a closed effect gate. The call keeps the slot until it has computed, and 200
//! ms at most.

mod admission;
mod call;
mod known_queue;
mod tool_test;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, Breadcrumbs, BreadcrumbsDecorator, ChangeCheck, Created, Identity, NewBreadcrumb,
    Profiles, StoreError, Tenancy, TenancyDecorator, ToolFailure, schema_names,
};
use serde_json::{Map, Value};
use tokio::time::timeout;
use uuid::Uuid;

pub(crate) use self::admission::LocalAdmission;
use self::call::NewRequest;
use crate::registry::tool_rights::ToolRights;

/// The stores of all tenants. Requests that are created through them go to the runners of this
/// process, if these have room.
pub struct LocalDispatch {
    inner: Arc<dyn Tenancy>,
    runners: Arc<LocalRunners>,
}

#[derive(Default)]
struct LocalRunners(Mutex<HashMap<Uuid, Vec<Arc<LocalAdmission>>>>);

impl LocalRunners {
    fn of(&self, owner_id: Uuid) -> Vec<Arc<LocalAdmission>> {
        self.0.lock().get(&owner_id).cloned().unwrap_or_default()
    }
}

/// Lets a runner of one tenant take calls from a [`LocalDispatch`].
#[derive(Clone)]
pub struct LocalRegistration {
    runners: Arc<LocalRunners>,
    owner_id: Uuid,
    /// The runner's agent, which writes its responses.
    pub(crate) responder: Uuid,
}

/// Unregisters the runner when it is dropped.
pub(crate) struct RegistrationGuard(LocalRegistration, Arc<LocalAdmission>);

impl LocalDispatch {
    pub fn over(inner: Arc<dyn Tenancy>) -> Arc<Self> {
        Arc::new(Self { inner, runners: Arc::default() })
    }

    /// For [`crate::Runner::with_local_dispatch`]. `identity`: the one that the runner acts as.
    pub fn registration(&self, identity: &Identity) -> LocalRegistration {
        LocalRegistration { runners: self.runners.clone(), owner_id: identity.owner_id, responder: identity.agent_id }
    }
}

impl LocalRegistration {
    pub(crate) fn register(self, runner: Arc<LocalAdmission>) -> RegistrationGuard {
        self.runners.0.lock().entry(self.owner_id).or_default().push(runner.clone());
        RegistrationGuard(self, runner)
    }
}

impl Deref for RegistrationGuard {
    type Target = LocalAdmission;

    fn deref(&self) -> &LocalAdmission {
        &self.1
    }
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        let Self(LocalRegistration { runners, owner_id, .. }, runner) = self;
        let mut tenants = runners.0.lock();
        if let Some(of_tenant) = tenants.get_mut(owner_id) {
            of_tenant.retain(|other| !Arc::ptr_eq(other, runner));
            if of_tenant.is_empty() {
                tenants.remove(owner_id);
            }
        }
    }
}

#[async_trait]
impl TenancyDecorator for LocalDispatch {
    fn inner(&self) -> &dyn Tenancy {
        &*self.inner
    }

    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        let inner = self.inner.acting_as(identity.clone());
        Arc::new(DispatchingStore { inner, runners: self.runners.clone(), writer: identity })
    }

    async fn test_tool(&self, identity: Identity, tool_spec: Map<String, Value>) -> Option<Result<Value, ToolFailure>> {
        for runner in self.runners.of(identity.owner_id) {
            if let Some(tested) = runner.test_tool(&identity, &tool_spec).await {
                return Some(tested);
            }
        }
        None
    }
}

/// The longest that the write of a tool waits until the runners of this process use it.
const APPLYING: Duration = Duration::from_secs(10);

/// The store of one agent.
struct DispatchingStore {
    inner: Arc<dyn Breadcrumbs>,
    runners: Arc<LocalRunners>,
    writer: Identity,
}

impl DispatchingStore {
    /// Returns when the runners of this process use this version of a record, if it is a tool, or
    /// know that it was deleted (`None`). So the next call uses it, even if its event is late.
    async fn apply(&self, id: Uuid, version: Option<i64>, is_tool: bool) {
        for runner in self.runners.of(self.writer.owner_id) {
            let access = &runner.calls.call_runner.tool_access;
            if (is_tool || access.registry.version_of(id).is_some())
                && timeout(APPLYING, access.loading.read_changed(id, version)).await.is_err()
            {
                tracing::warn!(%id, "the runner of this process does not use the changed tool yet");
            }
        }
    }
}

#[async_trait]
impl BreadcrumbsDecorator for DispatchingStore {
    fn inner(&self) -> &dyn Breadcrumbs {
        &*self.inner
    }

    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        let is_request = record.schema_name.as_deref() == Some(schema_names::TOOL_REQUEST);
        let runners = if is_request { self.runners.0.lock().get(&self.writer.owner_id).cloned() } else { None };
        let Some(runners) = runners else {
            let is_tool = schema_names::is_tool(record.schema_name.as_deref());
            let created = self.inner.create(record, idempotency_key).await?;
            if is_tool {
                self.apply(created.id, Some(created.version), true).await;
            }
            return Ok(created);
        };
        let profiles = Profiles::of_record(self.writer.profile, &record.tags);
        let allowed = self.inner.allowed_tools().await?.map(Box::new);
        let rights = ToolRights::new(profiles, allowed, Some(self.writer.agent_id), &record.tags);
        let has_ended = record.ends_at(Utc::now()).is_some_and(|end| end <= Utc::now());
        let admitted = if has_ended || record.check().is_err() {
            None
        } else {
            runners.iter().find_map(|runner| runner.admit(&record, &rights))
        };
        let Some(admitted) = admitted else { return self.inner.create(record, idempotency_key).await };
        let (store, key) = (self.inner.clone(), idempotency_key.map(str::to_owned));
        let (owner_id, creator) = (self.writer.owner_id, self.writer.agent_id);
        admitted.dispatch(NewRequest { store, owner_id, creator, record, key, rights }).await
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        let updated = self.inner.update(id, version, changes).await?;
        self.apply(id, Some(updated.version), schema_names::is_tool(updated.schema_name.as_deref())).await;
        Ok(updated)
    }

    async fn update_checked(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        let updated = self.inner.update_checked(id, version, changes, check).await?;
        self.apply(id, Some(updated.version), schema_names::is_tool(updated.schema_name.as_deref())).await;
        Ok(updated)
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        self.inner.delete(id, version).await?;
        self.apply(id, None, false).await;
        Ok(())
    }

    /// Requests that are created for an agent belong to it. They keep the profile of the runner.
    fn on_behalf_of(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        let inner = self.inner.on_behalf_of(agent)?;
        let writer = Identity { agent_id: agent, ..self.writer.clone() };
        Ok(Arc::new(Self { inner, runners: self.runners.clone(), writer }))
    }
}
