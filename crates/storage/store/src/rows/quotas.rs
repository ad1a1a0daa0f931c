//! Quotas: how much each tenant stores, and how much it can.
//!
//! No row holds the count, because writers would wait for each other on it. A query counts what a
//! tenant stores from time to time, and the writes of this process are added in memory. So a quota
//! is exact within one process. Writes of other processes are included with the next count. A
//! tenant without a quota is not counted. `tool_quotas.rs` has the quotas of tools, which are
//! counted at each write of one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metrics::counter;
use parking_lot::Mutex;
use rcrt_breadcrumb::{Breadcrumb, NewBreadcrumb, PublishRule, StoreError, TenantCount, TenantQuotas, TenantUsage};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use uuid::Uuid;

use crate::database::Database;
use crate::database::batches::tenants;
use crate::database::commit::{Commit, CommitListener};
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// The age at which a count is renewed.
const COUNTED_EVERY: Duration = Duration::from_mins(1);
/// Counting takes at most 1/`SHARE` of the time: after a count that took 3 s, the next one starts 5
/// minutes later.
const SHARE: u32 = 100;
/// Tenants without writes for this long are dropped from memory.
const KEPT_FOR: Duration = Duration::from_mins(10);

#[derive(Default)]
pub(crate) struct Quotas {
    defaults: TenantQuotas,
    tenants: Mutex<HashMap<Uuid, Arc<Tenant>>>,
    /// The last count of each tenant with a quota, including tenants that were dropped from
    /// `tenants`.
    counts: Mutex<BTreeMap<Uuid, Usage>>,
}

#[derive(Default)]
pub(super) struct Tenant {
    known: Mutex<QuotaState>,
    /// Held during a count: one at a time.
    counting: tokio::sync::Mutex<()>,
    /// Held from the count of the tools to the write of a new one.
    pub(super) creating_tool: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct QuotaState {
    own: TenantQuotas,
    publish: PublishRule,
    /// `None` before the first count, and while the tenant has no quota.
    counted: Option<CountedUsage>,
    /// When the quotas were read, and how long that and the count took.
    read: Option<(Instant, Duration)>,
    asked: Option<Instant>,
    /// Written by this process since its first write. [`CountedUsage::without`] excludes it.
    written: Usage,
}

#[derive(Clone, Copy)]
struct CountedUsage {
    /// The count, without what this process had written by then.
    without: Usage,
    at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    records: i64,
    bytes: i64,
}

/// Quota that is reserved for a write. Dropping it without the write returns the quota.
pub(crate) struct QuotaReservation {
    tenant: Option<Arc<Tenant>>,
    amount: Usage,
    /// For a new tool: no other is counted until this one is written.
    creating_tool: Option<OwnedMutexGuard<()>>,
}

impl QuotaReservation {
    /// Call this when the write has happened.
    pub(crate) fn keep(mut self) {
        self.tenant = None;
    }

    pub(super) fn holding(mut self, turn: OwnedMutexGuard<()>) -> Self {
        self.creating_tool = Some(turn);
        self
    }
}

impl Drop for QuotaReservation {
    fn drop(&mut self) {
        if let Some(tenant) = &self.tenant {
            tenant.known.lock().written.add(-self.amount.records, -self.amount.bytes);
        }
    }
}

impl Usage {
    fn add(&mut self, records: i64, bytes: i64) {
        self.records += records;
        self.bytes += bytes;
    }
}

impl Quotas {
    pub(crate) fn new(defaults: TenantQuotas) -> Self {
        Self { defaults, ..Self::default() }
    }

    pub(super) fn tenant(&self, owner_id: Uuid) -> Arc<Tenant> {
        self.tenants.lock().entry(owner_id).or_default().clone()
    }

    /// Counts what the runtime itself wrote or deleted. It is never refused.
    pub(crate) fn add_usage(&self, owner_id: Uuid, records: i64, bytes: i64) {
        let tenant = self.tenants.lock().get(&owner_id).cloned();
        if let Some(tenant) = tenant {
            tenant.known.lock().written.add(records, bytes);
        }
    }

