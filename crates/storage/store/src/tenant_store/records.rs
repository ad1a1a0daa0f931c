//! Records, with the fallback to records that other tenants have shared.

use async_trait::async_trait;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, BreadcrumbView, ChangeCheck,
    Claim, Created, NewBreadcrumb, Records, Search, SearchResults, StoreError, schema_names,
};
use uuid::Uuid;

use super::TenantStore;
use crate::calls::runners;
use crate::database::failure::{Result, retrying};
use crate::database::row_access::RequiredPermission;
use crate::database::transaction::TenantTransaction;
use crate::records::{self, NewRecord, history, idempotency, listing, selector_sql};
use crate::search::{self, semantic};

/// Runs the work in the agent's own tenant. If the record is not found there, runs it in the tenant
/// that shared the record, with only the granted right.
macro_rules! with_grant_fallback {
    ($store:expr, $id:expr, $permission:expr, |$tx:ident, $actor:ident| $work:expr) => {{
        #[allow(unused_mut)]
        let (mut $tx, $actor) = ($store.begin_for($permission).await?, $store.actor().await?);
        match $work.await {
            Err(failure) if failure.misses_record($id) => match $store.find_shared_tenant($id, $permission).await? {
                Some(access) => {
                    #[allow(unused_mut)]
                    let mut $tx = TenantTransaction::begin_as(&$store.store.database, access).await?;
                    let $actor = $store.actor().await?.as_guest();
                    $work.await
                }
                None => Err(failure),
            },
            other => other,
        }
    }};
}

impl TenantStore {
    pub(super) async fn create_as(
        &self,
        mut record: NewBreadcrumb,
        idempotency_key: Option<&str>,
        how: NewRecord,
    ) -> Result<(Created, Option<Claim>)> {
        let actor = self.actor().await?;
        actor.refuse_creates_of_callers(record.schema_name.as_deref())?;
        record.check()?;
        actor.refuse_parent(&record)?;
        actor.mark(&mut record.tags, &[])?;
        if schema_names::is_tool(record.schema_name.as_deref()) {
            self.load_quotas(self.owner_id).await?;
            actor.mark_tool(&mut record, self.store.quotas.publish(self.owner_id))?;
        }
        actor.mark_memory(&mut record)?;
        records::refuse_response(record.schema_name.as_deref())?;
        records::refuse_response_tag(&record.tags, &[])?;
        if let Some(key) = idempotency_key {
            idempotency::check(key)?;
        }
        records::create(&self.store.writer, self.owner_id, actor, record, idempotency_key, how).await
    }

    /// Waits until the runners use this change of a tool.
    async fn runners_apply(&self, id: Uuid) {
        runners::wait(&self.store.database, &self.store.applied_changes, self.owner_id, id).await;
    }

    async fn update_as(
        &self,
        id: Uuid,
        version: i64,
        changes: BreadcrumbChanges,
        check: Option<&ChangeCheck<'_>>,
    ) -> Result<Breadcrumb, StoreError> {
        self.actor.refuse_changes_of_callers()?;
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
        if was_tool || schema_names::is_tool(record.schema_name.as_deref()) {
            self.runners_apply(id).await;
        }
        Ok(record)
    }
}

#[async_trait]
impl Records for TenantStore {
    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        let is_tool = schema_names::is_tool(record.schema_name.as_deref());
        let created = self.create_as(record, idempotency_key, NewRecord::Plain).await?.0;
        if is_tool {
            self.runners_apply(created.id).await;
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
        self.actor.refuse_changes_of_callers()?;
        let deleted: Result<bool, StoreError> = retrying!(async {
            with_grant_fallback!(self, id, RequiredPermission::Delete, |tx, actor| records::delete(
                tx, actor, id, version
            ))
        });
        if deleted? {
            self.runners_apply(id).await;
        }
        Ok(())
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        query.check()?;
        let (database, access, shared_with) =
            (self.store.database.clone(), self.row_access(RequiredPermission::View).await?, self.shared_with().await?);
        let asked = query.clone();
        let listing = move |limit: std::time::Duration| {
            Box::pin(async move {
                let asked = &asked;
                let listed = database.read(|database| async move {
                    let mut tx = TenantTransaction::begin_as(&database, access).await?;
                    selector_sql::limit_time(&mut tx, &asked.selector, limit).await?;
                    listing::list(&mut tx, asked, shared_with).await
                });
                listed.await.map_err(|failure| selector_sql::timeout_error(&asked.selector, limit, failure))
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
                let (wanted, plan) = (&wanted, &asked);
                let items = database.read(|database| async move {
                    let mut tx = TenantTransaction::begin_as(&database, access).await?;
                    selector_sql::limit_time(&mut tx, &wanted.selector, limit).await?;
                    search::run(&mut tx, wanted, plan, exact_up_to).await
                });
                let items =
                    items.await.map_err(|failure| selector_sql::timeout_error(&wanted.selector, limit, failure))?;
                Ok(SearchResults { items, mode: asked.mode, fallback: asked.fallback })
            })
        };
        self.store.context_reads.run(self.context_reader(), &search.selector, searching).await
    }
}
