//! One transaction in one tenant: the only way in which the store touches a tenant's rows.

use std::sync::Arc;

use breadcrumb::{Breadcrumb, NewBreadcrumb, StoreError, Visibility};
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use crate::failure::Done;
use crate::quotas::Room;
use crate::store::Inner;
use crate::view::{Eyes, View, Wish};

/// How surely a transaction's effects survive a crash of the database server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On disk before the commit returns.
    Durable,
    /// On disk a moment later. For what may be lost with the crash, such as a lease. Not for events: a subscriber
    /// could have seen what never happened.
    Soon,
}

pub(crate) struct TenantTransaction {
    transaction: Transaction<'static, Postgres>,
    store: Arc<Inner>,
    pub(crate) owner_id: Uuid,
    view: View,
    /// Events written so far.
    events: i32,
    /// Records and bytes that are counted with the commit, whatever the tenant's quotas are.
    noted: (i64, i64),
}

impl TenantTransaction {
    /// Of the store's own work: sees all of the tenant.
    pub(crate) async fn begin(store: &Arc<Inner>, owner_id: Uuid) -> Done<Self> {
        Self::begin_as(store, View::all(owner_id)).await
    }

    /// Sees what the view sees.
    pub(crate) async fn begin_as(store: &Arc<Inner>, view: View) -> Done<Self> {
        Self::begin_seeing(store, view, Durability::Durable).await
    }

    pub(crate) async fn begin_with(store: &Arc<Inner>, owner_id: Uuid, durability: Durability) -> Done<Self> {
        Self::begin_seeing(store, View::all(owner_id), durability).await
    }

    async fn begin_seeing(store: &Arc<Inner>, view: View, durability: Durability) -> Done<Self> {
        // Said either way: the connection may be in a transaction whose begin was given up before it was answered. What
        // was set there is set anew, and this transaction's end ends that one.
        let commit = if durability == Durability::Soon { "off" } else { "DEFAULT" };
        let begin = format!("BEGIN; {}; SET LOCAL synchronous_commit = {commit}", view.settings());
        let transaction = store.begin(&begin).await?;
        Ok(Self { transaction, store: store.clone(), owner_id: view.owner_id, view, events: 0, noted: (0, 0) })
    }

    /// Waits until no other transaction changes this record, and keeps it so until the end of this one. Must come
    /// before the first write: the transaction has no id yet while it waits, so that the ids, and with them the event
    /// numbers, of one record's changes have the changes' order.
    pub(crate) async fn lock(&mut self, record: Uuid) -> Done<()> {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(lock_key(record)).execute(self.connection()).await?;
        Ok(())
    }

    /// Whether the transaction works in another tenant than its agent's.
    pub(crate) fn is_guest(&self) -> bool {
        matches!(self.view.eyes, Eyes::Guest { .. })
    }

    /// Whether these eyes would see the record for this purpose too.
    pub(crate) async fn shows(&mut self, record: &Breadcrumb, wish: Wish) -> Done<bool> {
        let is_open = match self.view.eyes {
            Eyes::All => true,
            Eyes::Agent(agent) => record.visibility != Visibility::Private || record.created_by == Some(agent),
            Eyes::Guest { .. } => false,
        };
        if is_open {
            return Ok(true);
        }
        let (asked, own) = (View { wish, ..self.view }.settings(), self.view.settings());
        sqlx::raw_sql(AssertSqlSafe(asked)).execute(self.connection()).await?;
        let is_seen = sqlx::query_scalar("SELECT sees_record($1)").bind(record.id).fetch_one(self.connection()).await?;
        sqlx::raw_sql(AssertSqlSafe(own)).execute(self.connection()).await?;
        Ok(is_seen)
    }

    /// [`Self::lock`] for those of the records that nobody else holds. Waits for nobody; gives them.
    pub(crate) async fn try_lock_all(&mut self, records: &[Uuid]) -> Done<Vec<Uuid>> {
        let keys: Vec<i64> = records.iter().copied().map(lock_key).collect();
        Ok(sqlx::query_scalar(
            "SELECT g.id FROM unnest($1::uuid[], $2::bigint[]) AS g (id, key) WHERE pg_try_advisory_xact_lock(g.key)",
        )
        .bind(records)
        .bind(keys)
        .fetch_all(self.connection())
        .await?)
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// The place of the next event within the transaction. There is room for 4096.
    pub(crate) fn next_event(&mut self) -> i32 {
        self.events += 1;
        self.events - 1
    }

    /// Counts what the tenant keeps more, or less, after the commit.
    pub(crate) fn noted(&mut self, records: i64, bytes: i64) {
        self.noted = (self.noted.0 + records, self.noted.1 + bytes);
    }

    /// Room for the next version of a record, as large as this one is; without one, room is not asked for.
    pub(crate) fn take_room(&self, version: Option<&NewBreadcrumb>) -> Result<Room, StoreError> {
        let size = |version: &NewBreadcrumb| Breadcrumb::measure(&version.context).1;
        match version.filter(|_| self.store.quotas.has_bound(self.owner_id)) {
            Some(version) => self.store.quotas.take(self.owner_id, 0, size(version)),
            None => Ok(self.store.quotas.take_freely(self.owner_id, 0, 0)),
        }
    }

    pub(crate) async fn commit(self) -> Done<()> {
        self.transaction.commit().await?;
        if self.noted != (0, 0) {
            self.store.quotas.noted(self.owner_id, self.noted.0, self.noted.1);
        }
        if self.events > 0 {
            self.store.feeds.wake(self.owner_id);
            self.store.announcer.announce(self.owner_id);
        } else {
            self.store.feeds.wake_waiting(self.owner_id);
        }
        Ok(())
    }
}

/// The random half of the id. Two records that share a key merely wait for each other.
fn lock_key(record: Uuid) -> i64 {
    record.as_u64_pair().1.cast_signed()
}
