//! One agent's store, wherever its tenant is.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures::{StreamExt as _, stream};
use rcrt_breadcrumb::{
    AclChange, BreadcrumbView, Breadcrumbs, BreadcrumbsDecorator, Identity, StoreError, SubscribeOptions,
    SubscriptionStream, Tenancy as _, Violations,
};
use rcrt_store::Store;
use uuid::Uuid;

use crate::routes::Routes;

pub(crate) struct InCell {
    routes: Arc<Routes>,
    identity: Identity,
    on_behalf_of: Option<Uuid>,
    /// One for each cell in which the tenant was while this exists.
    first: Link,
}

struct Link {
    store: Arc<Store>,
    breadcrumbs: Arc<dyn Breadcrumbs>,
    next: OnceLock<Box<Link>>,
}

impl InCell {
    pub(crate) fn new(routes: Arc<Routes>, identity: Identity) -> Self {
        // Of a cell that is not open: the first cell, which refuses the tenant's writes.
        let store = routes.store(identity.owner_id).unwrap_or_else(|_| routes.home.clone());
        let breadcrumbs = store.acting_as(identity.clone());
        Self { routes, identity, on_behalf_of: None, first: Link { store, breadcrumbs, next: OnceLock::new() } }
    }

    /// The store in the tenant's present cell. If that cannot be reached, the one before, which
    /// refuses writes.
    fn link(&self) -> &Link {
        let Ok(store) = self.routes.store(self.identity.owner_id) else { return &self.first };
        let mut link = &self.first;
        while !Arc::ptr_eq(&link.store, &store) {
            link = link.next.get_or_init(|| {
                let breadcrumbs = self.in_store(&store).unwrap_or_else(|_| self.first.breadcrumbs.clone());
                Box::new(Link { store: store.clone(), breadcrumbs, next: OnceLock::new() })
            });
        }
        link
    }

    fn in_store(&self, store: &Store) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        let own = store.acting_as(self.identity.clone());
        self.on_behalf_of.map_or(Ok(own.clone()), |agent| own.on_behalf_of(agent))
    }

    /// This agent as one of no tenant, to which a store shows what is public.
    fn as_stranger(&self) -> Identity {
        Identity { owner_id: Uuid::nil(), ..self.identity.clone() }
    }

    /// The stores that can have a public record which the tenant's cell does not have. A tool reads
    /// those of its cell only.
    fn others(&self) -> Vec<Arc<Store>> {
        if self.on_behalf_of.is_some() {
            return Vec::new();
        }
        let own = &self.link().store;
        self.routes.all().into_iter().filter(|store| !Arc::ptr_eq(store, own)).collect()
    }
}

#[async_trait]
impl BreadcrumbsDecorator for InCell {
    fn inner(&self) -> &dyn Breadcrumbs {
        &*self.link().breadcrumbs
    }

    async fn view(&self, id: Uuid) -> Result<BreadcrumbView, StoreError> {
        let own = self.inner().view(id).await;
        if matches!(own, Err(StoreError::NotFound { .. })) {
            for store in self.others() {
                if let Ok(view) = store.acting_as(self.as_stranger()).view(id).await {
                    return Ok(view);
                }
            }
        }
        own
    }

    async fn version(&self, id: Uuid, is_full: bool) -> Result<i64, StoreError> {
        let own = self.inner().version(id, is_full).await;
        if matches!(own, Err(StoreError::NotFound { .. })) && !is_full {
            for store in self.others() {
                if let Ok(version) = store.acting_as(self.as_stranger()).version(id, false).await {
                    return Ok(version);
                }
            }
        }
        own
    }

    /// Grants do not reach another cell.
    async fn grant(&self, change: &AclChange) -> Result<Uuid, StoreError> {
        let own = self.routes.cell(self.identity.owner_id);
        if let Some(grantee) = change.grantee_owner_id {
            let theirs = self.routes.cell(grantee);
            if theirs != own {
                let what = format!(
                    "{grantee} is in the cell {theirs} and the record in {own}; grants do not reach another cell, so the \
                     operator must move one of the tenants"
                );
                return Err(Violations::one("grantee_owner_id", what).into());
            }
        }
        let granted = self.inner().grant(change).await;
        if let (Err(StoreError::Invalid(found)), Some(agent)) = (&granted, change.grantee_agent_id)
            && found.0.iter().any(|one| one.field == "grantee_agent_id" && one.message.contains("does not exist"))
        {
            let what = format!(
                "{agent} does not exist in the cell {own}; grants do not reach another cell, so name an agent of this one"
            );
            return Err(Violations::one("grantee_agent_id", what).into());
        }
        granted
    }

    /// The stream ends with an error when the tenant moves. The numbers of its events go on in the
    /// other cell, so a subscriber can resume there.
    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        let link = self.link();
        let moved = Box::pin(self.routes.clone().moved(self.identity.owner_id, link.store.clone()));
        let items = link.breadcrumbs.subscribe(options).await?;
        let following = stream::unfold(Some((items, moved)), |state| async move {
            let (mut items, mut moved) = state?;
            tokio::select! {
                biased;
                () = &mut moved => {
                    Some((Err(StoreError::Unavailable("the tenant has moved to another database".into())), None))
                }
                item = items.next() => item.map(|item| (item, Some((items, moved)))),
            }
        });
        Ok(following.boxed())
    }

    async fn call_queued(&self) {
        let link = self.link();
        tokio::select! {
            () = link.breadcrumbs.call_queued() => {}
            () = self.routes.clone().moved(self.identity.owner_id, link.store.clone()) => {}
        }
    }

    fn on_behalf_of(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        let link = self.link();
        let breadcrumbs = link.breadcrumbs.on_behalf_of(agent)?;
        Ok(Arc::new(Self {
            routes: self.routes.clone(),
            identity: self.identity.clone(),
            on_behalf_of: Some(agent),
            first: Link { store: link.store.clone(), breadcrumbs, next: OnceLock::new() },
        }))
    }
}
