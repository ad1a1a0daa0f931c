//! The layer as one agent's store. Every method of the trait must be forwarded here, including
//! those with a default body.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AclChange, AclEntry, Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion,
    BreadcrumbView, Breadcrumbs, Call, CallQueue, ChangeCheck, Claim, ClaimRequest, Created, EgressEntry, EgressLog,
    EgressQuery, EgressRecord, EventNumber, EventStream, Events, Found, HeldLease, Identity, Lease, LocalRunner,
    LocalRunnerGuard, NewBreadcrumb, NewSecret, Records, Release, Rights, Role, Search, SecretChanges, SecretInfo,
    Secrets, Selector, SelectorSubscription, Selectors, StoreError, SubscribeOptions, SubscriptionStream, schema_names,
};
use uuid::Uuid;

use crate::definition_cache::DefinitionCache;
use crate::hints::Hints;
use crate::local_runner::DefinedResponses;

#[derive(Clone)]
pub(crate) struct Layer {
    pub(crate) inner: Arc<dyn Breadcrumbs>,
    pub(crate) identity: Identity,
    pub(crate) definitions: Arc<DefinitionCache>,
}

#[async_trait]
impl Records for Layer {
    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        self.create_as_defined(record, idempotency_key).await
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        self.inner.get(id).await
    }

    async fn view(&self, id: Uuid) -> Result<BreadcrumbView, StoreError> {
        // Read the definitions first: if they are unavailable, the record's read must not be
        // counted.
        let known = self.definitions.of(self.identity.owner_id).await?;
        let mut view = self.inner.view(id).await?;
        // The hints of a definition apply to the records that it defines, not to itself.
        if view.schema_name.as_deref() == Some(schema_names::SCHEMA_DEFINITION) {
            return Ok(view);
        }
        // A record's own hints replace those of its schema name.
        if let Some(own) = &view.llm_hints {
            let (hints, _) = Hints::read("llm_hints", own);
            view.context = hints.apply(&view);
        } else if let Some(hints) =
            known.of(view.schema_name.as_deref()).and_then(|definition| definition.hints.as_ref())
        {
            view.context = hints.apply(&view);
        }
        Ok(view)
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        self.inner.history(id).await
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        self.update_as_defined(id, version, changes, &|_, next| Ok(next)).await
    }

    async fn update_checked(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        self.update_as_defined(id, version, changes, check).await
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        self.delete_defined(id, version).await
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        self.inner.list(query).await
    }

    async fn search(&self, search: &Search) -> Result<Found, StoreError> {
        self.inner.search(search).await
    }
}

#[async_trait]
impl Rights for Layer {
    async fn grants(&self, record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        self.inner.grants(record).await
    }

    async fn grant(&self, change: &AclChange) -> Result<Uuid, StoreError> {
        self.inner.grant(change).await
    }

    async fn revoke(&self, change: &AclChange) -> Result<u64, StoreError> {
        self.inner.revoke(change).await
    }
}

#[async_trait]
impl Events for Layer {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        self.inner.latest_event().await
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        self.inner.subscribe(options).await
    }

    async fn events(&self, after: Option<EventNumber>) -> Result<EventStream, StoreError> {
        self.inner.events(after).await
    }
}

#[async_trait]
impl Selectors for Layer {
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        self.inner.create_selector(selector).await
    }

    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError> {
        self.inner.selectors().await
    }

    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        self.inner.update_selector(id, selector).await
    }

    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError> {
        self.inner.delete_selector(id).await
    }
}

#[async_trait]
impl CallQueue for Layer {
    async fn call_queued(&self) {
        self.inner.call_queued().await;
    }

    fn register_local_runner(&self, runner: Arc<dyn LocalRunner>) -> LocalRunnerGuard {
        self.inner.register_local_runner(Arc::new(DefinedResponses { runner, layer: self.clone() }))
    }

    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        self.inner.claim(claim).await
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        self.inner.start(lease, max_attempts).await
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<HeldLease>, StoreError> {
        self.inner.heartbeat(leases, lease_ms).await
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        let response = self.response_as_defined(response).await;
        self.inner.complete(lease, response).await
    }

    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError> {
        self.inner.release(lease, release).await
    }

    async fn call(&self, request: Uuid) -> Result<Call, StoreError> {
        self.inner.call(request).await
    }

    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError> {
        self.inner.cancel(request).await
    }
}

#[async_trait]
impl Secrets for Layer {
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError> {
        self.inner.create_secret(secret).await
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError> {
        self.inner.secrets().await
    }

    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError> {
        self.inner.update_secret(id, changes).await
    }

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError> {
        self.inner.delete_secret(id).await
    }

    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        self.inner.grant_secret(id, tool_id).await
    }

    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        self.inner.revoke_secret(id, tool_id).await
    }

    async fn decrypt_secret(&self, id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String, StoreError> {
        self.inner.decrypt_secret(id, reason, for_tool).await
    }
}

#[async_trait]
impl EgressLog for Layer {
    async fn log_egress(&self, records: Vec<EgressRecord>) -> Result<(), StoreError> {
        self.inner.log_egress(records).await
    }

    async fn egress_log(&self, query: &EgressQuery) -> Result<Vec<EgressEntry>, StoreError> {
        self.inner.egress_log(query).await
    }
}

impl Breadcrumbs for Layer {
    fn acting_for(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        let inner = self.inner.acting_for(agent)?;
        let mut identity = self.identity.clone();
        // An agent that acts on behalf of another has no curator rights.
        if agent != identity.agent_id {
            identity.roles.retain(|role| *role != Role::Curator);
        }
        Ok(Arc::new(Self { inner, identity, definitions: self.definitions.clone() }))
    }
}
