//! The store of the database, and those of the other cells if there are any.

use std::sync::Arc;

use anyhow::Context;
use futures::FutureExt as _;
use rcrt_breadcrumb::{Deliveries, EventSink, Tenancy};
use rcrt_cells::{Cells, OpenStore};
use rcrt_nats::NatsCopy;
use rcrt_store::{Store, StoreOptions};

/// The open stores.
#[derive(Clone)]
pub struct Stores {
    first: Arc<Store>,
    /// `None` if the database has no other cells.
    cells: Option<Arc<Cells>>,
}

impl Stores {
    /// Opens the store, and the cells that the database names. `copy` gets the events of all.
    pub async fn open(
        mut options: StoreOptions,
        copy: Option<Arc<NatsCopy>>,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> anyhow::Result<Self> {
        let admin_url = options.admin_url.clone();
        // The app and the replica of the options are those of the first database.
        let of_cells = StoreOptions { app_url: None, read_url: None, ..options.clone() };
        options.event_copy = copy.clone().map(|copy| -> Arc<dyn EventSink> { copy });
        let open: OpenStore = Box::new(move |name, url| {
            let event_copy = copy.as_ref().map(|copy| -> Arc<dyn EventSink> { Arc::new(copy.of_cell(&name)) });
            let options = StoreOptions { admin_url: url, event_copy, ..of_cells.clone() };
            async move { Store::open(options, &|_| {}).await.map_err(|error| error.to_string()) }.boxed()
        });
        let first = Box::pin(Store::open(options, progress)).await.context("the store cannot be opened")?;
        match Cells::open(first.clone(), &admin_url, open).await {
            Ok(cells) => Ok(Self { first, cells }),
            Err(error) => {
                first.close().await;
                Err(error).context("the directory of cells cannot be read")
            }
        }
    }

    /// All tenants, wherever they are.
    pub fn tenancy(&self) -> Arc<dyn Tenancy> {
        match &self.cells {
            Some(cells) => cells.clone(),
            None => self.first.clone(),
        }
    }

    /// The webhook deliveries of all tenants.
    pub fn deliveries(&self) -> Arc<dyn Deliveries> {
        self.cells.as_ref().map_or_else(|| self.first.deliveries(), |cells| cells.deliveries())
    }

    pub async fn close(&self) {
        if let Some(cells) = &self.cells {
            cells.close().await;
        }
        self.first.close().await;
    }
}