    /// [`Self::add_usage`] for a write that may still fail.
    pub(crate) fn reserve_unchecked(&self, owner_id: Uuid, records: i64, bytes: i64) -> QuotaReservation {
        let tenant = self.tenants.lock().get(&owner_id).cloned();
        if let Some(tenant) = &tenant {
            tenant.known.lock().written.add(records, bytes);
        }
        QuotaReservation { tenant, amount: Usage { records, bytes }, creating_tool: None }
    }

    /// The quotas of the tenant, as far as they are loaded.
    pub(super) fn in_force(&self, tenant: &Tenant) -> TenantQuotas {
        tenant.known.lock().own.or(self.defaults)
    }

    /// What publishes the tenant's tools, as of the last [`Self::load`]. The strictest rule if it
    /// was forgotten since.
    pub(crate) fn publish(&self, owner_id: Uuid) -> PublishRule {
        let tenant = self.tenant(owner_id);
        let known = tenant.known.lock();
        if known.read.is_some() { known.publish } else { PublishRule::Curator }
    }

    /// Whether the tenant is known to have a quota.
    fn has_bound(&self, owner_id: Uuid) -> bool {
        let tenant = self.tenants.lock().get(&owner_id).cloned();
        tenant.is_some_and(|tenant| tenant.known.lock().counted.is_some())
    }

    /// Reserves this much, or returns the error. If the tenant's count is not known yet (see
    /// [`Self::load`]), the reservation succeeds.
    pub(crate) fn reserve(&self, owner_id: Uuid, records: i64, bytes: i64) -> Result<QuotaReservation, StoreError> {
        let tenant = self.tenant(owner_id);
        let mut known = tenant.known.lock();
        if let Some(counted) = known.counted {
            let in_force = known.own.or(self.defaults);
            let used = |without: i64, written: i64| (without + written).max(0).unsigned_abs();
            let checked = [
                ("records", in_force.max_records, used(counted.without.records, known.written.records), records),
                ("bytes", in_force.max_bytes, used(counted.without.bytes, known.written.bytes), bytes),
            ];
            for (quota, limit, used, more) in checked {
                if let Some(limit) = limit
                    && more > 0
                    && used.saturating_add(more.unsigned_abs()) > limit
                {
                    counter!("rcrt_quota_refusals_total", "quota" => quota).increment(1);
                    return Err(StoreError::QuotaExceeded { quota: quota.to_owned(), limit, used });
                }
            }
        }
        known.written.add(records, bytes);
        drop(known);
        Ok(QuotaReservation { tenant: Some(tenant), amount: Usage { records, bytes }, creating_tool: None })
    }

    /// Reserves quota for the next version of a record, as large as this one. Without a version,
    /// reserves nothing.
    pub(crate) fn reserve_version(
        &self,
        owner_id: Uuid,
        version: Option<&NewBreadcrumb>,
    ) -> Result<QuotaReservation, StoreError> {
        let size = |version: &NewBreadcrumb| Breadcrumb::measure(&version.context).1;
        match version.filter(|_| self.has_bound(owner_id)) {
            Some(version) => self.reserve(owner_id, 0, size(version)),
            None => Ok(self.reserve_unchecked(owner_id, 0, 0)),
        }
    }

    /// Call this when the tenant's own quotas have changed.
    pub(crate) fn forget(&self, owner_id: Uuid) {
        self.tenants.lock().remove(&owner_id);
    }

    pub(crate) fn counted(&self) -> Vec<TenantCount> {
        let counts = self.counts.lock();
        let count = |(id, amount): (&Uuid, &Usage)| {
            let (records, bytes) = (amount.records.max(0).unsigned_abs(), amount.bytes.max(0).unsigned_abs());
            TenantCount { id: *id, records, bytes }
        };
        counts.iter().map(count).collect()
    }

    fn note_count(&self, owner_id: Uuid, counted: Option<Usage>) {
        let mut counts = self.counts.lock();
        match counted {
            Some(amount) => counts.insert(owner_id, amount),
            None => counts.remove(&owner_id),
        };
    }

