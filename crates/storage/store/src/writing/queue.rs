//! The queued writes, and which batch goes next.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rcrt_breadcrumb::StoreError;
use uuid::Uuid;

use super::write::PendingWrite;

/// The most batches of one tenant in progress. The second one is used only if the first is slow:
/// one shared batch costs less than two parallel ones, and its events need no reading, because
/// nothing overlaps them.
const MAX_TENANT_WRITERS: usize = 2;
/// From when on a batch is slow, because of the disk or a lock.
pub(super) const SLOW: Duration = Duration::from_millis(10);
/// The most writes of one batch, and the most bytes (a larger single write is still sent).
const BATCH_WRITES: usize = 64;
const BATCH_BYTES: usize = 1024 * 1024;
/// The most queued writes of one tenant, and their most bytes (a larger single write is still
/// queued if it is alone).
const WAITING_WRITES: usize = 4096;
const WAITING_BYTES: usize = 64 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct WriteQueue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tenants: HashMap<Uuid, Tenant>,
    /// The tenants that have queued writes and a free writer, in order.
    ready: VecDeque<Uuid>,
    writers: usize,
}

#[derive(Default)]
struct Tenant {
    waiting: VecDeque<PendingWrite>,
    waiting_bytes: usize,
    in_progress: usize,
    /// When the newest batch began.
    since: Option<Instant>,
    is_ready: bool,
}

impl WriteQueue {
    /// Queues the write. Returns whether another writer must be started. Fails if the tenant's
    /// queue is full.
    pub(super) fn put(&self, owner_id: Uuid, write: PendingWrite, max_writers: usize) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        if !state.tenants.entry(owner_id).or_default().push(write) {
            return Err(StoreError::Busy(format!(
                "the write queue of this tenant is full, at {WAITING_WRITES} writes or {WAITING_BYTES} bytes; try again later"
            )));
        }
        state.list(owner_id);
        Ok(state.starts_writer(max_writers))
    }

    /// The next batch. `None` if there is none; the calling writer then stops.
    pub(super) fn next(&self) -> Option<(Uuid, Vec<PendingWrite>)> {
        let mut state = self.state.lock();
        let Some(owner_id) = state.ready.pop_front() else {
            state.writers -= 1;
            return None;
        };
        let tenant = state.tenants.entry(owner_id).or_default();
        tenant.is_ready = false;
        tenant.in_progress += 1;
        tenant.since = Some(Instant::now());
        let batch = tenant.batch();
        state.list(owner_id);
        Some((owner_id, batch))
    }

    /// Call this when a batch of this tenant is slow. Returns whether another writer must be
    /// started for the writes behind it.
    pub(super) fn needs_another_writer(&self, owner_id: Uuid, max_writers: usize) -> bool {
        let mut state = self.state.lock();
        state.list(owner_id);
        state.starts_writer(max_writers)
    }

    /// Call this when a batch of this tenant is finished.
    pub(super) fn done(&self, owner_id: Uuid) {
        let mut state = self.state.lock();
        if let Some(tenant) = state.tenants.get_mut(&owner_id) {
            tenant.in_progress -= 1;
            if tenant.in_progress == 0 && tenant.waiting.is_empty() {
                state.tenants.remove(&owner_id);
            } else {
                state.list(owner_id);
            }
        }
    }
}

impl State {
    fn starts_writer(&mut self, max_writers: usize) -> bool {
        let starts = !self.ready.is_empty() && self.writers < max_writers;
        self.writers += usize::from(starts);
        starts
    }

    fn list(&mut self, owner_id: Uuid) {
        if let Some(tenant) = self.tenants.get_mut(&owner_id)
            && !tenant.is_ready
            && !tenant.waiting.is_empty()
            && tenant.has_free_writer()
        {
            tenant.is_ready = true;
            self.ready.push_back(owner_id);
        }
    }
}

impl Tenant {
    fn has_free_writer(&self) -> bool {
        let is_slow = || self.since.is_some_and(|since| since.elapsed() >= SLOW);
        self.in_progress == 0 || (self.in_progress < MAX_TENANT_WRITERS && is_slow())
    }

    /// `false` if the queue is full.
    fn push(&mut self, write: PendingWrite) -> bool {
        let bytes = self.waiting_bytes + write.work.bytes();
        let has_room = self.waiting.len() < WAITING_WRITES && (self.waiting.is_empty() || bytes <= WAITING_BYTES);
        if has_room {
            self.waiting_bytes = bytes;
            self.waiting.push_back(write);
        }
        has_room
    }

    fn pop(&mut self) -> Option<PendingWrite> {
        let write = self.waiting.pop_front()?;
        self.waiting_bytes -= write.work.bytes();
        Some(write)
    }

