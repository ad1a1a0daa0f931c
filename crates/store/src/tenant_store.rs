//! The store as one agent of one tenant sees it: checks the input, opens the tenant's transaction, calls the room that
//! does the work.

use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{
    AclChange, AclEntry, Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion,
    BreadcrumbView, Breadcrumbs, Call, ChangeCheck, Claim, ClaimRequest, Created, EgressEntry, EgressQuery,
    EgressRecord, EventNumber, FollowStream, Following, Found, HeldLease, Identity, Lease, NewBreadcrumb, NewSecret,
    Release, Search, SecretChanges, SecretInfo, Selector, SelectorSubscription, Standby, StandingBy, StoreError,
    Violations,
};
use uuid::Uuid;

use crate::author::Author;
use crate::calls::Heard;
use crate::events::Listener;
use crate::failure::{Done, retrying};
use crate::store::Inner;
use crate::transaction::{Durability, TenantTransaction};
use crate::view::{Eyes, View, Wish};
use crate::{
    acl, agents, calls, egress_log, events, history, idempotency, listing, meaning, records, search, secrets,
    selecting, selectors, shares,
};

pub(crate) struct TenantStore {
    store: Arc<Inner>,
    owner_id: Uuid,
    author: Author,
    heard: Heard,
}

impl TenantStore {
    pub(crate) fn new(store: Arc<Inner>, identity: &Identity) -> Self {
        Self::of(store, identity.owner_id, Author::of(identity))
    }

    fn of(store: Arc<Inner>, owner_id: Uuid, author: Author) -> Self {
        Self { store, owner_id, author, heard: Heard::default() }
    }

    /// Sees all of the tenant: for what no agent sees more or less of.
    async fn begin(&self) -> Done<TenantTransaction> {
        TenantTransaction::begin(&self.store, self.owner_id).await
    }

    /// Sees what the agent sees.
    async fn begin_for(&self, wish: Wish) -> Done<TenantTransaction> {
        TenantTransaction::begin_as(&self.store, self.view(wish).await?).await
    }

    async fn view(&self, wish: Wish) -> Done<View> {
        let eyes = if self.sees_all().await? { Eyes::All } else { Eyes::Agent(self.author.voice) };
        Ok(View { owner_id: self.owner_id, eyes, wish })
    }

    async fn sees_all(&self) -> Done<bool> {
        if self.author.voice == self.author.agent {
            return Ok(self.author.sees_all());
        }
        // The agent in whose name a runner acts has shown no token here: what it is is looked up.
        let key = (self.owner_id, self.author.voice);
        if let Some(sees_all) = self.store.voices.remembered(key) {
            return Ok(sees_all);
        }
        let agent = agents::find(&mut self.begin().await?, self.author.voice).await?;
        let sees_all = agent.is_some_and(|agent| agent.roles.iter().any(|role| role.sees_all()));
        self.store.voices.remember(key, sees_all);
        Ok(sees_all)
    }

    /// The other tenant's view of the record, where that tenant has opened it for this.
    async fn abroad(&self, id: Uuid, wish: Wish) -> Done<Option<View>> {
        let home: Option<Uuid> = sqlx::query_scalar("SELECT shared_home($1, $2, $3)")
            .bind(id)
            .bind(self.author.voice)
            .bind(wish.actions())
            .fetch_one(self.begin().await?.connection())
            .await?;
        // The write takes room in the record's tenant.
        if let (Wish::Update, Some(home)) = (wish, home) {
            self.store.know_quotas(home).await?;
        }
        let eyes = Eyes::Guest { agent: self.author.voice, tenant: self.owner_id };
        Ok(home.map(|owner_id| View { owner_id, eyes, wish }))
    }

    /// Whose shared records stand in the agent's lists. A runner acts upon what it reads, and only on its own tenant's.
    fn shared_with(&self) -> Option<Uuid> {
        (!self.author.is_mere_runner() && self.store.shares.reach(self.owner_id)).then_some(self.author.voice)
    }

