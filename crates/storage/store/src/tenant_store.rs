//! The store as one agent of one tenant sees it: validates the input, opens the tenant's
//! transaction, and calls the module that does the work.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AclChange, AclEntry, AllowedTools, AnsweredTerms, AuditEntry, AuditLog, AuditQuery, Breadcrumb, BreadcrumbChanges,
    BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, BreadcrumbView, Breadcrumbs, Call, CallDetails,
    CallHistory, CallPage, CallQuery, CallQueue, CallStats, CallStatsQuery, ChangeCheck, Claim, ClaimRequest,
    ClaimTerms, Created, EgressEntry, EgressLog, EgressQuery, EgressRecord, EventNumber, Events, Identity, Lease,
    LeaseState, NewBreadcrumb, NewSecret, Records, Release, ReportReply, Rights, RunnerReport, Runners, Search,
    SearchResults, SecretChanges, SecretInfo, Secrets, Selector, SelectorSubscription, Selectors, StoreError,
    SubscribeOptions, SubscriptionStream, Violations,
};
use uuid::Uuid;

use crate::calls::{self, egress_log, runners, stats};
use crate::database::failure::{Result, retrying};
use crate::database::row_access::{Principal, RequiredPermission, RowAccess};
use crate::database::transaction::{Durability, TenantTransaction};
use crate::events::SubscriberRights;
use crate::events::{self, selectors};
use crate::records::context_reads::Reader;
use crate::records::{self, NewRecord, history, idempotency, listing, selector_sql};
use crate::rights::actor::Actor;
use crate::rights::role_cache::AgentRights;
use crate::rights::{acl, agents, audit};
use crate::search::{self, semantic};
use crate::secrets;
use crate::store::Inner;
use crate::writing::{self, QueueWaiter};

pub(crate) struct TenantStore {
    store: Arc<Inner>,
    owner_id: Uuid,
    actor: Actor,
    queue_waiter: QueueWaiter,
}

impl TenantStore {
    pub(crate) fn new(store: Arc<Inner>, identity: &Identity) -> Self {
        Self::of(store, identity.owner_id, Actor::of(identity))
    }

    fn of(store: Arc<Inner>, owner_id: Uuid, actor: Actor) -> Self {
        Self { store, owner_id, actor, queue_waiter: QueueWaiter::default() }
    }

    /// Sees all records of the tenant. For operations that do not depend on the agent's rights.
    async fn begin(&self) -> Result<TenantTransaction> {
        TenantTransaction::begin(&self.store.database, self.owner_id).await
    }

    /// Sees what the agent sees.
    async fn begin_for(&self, permission: RequiredPermission) -> Result<TenantTransaction> {
        TenantTransaction::begin_as(&self.store.database, self.row_access(permission).await?).await
    }

    async fn row_access(&self, permission: RequiredPermission) -> Result<RowAccess> {
        let principal = if self.actor.reads_only_own_calls {
            Principal::Caller(self.actor.on_behalf_of)
        } else if self.sees_all().await? {
            Principal::Unrestricted
        } else {
            Principal::Agent(self.actor.on_behalf_of)
        };
        Ok(RowAccess { owner_id: self.owner_id, principal, permission })
    }

    async fn sees_all(&self) -> Result<bool> {
        if self.actor.on_behalf_of == self.actor.agent {
            return Ok(self.actor.sees_all());
        }
        Ok(self.rights_of_agent().await?.sees_all)
    }

    /// The rights of the agent for which this acts, from its row: an agent on whose behalf a runner
    /// acts has sent no token, and no token has an allow list.
    async fn rights_of_agent(&self) -> Result<AgentRights> {
        let key = (self.owner_id, self.actor.on_behalf_of);
        if let Some(rights) = self.store.role_cache.get(key) {
            return Ok(rights);
        }
        let asked = Instant::now();
        let agent = agents::find(&mut self.begin().await?, self.actor.on_behalf_of).await?;
        let rights = agent.map_or_else(AgentRights::default, |agent| AgentRights {
            sees_all: agent.roles.iter().any(|role| role.sees_all()),
            allowed_tools: agent.tools,
        });
        self.store.role_cache.insert(key, asked, rights.clone());
        Ok(rights)
    }

    /// The agent whose rights limit what it sees. `None` if it sees the whole tenant.
    async fn restricted_agent(&self) -> Result<Option<Uuid>> {
        Ok((!self.sees_all().await?).then_some(self.actor.on_behalf_of))
    }