    /// Takes the oldest writes, up to the limits, and up to one that needs another batch: a
    /// statement can have each key and each call once. Writes whose callers are gone are dropped,
    /// so the batch may be empty.
    fn batch(&mut self) -> Vec<PendingWrite> {
        let mut batch: Vec<PendingWrite> = Vec::new();
        let (mut keys, mut calls, mut bytes) = (HashSet::new(), HashSet::new(), 0);
        while let Some(write) = self.waiting.front() {
            if write.reply.is_closed() {
                self.pop();
                continue;
            }
            bytes += write.work.bytes();
            if !batch.is_empty() && (batch.len() == BATCH_WRITES || bytes > BATCH_BYTES) {
                break;
            }
            let record = write.work.record();
            let key = record.and_then(|record| Some((record.agent, record.key.as_ref()?.key.clone())));
            let call = write.work.step().map(|step| step.lease.request);
            if key.is_some_and(|key| !keys.insert(key)) || call.is_some_and(|call| !calls.insert(call)) {
                break;
            }
            batch.extend(self.pop());
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rcrt_breadcrumb::{Lease, NewBreadcrumb};
    use tokio::sync::oneshot;

    use super::super::prepared::{IdempotencyKey, PreparedRecord};
    use super::super::write::WriteOp;
    use super::*;

    fn write(work: WriteOp) -> PendingWrite {
        let (reply, outcome) = oneshot::channel();
        // Its caller waits forever.
        std::mem::forget(outcome);
        PendingWrite { work, reply }
    }

    fn start(request: u128) -> PendingWrite {
        write(WriteOp::Start { lease: Lease { request: Uuid::from_u128(request), fence: 1 }, max_attempts: 1 })
    }

    fn keyed(key: &str) -> PendingWrite {
        let mut record = PreparedRecord::new(Uuid::now_v7(), NewBreadcrumb::default(), None);
        record.key = Some(IdempotencyKey { key: key.into(), fingerprint: String::new() });
        write(WriteOp::Create(record))
    }

    #[test]
    fn the_first_write_goes_at_once_and_later_ones_form_a_batch() {
        let writes = WriteQueue::default();
        let owner = Uuid::from_u128(1);
        assert!(writes.put(owner, start(0), 9).unwrap(), "the first has a writer");
        assert_eq!(writes.next().unwrap().1.len(), 1);
        for request in 10..14 {
            assert!(!writes.put(owner, start(request), 9).unwrap(), "the tenant has its writer");
        }
        // Another tenant does not wait for this one.
        assert!(writes.put(Uuid::from_u128(2), start(1), 9).unwrap());
        assert_eq!(writes.next().unwrap().0, Uuid::from_u128(2));
        writes.done(owner);
        assert_eq!(writes.next().unwrap().1.len(), 4);
        // The batch in progress becomes slow.
        writes.state.lock().tenants.get_mut(&owner).unwrap().since = Instant::now().checked_sub(SLOW);
        assert!(writes.put(owner, start(20), 9).unwrap(), "the next write gets a second writer");
        assert_eq!(writes.next().unwrap().1.len(), 1);
        assert!(!writes.put(owner, start(21), 9).unwrap(), "a tenant has at most two writers");
        assert!(writes.next().is_none());
    }

    #[test]
    fn idle_writers_stop_and_tenants_are_dropped() {
        let writes = WriteQueue::default();
        let owner = Uuid::from_u128(1);
        assert!(writes.put(owner, start(1), 1).unwrap());
        writes.next().unwrap();
        writes.done(owner);
        assert!(writes.next().is_none());
        let state = writes.state.lock();
        assert_eq!((state.writers, state.tenants.len(), state.ready.len()), (0, 0, 0));
    }

    #[test]
    fn a_batch_is_bounded_and_has_each_key_and_call_once() {
        let batches = |waiting: Vec<PendingWrite>| {
            let mut tenant = Tenant::default();
            assert!(waiting.into_iter().all(|write| tenant.push(write)));
            std::iter::from_fn(|| Some(tenant.batch().len()).filter(|len| *len > 0)).collect::<Vec<_>>()
        };
        assert_eq!(batches(vec![start(1), start(2), start(1), start(3)]), [2, 2]);
        assert_eq!(batches(vec![keyed("a"), keyed("b"), keyed("b")]), [2, 1]);
        assert_eq!(batches((0..150).map(start).collect()), [64, 64, 22]);
    }

    #[test]
    fn the_queue_is_bounded_and_drops_writes_without_a_caller() {
        let mut tenant = Tenant::default();
        assert!((0..WAITING_WRITES as u128).all(|request| tenant.push(start(request))));
        assert!(!tenant.push(start(0)));
        let large = || {
            let context = [("text".to_owned(), "x".repeat(WAITING_BYTES).into())].into_iter().collect();
            let record = NewBreadcrumb { context, ..NewBreadcrumb::default() };
            write(WriteOp::Create(PreparedRecord::new(Uuid::now_v7(), record, None)))
        };
        assert!(!tenant.push(large()));
        while !tenant.batch().is_empty() {}
        assert_eq!(tenant.waiting_bytes, 0);
        assert!(tenant.push(large()), "alone");
        assert!(!tenant.push(start(0)));

        let mut tenant = Tenant::default();
        for request in 0..3 {
            let mut write = start(request);
            if request != 1 {
                write.reply = oneshot::channel().0;
            }
            assert!(tenant.push(write));
        }
        assert_eq!(tenant.batch().len(), 1);
        assert!(tenant.batch().is_empty() && tenant.waiting.is_empty());
    }
}