    /// Drops the counts of tenants that no longer exist.
    pub(crate) fn forget_deleted(&self, is_there: impl Fn(Uuid) -> bool) {
        self.counts.lock().retain(|tenant, _| is_there(*tenant));
    }
}

impl Tenant {
    /// Whether the quotas must be read and the tenant counted before the next write (`Now`) or
    /// beside it (`Soon`). The caller that gets `Soon` does it.
    fn need(&self) -> Need {
        let mut known = self.known.lock();
        known.asked = Some(Instant::now());
        match known.read {
            None => Need::Now,
            Some((at, took)) if at.elapsed() >= COUNTED_EVERY.max(took * SHARE) => {
                known.read = Some((Instant::now(), took));
                Need::Soon
            }
            Some(_) => Need::Nothing,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Now,
    Soon,
    Nothing,
}

impl Quotas {
    /// Loads the tenant's quotas, and its count if it has any. Call it before a write reserves
    /// quota. It waits only if nothing is known yet.
    pub(crate) async fn load(self: &Arc<Self>, database: &Arc<Database>, owner_id: Uuid) -> Result<()> {
        let tenant = self.tenant(owner_id);
        match tenant.need() {
            Need::Nothing => Ok(()),
            Need::Now => {
                let _turn = tenant.counting.lock().await;
                // Another write may have loaded them meanwhile.
                if tenant.known.lock().read.is_some() { Ok(()) } else { self.renew(database, owner_id, &tenant).await }
            }
            Need::Soon => {
                let (quotas, counted) = (self.clone(), database.clone());
                database.tasks.spawn(async move {
                    let _turn = tenant.counting.lock().await;
                    if let Err(failure) = quotas.renew(&counted, owner_id, &tenant).await {
                        tracing::warn!(tenant = %owner_id, error = %StoreError::from(failure), "counting a tenant's records failed");
                    }
                });
                Ok(())
            }
        }
    }

    /// What the tenant stores. It is counted now if it has no quota.
    pub(crate) async fn usage(self: &Arc<Self>, database: &Arc<Database>, owner_id: Uuid) -> Result<TenantUsage> {
        self.load(database, owner_id).await?;
        let tenant = self.tenant(owner_id);
        let (own, counted, written) = {
            let known = tenant.known.lock();
            (known.own, known.counted, known.written)
        };
        let in_force = own.or(self.defaults);
        let (amount, counted_at) = match counted {
            Some(counted) => {
                let Usage { records, bytes } = counted.without;
                (Usage { records: records + written.records, bytes: bytes + written.bytes }, counted.at)
            }
            None => {
                // One count of a tenant at a time, however many callers ask.
                let _turn = tenant.counting.lock().await;
                (count(database, owner_id).await?, Utc::now())
            }
        };
        let whole = |number: i64| number.max(0).unsigned_abs();
        Ok(TenantUsage { records: whole(amount.records), bytes: whole(amount.bytes), counted_at, own, in_force })
    }

    /// The caller holds `tenant.counting`.
    async fn renew(&self, database: &Arc<Database>, owner_id: Uuid, tenant: &Tenant) -> Result<()> {
        let began = Instant::now();
        let (own, publish) = read(database, owner_id).await?;
        let in_force = own.or(self.defaults);
        let before = tenant.known.lock().written;
        let counted = if in_force.bounds_records() { Some(count(database, owner_id).await?) } else { None };
        self.note_count(owner_id, counted);
        let mut known = tenant.known.lock();
        known.own = own;
        known.publish = publish;
        known.counted = counted.map(|Usage { records, bytes }| CountedUsage {
            without: Usage { records: records - before.records, bytes: bytes - before.bytes },
            at: Utc::now(),
        });
        known.read = Some((Instant::now(), began.elapsed()));
        drop(known);
        self.evict_idle();
        Ok(())
    }

    /// Drops tenants without a write for a while, except those in use now.
    fn evict_idle(&self) {
        self.tenants.lock().retain(|_, tenant| {
            Arc::strong_count(tenant) > 1 || tenant.known.lock().asked.is_some_and(|asked| asked.elapsed() < KEPT_FOR)
        });
    }

    /// Drops the counts of tenants that another process deleted, or that were deleted during the
    /// count.
    pub(crate) async fn forget_deleted_elsewhere(&self, database: &Arc<Database>) -> Result<()> {
        if self.counts.lock().is_empty() {
            return Ok(());
        }
        let there: HashSet<Uuid> = tenants(database, "SELECT id FROM all_tenants()").await?.into_iter().collect();
        self.forget_deleted(|tenant| there.contains(&tenant));
        Ok(())
    }

    /// Sets a tenant's own quotas.
    pub(crate) async fn set(&self, database: &Arc<Database>, owner_id: Uuid, quotas: TenantQuotas) -> Result<()> {
        let number = |most: Option<u64>| most.map(u64::cast_signed);
        let mut tx = database.begin("BEGIN").await?;
        let is_there: bool = sqlx::query_scalar("SELECT set_tenant_quotas($1, $2, $3, $4, $5, $6, $7)")
            .bind(owner_id)
            .bind(number(quotas.max_records))
            .bind(number(quotas.max_bytes))
            .bind(number(quotas.max_tools))
            .bind(number(quotas.max_tool_bytes))
            .bind(number(quotas.max_tool_creations))
            .bind(number(quotas.max_requests))
            .fetch_one(&mut *tx)
            .await?;
        if !is_there {
            return Err(StoreError::NotFound { what: "tenant", id: owner_id }.into());
        }
        tx.commit().await?;
        let tenant = self.tenant(owner_id);
        self.forget(owner_id);
        if !quotas.or(self.defaults).bounds_records() {
            // Waits for a count that began before the commit and would be stored after this.
            let _turn = tenant.counting.lock().await;
            self.note_count(owner_id, None);
        }
        Ok(())
    }

    /// Sets what publishes a tenant's tools.
    pub(crate) async fn set_publish(
        &self,
        database: &Arc<Database>,
        owner_id: Uuid,
        publish: PublishRule,
    ) -> Result<()> {
        let mut tx = database.begin("BEGIN").await?;
        let is_there: bool = sqlx::query_scalar("SELECT set_tenant_publish($1, $2)")
            .bind(owner_id)
            .bind(publish.as_str())
            .fetch_one(&mut *tx)
            .await?;
        if !is_there {
            return Err(StoreError::NotFound { what: "tenant", id: owner_id }.into());
        }
        tx.commit().await?;
        self.forget(owner_id);
        Ok(())
    }
}

impl CommitListener for Quotas {
    fn committed(&self, commit: &Commit) {
        if (commit.records, commit.bytes) != (0, 0) {
            self.add_usage(commit.owner_id, commit.records, commit.bytes);
        }
    }
}

from_row! {
    struct SettingsRow {
        max_records: Option<i64>,
        max_bytes: Option<i64>,
        max_tools: Option<i64>,
        max_tool_bytes: Option<i64>,
        max_tool_creations: Option<i64>,
        max_requests: Option<i64>,
        publish: String,
    }
}

async fn read(database: &Arc<Database>, owner_id: Uuid) -> Result<(TenantQuotas, PublishRule)> {
    let mut tx = database.begin("BEGIN").await?;
    let row: Option<SettingsRow> = sqlx::query_as(
        "SELECT max_records, max_bytes, max_tools, max_tool_bytes, max_tool_creations, max_requests, publish
         FROM find_tenant($1)",
    )
    .bind(owner_id)
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else { return Ok((TenantQuotas::default(), PublishRule::Curator)) };
    let whole = |number: Option<i64>| number.map(i64::unsigned_abs);
    let quotas = TenantQuotas {
        max_records: whole(row.max_records),
        max_bytes: whole(row.max_bytes),
        max_tools: whole(row.max_tools),
        max_tool_bytes: whole(row.max_tool_bytes),
        max_tool_creations: whole(row.max_tool_creations),
        max_requests: whole(row.max_requests),
    };
    // A rule that this version does not know: the strictest one that it knows.
    Ok((quotas, row.publish.parse().unwrap_or(PublishRule::Curator)))
}

async fn count(database: &Arc<Database>, owner_id: Uuid) -> Result<Usage> {
    let mut tx = TenantTransaction::begin(database, owner_id).await?;
    let (records, bytes): (i64, i64) = sqlx::query_as(
        "SELECT count(*), (coalesce(sum(b.size_bytes), 0) + (
            SELECT coalesce(sum(pg_column_size(v.context)), 0) FROM breadcrumb_versions v WHERE v.owner_id = $1))::bigint
         FROM breadcrumbs b WHERE b.owner_id = $1",
    )
    .bind(owner_id)
    .fetch_one(tx.connection())
    .await?;
    Ok(Usage { records, bytes })
}