    /// The access to the other tenant's record, if that tenant has granted this permission.
    async fn find_shared_tenant(&self, id: Uuid, permission: RequiredPermission) -> Result<Option<RowAccess>> {
        if self.actor.reads_only_own_calls {
            return Ok(None);
        }
        let home: Option<Uuid> = sqlx::query_scalar("SELECT find_shared_tenant($1, $2, $3)")
            .bind(id)
            .bind(self.actor.on_behalf_of)
            .bind(permission.actions())
            .fetch_one(self.begin().await?.connection())
            .await?;
        // The write counts toward the quota of the record's tenant.
        if let (RequiredPermission::Update, Some(home)) = (permission, home) {
            self.load_quotas(home).await?;
        }
        let principal = Principal::Guest { agent: self.actor.on_behalf_of, tenant: self.owner_id };
        Ok(home.map(|owner_id| RowAccess { owner_id, principal, permission }))
    }

    /// The agent whose shared records are in lists. `None` for a runner: it acts on what it reads,
    /// and only in its own tenant.
    fn shared_with(&self) -> Option<Uuid> {
        let reads_others = !self.actor.is_plain_runner() && !self.actor.reads_only_own_calls;
        (reads_others && self.store.shares.reach(self.owner_id)).then_some(self.actor.on_behalf_of)
    }

    fn context_reader(&self) -> Reader {
        Reader { tenant: self.owner_id, is_runner: self.actor.is_plain_runner() }
    }

    /// A request that the agent cannot see does not exist for it, even if the queue has it.
    async fn refuse_hidden(&self, request: Uuid) -> Result<()> {
        if self.sees_all().await? {
            return Ok(());
        }
        let mut tx = self.begin_for(RequiredPermission::Read).await?;
        let is_hidden: bool = sqlx::query_scalar("SELECT record_exists($1) AND NOT can_see_record($1)")
            .bind(request)
            .fetch_one(tx.connection())
            .await?;
        let is_own = !self.actor.reads_only_own_calls || self.has_asked_for(request).await?;
        if is_hidden || !is_own { Err(StoreError::NotFound { what: "request", id: request }.into()) } else { Ok(()) }
    }

    /// Whether the call is one of the agent's own. Its request's record may be gone.
    async fn has_asked_for(&self, request: Uuid) -> Result<bool> {
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT FROM calls WHERE request = $1 AND agent_id = $2)")
            .bind(request)
            .bind(self.actor.on_behalf_of)
            .fetch_one(self.begin().await?.connection())
            .await?)
    }

    /// Updates the agent's open streams with its new selectors.
    fn refresh_open_selectors<T>(&self, answer: T, kept: &selectors::VersionedSelectors) -> T {
        self.store.streams.selectors.apply(self.owner_id, self.actor.on_behalf_of, kept);
        self.store.streams.announcer.announce_selectors(self.owner_id);
        answer
    }

    async fn create_as(
        &self,
        mut record: NewBreadcrumb,
        idempotency_key: Option<&str>,
        how: NewRecord,
    ) -> Result<(Created, Option<Claim>)> {
        self.actor.refuse_writes_of_callers(record.schema_name.as_deref())?;
        record.check()?;
        self.actor.mark(&mut record.tags, &[])?;
        self.actor.mark_tool(&mut record)?;
        records::refuse_response(record.schema_name.as_deref())?;
        records::refuse_response_tag(&record.tags, &[])?;
        if let Some(key) = idempotency_key {
            idempotency::check(key)?;
        }
        records::create(&self.store.writer, self.owner_id, self.actor, record, idempotency_key, how).await
    }

    async fn load_quotas(&self, owner_id: Uuid) -> Result<()> {
        self.store.quotas.load(&self.store.database, owner_id).await
    }

    async fn begin_async_commit(&self) -> Result<TenantTransaction> {
        TenantTransaction::begin_with(&self.store.database, self.owner_id, Durability::AsyncCommit).await
    }
}

/// Runs the work in the agent's own tenant. If the record is not found there, runs it in the tenant
/// that shared the record, with only the granted right.
macro_rules! with_grant_fallback {
    ($store:expr, $id:expr, $permission:expr, |$tx:ident, $actor:ident| $work:expr) => {{
        #[allow(unused_mut)]
        let (mut $tx, $actor) = ($store.begin_for($permission).await?, $store.actor);
        match $work.await {
            Err(failure) if failure.misses_record($id) => match $store.find_shared_tenant($id, $permission).await? {
                Some(access) => {
                    #[allow(unused_mut)]
                    let mut $tx = TenantTransaction::begin_as(&$store.store.database, access).await?;
                    let $actor = $store.actor.as_guest();
                    $work.await
                }
                None => Err(failure),
            },
            other => other,
        }
    }};
}