    /// A request that the agent may not see is none, whatever the queue knows of it.
    async fn refuse_hidden(&self, request: Uuid) -> Done<()> {
        if self.sees_all().await? {
            return Ok(());
        }
        let mut tx = self.begin_for(Wish::Read).await?;
        let is_hidden: bool = sqlx::query_scalar("SELECT record_is_there($1) AND NOT sees_record($1)")
            .bind(request)
            .fetch_one(tx.connection())
            .await?;
        if is_hidden { Err(StoreError::NotFound { what: "request", id: request }.into()) } else { Ok(()) }
    }

    /// Tells the agent's open streams what it wants from now on.
    fn wants<T>(&self, answer: T, kept: &selectors::Kept) -> T {
        self.store.selectors.learn(self.owner_id, self.author.voice, kept);
        self.store.announcer.announce_selectors(self.owner_id);
        answer
    }

    async fn begin_soon(&self) -> Done<TenantTransaction> {
        TenantTransaction::begin_with(&self.store, self.owner_id, Durability::Soon).await
    }
}

/// Does it in the agent's own tenant; where the record is not there, in the tenant that has opened it to the agent, with
/// the right alone that was granted.
macro_rules! reaching {
    ($store:expr, $id:expr, $wish:expr, |$tx:ident, $author:ident| $work:expr) => {{
        #[allow(unused_mut)]
        let (mut $tx, $author) = ($store.begin_for($wish).await?, $store.author);
        match $work.await {
            Err(failure) if failure.misses_record($id) => match $store.abroad($id, $wish).await? {
                Some(view) => {
                    #[allow(unused_mut)]
                    let mut $tx = TenantTransaction::begin_as(&$store.store, view).await?;
                    let $author = $store.author.as_guest();
                    $work.await
                }
                None => Err(failure),
            },
            other => other,
        }
    }};
}

#[async_trait]
impl Breadcrumbs for TenantStore {
    async fn create(&self, mut record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        record.check()?;
        self.author.mark(&mut record.tags, &[])?;
        self.author.mark_tool(&mut record)?;
        records::refuse_response(record.schema_name.as_deref())?;
        records::refuse_response_tag(&record.tags, &[])?;
        if let Some(key) = idempotency_key {
            idempotency::check(key)?;
        }
        Ok(records::create(&self.store, self.owner_id, self.author, record, idempotency_key).await?)
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        Ok(reaching!(self, id, Wish::Read, |tx, author| records::read(tx, author, id))?)
    }

    async fn view(&self, id: Uuid) -> Result<BreadcrumbView, StoreError> {
        Ok(reaching!(self, id, Wish::View, |tx, author| records::read(tx, author, id))?.into())
    }

    async fn history(&self, id: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        Ok(reaching!(self, id, Wish::Read, |tx, _author| history::read(&mut tx, id))?)
    }

    async fn update(&self, id: Uuid, version: i64, changes: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        self.store.know_quotas(self.owner_id).await?;
        retrying!(async {
            reaching!(self, id, Wish::Update, |tx, author| records::update(tx, author, id, version, &changes, None))
        })
    }

    async fn update_checked(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: &ChangeCheck<'_>,
    ) -> Result<Breadcrumb, StoreError> {
        self.store.know_quotas(self.owner_id).await?;
        retrying!(async {
            let check = Some(check);
            reaching!(self, id, Wish::Update, |tx, author| records::update(tx, author, id, version, &changes, check))
        })
    }

    async fn delete(&self, id: Uuid, version: Option<i64>) -> Result<(), StoreError> {
        retrying!(async { reaching!(self, id, Wish::Delete, |tx, author| records::delete(tx, author, id, version)) })
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        query.check()?;
        let (store, view, shared_with) = (self.store.clone(), self.view(Wish::View).await?, self.shared_with());
        let asked = query.clone();
        let listing = Box::pin(async move {
            let mut tx = TenantTransaction::begin_as(&store, view).await?;
            selecting::bound(&mut tx, &asked.selector).await?;
            let listed = listing::list(&mut tx, &asked, shared_with).await;
            listed.map_err(|failure| selecting::refusal(&asked.selector, failure))
        });
        self.store.reading(self.owner_id, &query.selector, listing).await
    }

