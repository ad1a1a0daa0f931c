//! Limits how many lists and searches with conditions on the context run at once, per tenant and in
//! total. Each can occupy a database connection for seconds, and other work needs connections
//! too.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{Selector, StoreError};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use uuid::Uuid;

use crate::database::{ACQUIRE_TIMEOUT, Database};
use crate::records::selector_sql;

/// Time limits of one statement with conditions on the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextReadLimits {
    /// Default: 10 seconds.
    pub longest: Duration,
    /// While more than half of the connections for such statements are used. Then they become free
    /// often enough for ordinary reads of all tenants that wait. Default: 2 seconds.
    pub crowded: Duration,
}

impl Default for ContextReadLimits {
    fn default() -> Self {
        Self { longest: Duration::from_secs(10), crowded: Duration::from_secs(2) }
    }
}

/// Longer than one statement can take, so that reads of other tenants finish within it.
const COMMON_TIMEOUT: Duration = Duration::from_secs(12);

/// The reader. A tenant's runners have one slot in addition to the share of its agents, because
/// schedules and calls depend on their reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reader {
    pub(crate) tenant: Uuid,
    pub(crate) is_runner: bool,
}

pub(crate) struct ContextReads {
    database: Arc<Database>,
    /// Slots for all readers together, first come, first served.
    all: Arc<Semaphore>,
    /// The slots of `all` that are open to readers that already have one. The others are for
    /// readers without a slot.
    further: Arc<Semaphore>,
    slots: usize,
    share: usize,
    limits: ContextReadLimits,
    /// Readers that have such reads now.
    readers: Mutex<HashMap<Reader, Weak<Share>>>,
}

struct Share {
    all: Arc<Semaphore>,
    first: Arc<Semaphore>,
}

/// Held while a read runs.
struct ReadSlot {
    /// Keeps the share in the map, so that it stays counted.
    _share: Arc<Share>,
    _permits: [OwnedSemaphorePermit; 3],
    /// How long one statement can take.
    limit: Duration,
}

impl ContextReads {
    /// One tenant gets a quarter of the connections, and all tenants together half of them, at
    /// least one. The other half is for writes, calls, claims and `/health`.
    pub(crate) fn new(database: Arc<Database>, limits: ContextReadLimits) -> Self {
        let of = |part: usize| (database.max_connections() as usize / part).max(1);
        let (slots, share) = (of(2), of(4));
        Self {
            all: Arc::new(Semaphore::new(slots)),
            slots,
            limits,
            further: Arc::new(Semaphore::new(share - 1)),
            share,
            database,
            readers: Mutex::default(),
        }
    }

    fn share(&self, reader: Reader) -> Arc<Share> {
        let mut readers = self.readers.lock();
        if let Some(share) = readers.get(&reader).and_then(Weak::upgrade) {
            return share;
        }
        readers.retain(|_, share| share.strong_count() > 0);
        let slots = if reader.is_runner { 1 } else { self.share };
        let share = Arc::new(Share { all: Arc::new(Semaphore::new(slots)), first: Arc::new(Semaphore::new(1)) });
        readers.insert(reader, Arc::downgrade(&share));
        share
    }

    /// The limit that was reached, if no slot became free in time.
    async fn acquire_slot(&self, reader: Reader) -> Result<ReadSlot, String> {
        let share = self.share(reader);
        // Its own share first: a read that waits for it must not hold a slot that others could use.
        let own_timeout = if reader.is_runner { COMMON_TIMEOUT } else { ACQUIRE_TIMEOUT };
        let own = timeout(own_timeout, share.all.clone().acquire_owned()).await.ok().and_then(Result::ok).ok_or_else(
            || {
                let (whose, limit) = if reader.is_runner { ("runners", 1) } else { ("agents", self.share) };
                format!("the limit of the tenant's {whose} is {limit} at once; wait until one has ended")
            },
        )?;
        let common = async {
            let which = tokio::select! {
                biased;
                first = share.first.clone().acquire_owned() => first?,
                further = self.further.clone().acquire_owned() => further?,
            };
            Ok::<_, AcquireError>((which, self.all.clone().acquire_owned().await?))
        };
        let (which, all) =
            timeout(COMMON_TIMEOUT, common).await.ok().and_then(Result::ok).ok_or_else(|| {
                format!("the limit of all tenants together is {} at once; try again later", self.slots)
            })?;
        let used = self.slots.saturating_sub(self.all.available_permits());
        let is_crowded = self.slots > 1 && used * 2 > self.slots;
        let limit = if is_crowded { self.limits.crowded } else { self.limits.longest };
        Ok(ReadSlot { _share: share, _permits: [own, which, all], limit })
    }

    /// Runs a read with this selector, which gets its time limit. If it can read many contexts, it
    /// runs within the reader's share of the connections. Work that has begun continues when its
    /// caller is gone, because the database would continue its statement too, and that connection
    /// would be busy outside of the share.
    pub(crate) async fn run<T, W>(
        &self,
        reader: Reader,
        selector: &Selector,
        work: impl FnOnce(Duration) -> W + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        if !selector_sql::reads_contexts(selector) {
            return work(self.limits.longest).await;
        }
        let slot = self.acquire_slot(reader).await.map_err(|limit| {
            StoreError::Busy(format!("too many lists and searches with context_match are running: {limit}"))
        })?;
        let work = work(slot.limit);
        let working = self.database.tasks.spawn(async move {
            let done = work.await;
            drop(slot);
            done
        });
        working.await.unwrap_or_else(|error| Err(StoreError::Internal(format!("a read by context failed: {error}"))))
    }
}