impl TenantStore {
    async fn update_as(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: Option<&ChangeCheck<'_>>,
    ) -> Result<Breadcrumb, StoreError> {
        self.actor.refuse_writes_of_callers(None)?;
        self.load_quotas(self.owner_id).await?;
        let updated: Result<(Breadcrumb, bool), StoreError> = retrying!(async {
            with_grant_fallback!(self, id, RequiredPermission::Update, |tx, actor| records::update(
                tx,
                &self.store.quotas,
                actor,
                id,
                version,
                &changes,
                check
            ))
        });
        let (record, was_tool) = updated?;
        if was_tool || secrets::is_tool(record.schema_name.as_deref()) {
            runners::wait(&self.store.database, self.owner_id, id).await;
        }
        Ok(record)
    }
}

#[async_trait]
impl Records for TenantStore {
    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        let is_tool = secrets::is_tool(record.schema_name.as_deref());
        let created = self.create_as(record, idempotency_key, NewRecord::Plain).await?.0;
        if is_tool {
            runners::wait(&self.store.database, self.owner_id, created.id).await;
        }
        Ok(created)
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        Ok(with_grant_fallback!(self, id, RequiredPermission::Read, |tx, actor| records::read(tx, actor, id))?)
    }

    async fn view(&self, id: Uuid) -> Result<BreadcrumbView, StoreError> {
        Ok(with_grant_fallback!(self, id, RequiredPermission::View, |tx, actor| records::read(tx, actor, id))?.into())
    }

    async fn version(&self, id: Uuid, is_full: bool) -> Result<i64, StoreError> {
        let permission = if is_full { RequiredPermission::Read } else { RequiredPermission::View };
        Ok(with_grant_fallback!(self, id, permission, |tx, _actor| records::version(&mut tx, id))?)
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        Ok(with_grant_fallback!(self, id, RequiredPermission::Read, |tx, _actor| history::read(&mut tx, id))?)
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        Box::pin(self.update_as(id, version, changes, None)).await
    }

    async fn update_checked(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        Box::pin(self.update_as(id, version, changes, Some(check))).await
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        self.actor.refuse_writes_of_callers(None)?;
        let deleted: Result<bool, StoreError> = retrying!(async {
            with_grant_fallback!(self, id, RequiredPermission::Delete, |tx, actor| records::delete(
                tx, actor, id, version
            ))
        });
        if deleted? {
            runners::wait(&self.store.database, self.owner_id, id).await;
        }
        Ok(())
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        query.check()?;
        let (database, access, shared_with) =
            (self.store.database.clone(), self.row_access(RequiredPermission::View).await?, self.shared_with());
        let asked = query.clone();
        let listing = move |limit: std::time::Duration| {
            Box::pin(async move {
                let mut tx = TenantTransaction::begin_as(&database, access).await?;
                selector_sql::limit_time(&mut tx, &asked.selector, limit).await?;
                let listed = listing::list(&mut tx, &asked, shared_with).await;
                listed.map_err(|failure| selector_sql::timeout_error(&asked.selector, limit, failure))
            })
        };
        self.store.context_reads.run(self.context_reader(), &query.selector, listing).await
    }

    async fn search(&self, search: &Search) -> Result<SearchResults, StoreError> {
        search.check()?;
        let semantic_search = self.store.semantic_search.as_deref();
        let asked = semantic::plan(semantic_search, search).await?;
        let exact_up_to = semantic_search.map_or(0, |semantic_search| semantic_search.options.exact_up_to);
        let (database, access, wanted) =
            (self.store.database.clone(), self.row_access(RequiredPermission::View).await?, search.clone());
        let searching = move |limit: std::time::Duration| {
            Box::pin(async move {
                let mut tx = TenantTransaction::begin_as(&database, access).await?;
                selector_sql::limit_time(&mut tx, &wanted.selector, limit).await?;
                let items = search::run(&mut tx, &wanted, &asked, exact_up_to).await;
                let items = items.map_err(|failure| selector_sql::timeout_error(&wanted.selector, limit, failure))?;
                Ok(SearchResults { items, mode: asked.mode, fallback: asked.fallback })
            })
        };
        self.store.context_reads.run(self.context_reader(), &search.selector, searching).await
    }
}

#[async_trait]
impl Rights for TenantStore {
    async fn grants(&self, record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        Ok(acl::list(&mut self.begin_for(RequiredPermission::View).await?, self.actor, record).await?)
    }

