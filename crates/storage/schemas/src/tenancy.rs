//! The layer as a [`Tenancy`]: each agent's store is a [`Layer`].

use std::sync::Arc;

use rcrt_breadcrumb::{Breadcrumbs, Identity, Tenancy, TenancyDecorator};

use crate::Schemas;
use crate::layer::Layer;

impl TenancyDecorator for Schemas {
    fn inner(&self) -> &dyn Tenancy {
        &*self.inner
    }

    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        let inner = self.inner.acting_as(identity.clone());
        Arc::new(Layer { inner, identity, definitions: self.definitions.clone() })
    }
}
