//! One transaction in one tenant: the only way in which the store accesses a tenant's rows.

use std::sync::Arc;

use rcrt_breadcrumb::{Breadcrumb, Visibility};
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::commit::Commit;
use super::pool::Database;
use crate::database::failure::Result;
use crate::database::row_access::{Principal, RequiredPermission, RowAccess};

/// Whether a transaction's effects survive a crash of the database server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On disk before the commit returns.
    Durable,
    /// On disk a little later. For what a crash may lose, such as a lease. Not for events: a
    /// subscriber could have seen an event that the crash undid.
    AsyncCommit,
}

pub(crate) struct TenantTransaction {
    transaction: Transaction<'static, Postgres>,
    database: Arc<Database>,
    pub(crate) owner_id: Uuid,
    access: RowAccess,
    /// Events written so far.
    events: i32,
    /// The change of records and bytes, added to the tenant's usage with the commit, whatever its
    /// quotas are.
    usage: (i64, i64),
}

impl TenantTransaction {
    /// For the store's own work: sees all records of the tenant.
    pub(crate) async fn begin(database: &Arc<Database>, owner_id: Uuid) -> Result<Self> {
        Self::begin_as(database, RowAccess::unrestricted(owner_id)).await
    }

    /// Sees what the principal can see.
    pub(crate) async fn begin_as(database: &Arc<Database>, access: RowAccess) -> Result<Self> {
        Self::begin_seeing(database, access, Durability::Durable).await
    }

    pub(crate) async fn begin_with(database: &Arc<Database>, owner_id: Uuid, durability: Durability) -> Result<Self> {
        Self::begin_seeing(database, RowAccess::unrestricted(owner_id), durability).await
    }

    async fn begin_seeing(database: &Arc<Database>, access: RowAccess, durability: Durability) -> Result<Self> {
        // Always set: the connection may still be in a transaction whose begin was dropped before
        // the reply. This one sets everything again, and its end also ends that transaction.
        let commit = if durability == Durability::AsyncCommit { "off" } else { "DEFAULT" };
        let begin = format!("BEGIN; {}; SET LOCAL synchronous_commit = {commit}", access.settings());
        let transaction = database.begin(&begin).await?;
        Ok(Self {
            transaction,
            database: database.clone(),
            owner_id: access.owner_id,
            access,
            events: 0,
            usage: (0, 0),
        })
    }

    /// Locks this record against changes by other transactions until this one ends. It must come
    /// before the first write: a waiting transaction has no id yet, so the ids, and the event
    /// numbers of one record's changes, are in the order of the changes.
    pub(crate) async fn lock(&mut self, record: Uuid) -> Result<()> {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(lock_key(record)).execute(self.connection()).await?;
        Ok(())
    }

    /// Whether the transaction works in another tenant than its agent's.
    pub(crate) fn is_guest(&self) -> bool {
        matches!(self.access.principal, Principal::Guest { .. })
    }

    /// Whether this principal can also see the record for this purpose.
    pub(crate) async fn shows(&mut self, record: &Breadcrumb, permission: RequiredPermission) -> Result<bool> {
        let is_open = match self.access.principal {
            Principal::Unrestricted => true,
            Principal::Agent(agent) => record.visibility != Visibility::Private || record.created_by == Some(agent),
            Principal::Caller(_) | Principal::ToolOfCaller(_) | Principal::Guest { .. } => false,
        };
        if is_open {
            return Ok(true);
        }
        let (asked, own) = (RowAccess { permission, ..self.access }.settings(), self.access.settings());
        sqlx::raw_sql(AssertSqlSafe(asked)).execute(self.connection()).await?;
        let is_seen =
            sqlx::query_scalar("SELECT can_see_record($1)").bind(record.id).fetch_one(self.connection()).await?;
        sqlx::raw_sql(AssertSqlSafe(own)).execute(self.connection()).await?;
        Ok(is_seen)
    }

    /// [`Self::lock`] for those of the records that no other transaction has locked. Does not wait.
    /// Returns the locked records.
    pub(crate) async fn try_lock_all(&mut self, records: &[Uuid]) -> Result<Vec<Uuid>> {
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

    /// The position of the next event within the transaction, at most 4096.
    pub(crate) fn next_event(&mut self) -> i32 {
        self.events += 1;
        self.events - 1
    }

    /// Adds to the tenant's usage after the commit.
    pub(crate) fn count_usage(&mut self, records: i64, bytes: i64) {
        self.usage = (self.usage.0 + records, self.usage.1 + bytes);
    }

    pub(crate) async fn commit(self) -> Result<()> {
        self.transaction.commit().await?;
        let (records, bytes) = self.usage;
        let commit = Commit { owner_id: self.owner_id, has_events: self.events > 0, records, bytes };
        for listener in &self.database.commit_listeners {
            listener.committed(&commit);
        }
        Ok(())
    }
}

/// The random half of the id. Two records with the same key only wait for each other.
fn lock_key(record: Uuid) -> i64 {
    record.as_u64_pair().1.cast_signed()
}