    async fn grant(&self, change: &AclChange) -> Result<Uuid, StoreError> {
        self.actor.refuse_writes_of_callers(None)?;
        change.check()?;
        let granted =
            retrying!(async { acl::grant(self.begin_for(RequiredPermission::View).await?, self.actor, change).await })?;
        // This process sees the new grant at once.
        self.store.shares.refresh(&self.store.database).await?;
        Ok(granted)
    }

    async fn revoke(&self, change: &AclChange) -> Result<u64, StoreError> {
        self.actor.refuse_writes_of_callers(None)?;
        change.check()?;
        retrying!(async { acl::revoke(self.begin_for(RequiredPermission::View).await?, self.actor, change).await })
    }
}

#[async_trait]
impl Events for TenantStore {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        Ok(events::latest(&mut self.begin().await?).await?)
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        let rights = SubscriberRights::new(self.owner_id, self.actor, self.sees_all().await?);
        Ok(events::subscribe(&self.store.streams, rights, self.actor.on_behalf_of, options).await?)
    }
}

#[async_trait]
impl Selectors for TenantStore {
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        selector.check()?;
        let created =
            retrying!(async { selectors::create(self.begin().await?, self.actor.on_behalf_of, &selector).await });
        created.map(|(selector, kept)| self.refresh_open_selectors(selector, &kept))
    }

    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(selectors::list(&mut self.begin().await?, self.actor.on_behalf_of).await?)
    }

    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        selector.check()?;
        let updated =
            retrying!(async { selectors::update(self.begin().await?, self.actor.on_behalf_of, id, &selector).await });
        updated.map(|(selector, kept)| self.refresh_open_selectors(selector, &kept))
    }

    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError> {
        let deleted = retrying!(async { selectors::delete(self.begin().await?, self.actor.on_behalf_of, id).await });
        deleted.map(|kept| self.refresh_open_selectors((), &kept))
    }
}

#[async_trait]
impl CallQueue for TenantStore {
    async fn call_queued(&self) {
        self.store.writer.queue_notifier.wait(self.owner_id, &self.queue_waiter).await;
    }

    async fn create_claimed(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        terms: ClaimTerms,
    ) -> Result<(Created, Option<Claim>), StoreError> {
        Ok(self.create_as(request, idempotency_key, NewRecord::Claimed(terms)).await?)
    }

    async fn create_answered(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        terms: AnsweredTerms,
    ) -> Result<Created, StoreError> {
        writing::check_response(&terms.response)?;
        Ok(self.create_as(request, idempotency_key, NewRecord::Answered(Box::new(terms))).await?.0)
    }

    async fn allowed_tools(&self) -> Result<Option<AllowedTools>, StoreError> {
        // Only an agent that writes nothing but requests has a list.
        if self.actor.on_behalf_of == self.actor.agent && !self.actor.writes_only_requests {
            return Ok(None);
        }
        Ok(self.rights_of_agent().await?.allowed_tools)
    }

    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        claim.check()?;
        if claim.except_tools.iter().any(|tool| tool.contains('\0')) {
            return Err(Violations::one("except_tools", "contains a NUL character (U+0000)").into());
        }
        retrying!(calls::claim(&self.store.database, &self.store.streams.feeds, self.owner_id, claim))
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        Ok(calls::start(&self.store.writer, self.owner_id, lease, max_attempts).await?)
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<LeaseState>, StoreError> {
        if !(1_000..=600_000).contains(&lease_ms) {
            return Err(Violations::one("lease_ms", "must be from 1000 to 600000").into());
        }
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        retrying!(async { calls::heartbeat(self.begin_async_commit().await?, leases, lease_ms).await })
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        writing::check_response(&response)?;
        Ok(calls::complete(&self.store.writer, self.owner_id, self.actor, lease, response).await?)
    }

    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError> {
        retrying!(async { calls::release(self.begin().await?, lease, release).await })
    }

    async fn call(&self, request: Uuid) -> Result<Call, StoreError> {
        self.refuse_hidden(request).await?;
        Ok(calls::find(&mut self.begin().await?, request).await?)
    }

    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError> {
        self.refuse_hidden(request).await?;
        if self.actor.writes_only_requests && !self.has_asked_for(request).await? {
            return Err(StoreError::Forbidden("an agent with the role caller can cancel only its own calls".into()));
        }
        retrying!(async { calls::cancel(self.begin().await?, self.actor.agent, request).await })
    }
}

#[async_trait]
impl Runners for TenantStore {
    async fn report_runner(&self, report: &RunnerReport) -> Result<ReportReply, StoreError> {
        report.check()?;
        retrying!(async { runners::report(self.begin_async_commit().await?, report).await })
    }

