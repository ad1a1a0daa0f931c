//! Cells: several databases, each with some of the tenants. [`Cells`] is a `Tenancy` over their
//! stores that sends each operation to the tenant's cell, and the operator's functions add cells
//! ([`add_cell`]) and move tenants ([`move_tenant`]).
//!
//! The first database is the cell [`HOME`]. It has the directory, and a row for every tenant, so
//! names and ids stay unique. A tenant that the directory does not name is there. Without other
//! cells [`Cells::open`] returns `None`, and the caller uses the one store as it is.
//!
//! Nothing depends on how soon a server learns of a move: the database that a tenant leaves refuses
//! its writes (`migrations/0014_cells.sql`). The store knows nothing of cells. This crate
//! deliberately knows no HTTP, and nothing of what is in the tables that it copies.
//!
//! Begin with `routes.rs` and `moving.rs`.

mod adding;
mod copying;
mod directory;
mod in_cell;
mod moving;
mod routes;
mod tenancy;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Deliveries;
use rcrt_store::Store;
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use adding::{CellInfo, UnfinishedMove, add_cell, cells, set_default_cell, unfinished_moves};
pub use moving::{Moved, move_tenant};
pub use routes::OpenStore;

use routes::Routes;

/// The name of the first cell.
pub const HOME: &str = "home";

/// How often a server looks for changes of the directory.
const POLL: Duration = Duration::from_millis(100);

/// The tenants that a server creates, changes or deletes at the same time; others wait.
const CHANGED_AT_ONCE: u32 = 8;

/// Why a cell was not added, or a tenant not moved. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
pub enum CellError {
    #[error("there is no cell {0}; `rcrt cell list` shows them")]
    NoCell(String),
    #[error("there is no tenant {0}; name one by its name or id")]
    NoTenant(String),
    #[error("the name {0:?} is not valid; use 1 to 63 lower-case letters, digits, - and _, and not `home`")]
    Name(String),
    #[error(
        "the URL of a cell must not contain a password, because the directory stores it; put it into the password file"
    )]
    Password,
    #[error("the database cannot be a cell: {0}")]
    Refused(String),
    #[error("{0}")]
    Unusable(String),
    #[error("the cell {0} exists with another URL; choose another name")]
    Exists(String),
    #[error("another move or a change of this tenant is running; wait for its end")]
    Busy,
    #[error(
        "the tenant shares records with {0}, and grants do not reach another cell; revoke them with DELETE /acl first"
    )]
    Grants(String),
    #[error("{0}; the tenant is where it was")]
    NotMoved(String),
    #[error("the move was interrupted ({0}); repeat it, because the tenant's writes can be refused until then")]
    Interrupted(String),
    #[error("the database of the cell {cell} failed: {source}")]
    Database { cell: String, source: sqlx::Error },
    #[error("the database cannot be migrated: {0}")]
    Migration(#[from] rcrt_store::OpenError),
}

/// Names the cell in an error of its database.
fn of(cell: &str) -> impl FnOnce(sqlx::Error) -> CellError + '_ {
    move |source| CellError::Database { cell: cell.to_owned(), source }
}

/// The stores of all cells as one [`rcrt_breadcrumb::Tenancy`]. Close it before the store of the
/// first cell.
pub struct Cells {
    routes: Arc<Routes>,
    directory: PgPool,
    /// For transactions that keep moves away; apart, so that they take none from the follower, for
    /// which they wait.
    locks: PgPool,
    stop: CancellationToken,
    follower: parking_lot::Mutex<Option<JoinHandle<()>>>,
}

impl Cells {
    /// Reads the directory in the database of `home` and opens its cells. `None` if there are none.
    /// A cell that cannot be reached is tried again; until then its tenants get
    /// [`rcrt_breadcrumb::StoreError::Unavailable`]. `admin_url` is of the tables' owner in that
    /// database.
    pub async fn open(home: Arc<Store>, admin_url: &str, open: OpenStore) -> Result<Option<Arc<Self>>, CellError> {
        let pool = directory::pool(admin_url, 2).map_err(of(HOME))?;
        if directory::cells(&pool).await.map_err(of(HOME))?.is_empty() {
            pool.close().await;
            return Ok(None);
        }
        // After an upgrade, tables that are new have no trigger yet.
        adding::guard(admin_url).await.map_err(of(HOME))?;
        let routes = Arc::new(Routes::new(home, open));
        routes.refresh(&pool).await.map_err(of(HOME))?;
        routes.open_wanted(&pool).await.map_err(of(HOME))?;
        let locks = directory::pool(admin_url, CHANGED_AT_ONCE).map_err(of(HOME))?;
        let stop = CancellationToken::new();
        let follower = tokio::spawn(follow(routes.clone(), pool.clone(), stop.clone()));
        let follower = parking_lot::Mutex::new(Some(follower));
        Ok(Some(Arc::new(Self { routes, directory: pool, locks, stop, follower })))
    }

    /// The webhook deliveries of all cells.
    pub fn deliveries(&self) -> Arc<dyn Deliveries> {
        Arc::new(webhooks::CellDeliveries::new(self.routes.clone()))
    }

    /// Closes the stores of all cells but the first.
    pub async fn close(&self) {
        self.stop.cancel();
        let follower = self.follower.lock().take();
        if let Some(follower) = follower
            && let Err(error) = follower.await
        {
            tracing::error!(%error, "following the directory of cells failed");
        }
        self.locks.close().await;
        futures::future::join_all(self.routes.others().iter().map(|store| store.close())).await;
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Follows the directory. While it cannot be read, tenants stay where they were last seen. A cell
/// that takes long to open delays no news of the others.
async fn follow(routes: Arc<Routes>, directory: PgPool, stop: CancellationToken) {
    let reading = async {
        let mut fails = false;
        loop {
            tokio::time::sleep(POLL).await;
            let read = routes.refresh(&directory).await;
            match &read {
                Err(error) if !fails => tracing::warn!(%error, "the directory of cells cannot be read"),
                Ok(()) if fails => tracing::info!("the directory of cells can be read again"),
                _ => {}
            }
            fails = read.is_err();
        }
    };
    let opening = async {
        loop {
            tokio::time::sleep(POLL).await;
            if let Err(error) = routes.open_wanted(&directory).await {
                tracing::debug!(%error, "the URLs of cells cannot be read");
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = reading => {}
        () = opening => {}
    }
    directory.close().await;
}
