//! The layer as a [`Tenancy`], and as one agent's store: what definitions change in it.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AnsweredTerms, Breadcrumb, BreadcrumbChanges, BreadcrumbView, Breadcrumbs, BreadcrumbsDecorator, ChangeCheck,
    Claim, ClaimTerms, Created, Identity, Lease, NewBreadcrumb, Role, StoreError, Tenancy, TenancyDecorator,
    schema_names,
};
use uuid::Uuid;

use crate::Schemas;
use crate::definition_cache::DefinitionCache;
use crate::hints::Hints;

impl TenancyDecorator for Schemas {
    fn inner(&self) -> &dyn Tenancy {
        &*self.inner
    }

    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        let inner = self.inner.acting_as(identity.clone());
        Arc::new(Layer { inner, identity, definitions: self.definitions.clone() })
    }
}

pub(crate) struct Layer {
    pub(crate) inner: Arc<dyn Breadcrumbs>,
    pub(crate) identity: Identity,
    pub(crate) definitions: Arc<DefinitionCache>,
}

#[async_trait]
impl BreadcrumbsDecorator for Layer {
    fn inner(&self) -> &dyn Breadcrumbs {
        &*self.inner
    }

    async fn create(&self, record: NewBreadcrumb, idempotency_key: Option<&str>) -> Result<Created, StoreError> {
        self.create_as_defined(record, idempotency_key).await
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

    async fn create_claimed(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        terms: ClaimTerms,
    ) -> Result<(Created, Option<Claim>), StoreError> {
        let request = self.new_as_defined(request).await?;
        let (mut created, claim) = self.inner.create_claimed(request.record, idempotency_key, terms).await?;
        created.warnings.extend(request.warnings);
        Ok((created, claim))
    }

    async fn create_answered(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        mut terms: AnsweredTerms,
    ) -> Result<Created, StoreError> {
        let request = self.new_as_defined(request).await?;
        terms.response = self.response_as_defined(terms.response).await;
        let mut created = self.inner.create_answered(request.record, idempotency_key, terms).await?;
        created.warnings.extend(request.warnings);
        Ok(created)
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        let response = self.response_as_defined(response).await;
        self.inner.complete(lease, response).await
    }

    fn on_behalf_of(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        let inner = self.inner.on_behalf_of(agent)?;
        let mut identity = self.identity.clone();
        // An agent that acts on behalf of another has no curator rights.
        if agent != identity.agent_id {
            identity.roles.retain(|role| *role != Role::Curator);
        }
        Ok(Arc::new(Self { inner, identity, definitions: self.definitions.clone() }))
    }
}