    async fn runners_behind(&self, tool: Uuid) -> Result<Vec<Uuid>, StoreError> {
        Ok(runners::behind(self.begin().await?, tool).await?)
    }
}

#[async_trait]
impl CallHistory for TenantStore {
    async fn list_calls(&self, query: &CallQuery) -> Result<CallPage, StoreError> {
        query.check()?;
        let agent = self.restricted_agent().await?;
        let own = CallQuery { agent_id: Some(self.actor.on_behalf_of), ..query.clone() };
        let query = if self.actor.reads_only_own_calls { &own } else { query };
        Ok(calls::history::list(&mut self.begin_for(RequiredPermission::Read).await?, agent, query).await?)
    }

    async fn call_details(&self, request: Uuid) -> Result<CallDetails, StoreError> {
        self.refuse_hidden(request).await?;
        let agent = self.restricted_agent().await?;
        Ok(calls::history_details::read(self.begin_for(RequiredPermission::Read).await?, agent, request).await?)
    }

    async fn call_stats(&self, query: &CallStatsQuery) -> Result<CallStats, StoreError> {
        query.check()?;
        Ok(stats::read(self.begin().await?, query).await?)
    }
}

#[async_trait]
impl Secrets for TenantStore {
    async fn create_secret(&self, secret: NewSecret) -> Result<SecretInfo, StoreError> {
        secret.check()?;
        let hosts = rcrt_breadcrumb::secret_hosts(&secret.hosts)?;
        Ok(secrets::create(self.begin().await?, self.actor.agent, &self.store.cipher, &secret, &hosts).await?)
    }

    async fn secrets(&self) -> Result<Vec<SecretInfo>, StoreError> {
        Ok(secrets::list(&mut self.begin().await?).await?)
    }

    async fn update_secret(&self, id: Uuid, changes: SecretChanges) -> Result<SecretInfo, StoreError> {
        changes.check()?;
        let hosts = changes.hosts.as_deref().map(rcrt_breadcrumb::secret_hosts).transpose()?;
        let (tx, cipher) = (self.begin().await?, &self.store.cipher);
        Ok(secrets::update(tx, self.actor.agent, cipher, id, &changes, hosts.as_deref()).await?)
    }

    async fn delete_secret(&self, id: Uuid) -> Result<(), StoreError> {
        Ok(secrets::delete(self.begin().await?, self.actor.agent, id).await?)
    }

    async fn grant_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        retrying!(async { secrets::grant(self.begin().await?, self.actor.agent, id, tool_id).await })
    }

    async fn revoke_secret(&self, id: Uuid, tool_id: Uuid) -> Result<SecretInfo, StoreError> {
        Ok(secrets::revoke(self.begin().await?, self.actor.agent, id, tool_id).await?)
    }

    async fn decrypt_secret(&self, id: Uuid, reason: &str, for_tool: Option<Uuid>) -> Result<String, StoreError> {
        secrets::check_reason(reason)?;
        if for_tool.is_none() && !self.actor.is_curator {
            let why = "only a curator can decrypt a secret without a tool; name the record of the tool that needs it";
            return Err(StoreError::Forbidden(why.into()));
        }
        let (tx, cipher) = (self.begin().await?, &self.store.cipher);
        Ok(secrets::decrypt(tx, self.actor.agent, cipher, id, reason, for_tool).await?)
    }
}

#[async_trait]
impl EgressLog for TenantStore {
    async fn log_egress(&self, records: Vec<EgressRecord>) -> Result<(), StoreError> {
        egress_log::check(&records)?;
        Ok(egress_log::write(self.begin_async_commit().await?, &records).await?)
    }

    async fn egress_log(&self, query: &EgressQuery) -> Result<Vec<EgressEntry>, StoreError> {
        egress_log::check_query(query)?;
        Ok(egress_log::read(self.begin().await?, query).await?)
    }
}

#[async_trait]
impl AuditLog for TenantStore {
    async fn audit_log(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        if !self.actor.is_curator {
            return Err(StoreError::Forbidden("only a curator can read the audit log".into()));
        }
        audit::check_query(query)?;
        Ok(audit::read(&mut self.begin().await?, query).await?)
    }
}

impl Breadcrumbs for TenantStore {
    fn acting_for(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        if !self.actor.is_runner() {
            return Err(StoreError::Forbidden("only a runner can act in another agent's name".into()));
        }
        Ok(Arc::new(Self::of(self.store.clone(), self.owner_id, self.actor.acting_for(agent))))
    }
}