    async fn search(&self, search: &Search) -> Result<Found, StoreError> {
        search.check()?;
        let meaning = self.store.meaning.as_deref();
        let asked = meaning::ask(meaning, search).await?;
        let exact_up_to = meaning.map_or(0, |meaning| meaning.options.exact_up_to);
        let (store, view, wanted) = (self.store.clone(), self.view(Wish::View).await?, search.clone());
        let searching = Box::pin(async move {
            let mut tx = TenantTransaction::begin_as(&store, view).await?;
            selecting::bound(&mut tx, &wanted.selector).await?;
            let items = search::run(&mut tx, &wanted, &asked, exact_up_to).await;
            let items = items.map_err(|failure| selecting::refusal(&wanted.selector, failure))?;
            Ok(Found { items, mode: asked.mode, fallback: asked.fallback })
        });
        self.store.reading(self.owner_id, &search.selector, searching).await
    }

    async fn grants(&self, record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        Ok(acl::list(&mut self.begin_for(Wish::View).await?, self.author, record).await?)
    }

    async fn grant(&self, change: &AclChange) -> Result<Uuid, StoreError> {
        change.check()?;
        let granted = retrying!(async { acl::grant(self.begin_for(Wish::View).await?, self.author, change).await })?;
        // At once in this process.
        shares::learn(&self.store).await?;
        Ok(granted)
    }

    async fn revoke(&self, change: &AclChange) -> Result<u64, StoreError> {
        change.check()?;
        retrying!(async { acl::revoke(self.begin_for(Wish::View).await?, self.author, change).await })
    }

    fn acting_for(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        if !self.author.is_runner() {
            return Err(StoreError::Forbidden("only a runner acts in another agent's name".into()));
        }
        Ok(Arc::new(Self::of(self.store.clone(), self.owner_id, self.author.acting_for(agent))))
    }

    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        Ok(events::latest(&mut self.begin().await?).await?)
    }

    async fn follow(&self, following: Following) -> Result<FollowStream, StoreError> {
        let listener = Listener::new(self.owner_id, self.author, self.sees_all().await?);
        Ok(events::follow(&self.store, listener, self.author.voice, following).await?)
    }

    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        selector.check()?;
        let created = retrying!(async { selectors::create(self.begin().await?, self.author.voice, &selector).await });
        created.map(|(selector, kept)| self.wants(selector, &kept))
    }

    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(selectors::list(&mut self.begin().await?, self.author.voice).await?)
    }

    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        selector.check()?;
        let updated =
            retrying!(async { selectors::update(self.begin().await?, self.author.voice, id, &selector).await });
        updated.map(|(selector, kept)| self.wants(selector, &kept))
    }

    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError> {
        let deleted = retrying!(async { selectors::delete(self.begin().await?, self.author.voice, id).await });
        deleted.map(|kept| self.wants((), &kept))
    }

    async fn call_queued(&self) {
        self.store.hints.wait(self.owner_id, &self.heard).await;
    }

    fn stand_by(&self, standby: Arc<dyn Standby>) -> StandingBy {
        self.store.standbys.join(self.owner_id, self.author, standby)
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
        Ok(calls::complete::complete(&self.store, self.owner_id, self.author, lease, response).await?)
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

    async fn log_egress(&self, records: Vec<EgressRecord>) -> Result<(), StoreError> {
        egress_log::check(&records)?;
        Ok(egress_log::write(self.begin_soon().await?, &records).await?)
    }

    async fn egress_log(&self, query: &EgressQuery) -> Result<Vec<EgressEntry>, StoreError> {
        egress_log::check_query(query)?;
        Ok(egress_log::read(self.begin().await?, query).await?)
    }
}
