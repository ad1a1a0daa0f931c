//! The store as one agent of one tenant sees it: checks the input, opens the tenant's transaction, calls the room that
//! does the work.

use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, Breadcrumbs, Call,
    ChangeCheck, Claim, ClaimRequest, Created, EventNumber, EventStream, HeldLease, Identity, Lease, NewBreadcrumb,
    NewSecret, Release, SecretChanges, SecretInfo, StoreError, TextSearch, Violations,
};
use uuid::Uuid;

use crate::author::Author;
use crate::calls::Heard;
use crate::failure::{Done, retrying};
use crate::store::Inner;
use crate::transaction::{Durability, TenantTransaction};
use crate::{calls, events, history, idempotency, listing, records, search, secrets};

pub(crate) struct TenantStore {
    store: Arc<Inner>,
    owner_id: Uuid,
    author: Author,
    heard: Heard,
}

impl TenantStore {
    pub(crate) fn new(store: Arc<Inner>, identity: &Identity) -> Self {
        Self { store, owner_id: identity.owner_id, author: Author::of(identity), heard: Heard::default() }
    }

    async fn begin(&self) -> Done<TenantTransaction> {
        TenantTransaction::begin(&self.store, self.owner_id).await
    }

    async fn begin_soon(&self) -> Done<TenantTransaction> {
        TenantTransaction::begin_with(&self.store, self.owner_id, Durability::Soon).await
    }
}

#[async_trait]
impl Breadcrumbs for TenantStore {
    async fn create(&self, mut record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        record.check()?;
        self.author.mark(&mut record.tags, &[])?;
        records::refuse_response(record.schema_name.as_deref())?;
        if let Some(key) = idempotency_key {
            idempotency::check(key)?;
        }
        Ok(records::create(&self.store, self.owner_id, self.author, record, idempotency_key).await?)
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        Ok(records::read(self.begin().await?, self.author, id).await?)
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        Ok(history::read(&mut self.begin().await?, id).await?)
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        retrying!(async {
            let tx = self.begin().await?;
            records::update(tx, self.author, id, version, &changes, None).await
        })
    }

    async fn update_checked(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        retrying!(async {
            let tx = self.begin().await?;
            records::update(tx, self.author, id, version, &changes, Some(check)).await
        })
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        retrying!(async { records::delete(self.begin().await?, self.author, id, version).await })
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        query.check()?;
        Ok(listing::list(&mut self.begin().await?, query).await?)
    }

    async fn search(&self, search: &TextSearch) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        search::check(search)?;
        Ok(search::run(&mut self.begin().await?, search).await?)
    }

    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        Ok(events::latest(&mut self.begin().await?).await?)
    }

    async fn events(&self, after: Option<EventNumber>) -> Result<EventStream, StoreError> {
        Ok(events::subscribe(self.store.clone(), self.owner_id, after).await?)
    }

    async fn call_queued(&self) {
        self.store.hints.wait(self.owner_id, &self.heard).await;
    }

    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        claim.check()?;
        if claim.except_tools.iter().any(|tool| tool.contains('\0')) {
            return Err(Violations::one("except_tools", "contains a NUL character (U+0000)").into());
        }
        retrying!(calls::claim(&self.store, self.owner_id, claim))
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        Ok(calls::start(&self.store, self.owner_id, lease, max_attempts).await?)
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<HeldLease>, StoreError> {
        if !(1_000..=600_000).contains(&lease_ms) {
            return Err(Violations::one("lease_ms", "must be from 1000 to 600000").into());
        }
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        retrying!(async { calls::heartbeat(self.begin_soon().await?, leases, lease_ms).await })
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        calls::complete::check(&response)?;
        Ok(calls::complete::complete(&self.store, self.owner_id, self.author.agent, lease, response).await?)
    }

    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError> {
        retrying!(async { calls::release(self.begin().await?, lease, release).await })
    }

    async fn call(&self, request: Uuid) -> Result<Call, StoreError> {
        Ok(calls::find(&mut self.begin().await?, request).await?)
    }

    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError> {
        retrying!(async { calls::cancel(self.begin().await?, self.author.agent, request).await })
    }

    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError> {
        secret.check()?;
        let hosts = breadcrumb::secret_hosts(&secret.hosts)?;
        Ok(secrets::create(self.begin().await?, self.author.agent, &self.store.envelope, &secret, &hosts).await?)
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError> {
        Ok(secrets::list(&mut self.begin().await?).await?)
    }

    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError> {
        changes.check()?;
        let hosts = changes.hosts.as_deref().map(breadcrumb::secret_hosts).transpose()?;
        let (tx, envelope) = (self.begin().await?, &self.store.envelope);
        Ok(secrets::update(tx, self.author.agent, envelope, id, &changes, hosts.as_deref()).await?)
    }

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError> {
        Ok(secrets::delete(self.begin().await?, self.author.agent, id).await?)
    }

    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        retrying!(async { secrets::grant(self.begin().await?, self.author.agent, id, tool_id).await })
    }

    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        Ok(secrets::revoke(self.begin().await?, self.author.agent, id, tool_id).await?)
    }

    async fn decrypt_secret(&self, id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String, StoreError> {
        secrets::check_reason(reason)?;
        if for_tool.is_none() && !self.author.is_curator {
            let why = "only a curator may decrypt a secret for no tool: name the tool's record that it is for";
            return Err(StoreError::Forbidden(why.into()));
        }
        let (tx, envelope) = (self.begin().await?, &self.store.envelope);
        Ok(secrets::open(tx, self.author.agent, envelope, id, reason, for_tool).await?)
    }
}
