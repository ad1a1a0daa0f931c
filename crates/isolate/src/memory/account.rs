//! One isolate's account: what it may hold, and what it held when somebody last looked.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use deno_core::v8;

use super::buffers;
use crate::stop::Stop;

/// What the process may hold beyond what the engine tells of before it counts, in bytes: pages that the heap keeps for
/// later, tables, stacks, code being compiled.
const UNTOLD: usize = 24 * 1024 * 1024;
/// Address space for compiled code, in bytes. The engine makes all of it writable at once, which counts for the process.
const CODE: usize = 32 * 1024 * 1024;

pub struct Account {
    /// Bytes that everything together may come to.
    limit: AtomicUsize,
    /// Bytes of the engine's heap when it was last looked at.
    heap: AtomicUsize,
    /// Bytes of the array buffers that the allocator gave out.
    buffers: AtomicUsize,
    /// Bytes of the process at the last check; 0 if unknown.
    process: AtomicUsize,
    /// Bytes of the process of which the engine did not tell when the isolate's first call began. What a kept isolate
    /// holds on to counts in its next call.
    untold: OnceLock<usize>,
    /// The isolate was asked to look and has not come to it yet.
    is_asked: AtomicBool,
    /// The last check found too much, but only in memory that the engine does not report.
    is_suspect: AtomicBool,
    stop: Stop,
}

impl Account {
    pub fn new(stop: Stop) -> Arc<Self> {
        Arc::new(Self {
            limit: AtomicUsize::new(usize::MAX),
            heap: AtomicUsize::new(0),
            buffers: AtomicUsize::new(0),
            process: AtomicUsize::new(0),
            untold: OnceLock::new(),
            is_asked: AtomicBool::new(false),
            is_suspect: AtomicBool::new(false),
            stop,
        })
    }

    /// Array buffers of the isolate are made by an allocator that keeps to this account.
    pub fn apply(self: &Arc<Self>, parameters: v8::CreateParams) -> v8::CreateParams {
        parameters.array_buffer_allocator(buffers::allocator(self.clone())).set_code_range_size_in_bytes(CODE)
    }

    /// From now on the sum may come to this many bytes.
    pub fn allow(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Takes so many bytes for a buffer, if they are there to take.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let room = self.limit.load(Ordering::Relaxed).saturating_sub(self.heap.load(Ordering::Relaxed));
        self.buffers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|sum| *sum <= room)
            })
            .is_ok()
    }

    pub(super) fn give_back(&self, bytes: usize) {
        self.buffers.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A call begins; `process` as in `ask`, which an isolate's first call alone asks for.
    pub(super) fn begin(&self, isolate: &mut v8::Isolate, process: impl FnOnce() -> Option<u64>) {
        let told = self.told(isolate);
        self.untold.get_or_init(|| {
            let process = process().map_or(0, |bytes| bytes as usize);
            self.process.store(process, Ordering::Relaxed);
            process.saturating_sub(told.committed)
        });
    }

    /// Has the isolate look at its memory as soon as its code lets it. `process` is what the whole process holds, in
    /// bytes: nobody else tells of WebAssembly's memories.
    pub(super) fn ask(self: &Arc<Self>, isolate: &v8::IsolateHandle, process: Option<u64>) {
        self.process.store(process.map_or(0, |bytes| bytes as usize), Ordering::Relaxed);
        if !self.is_asked.swap(true, Ordering::AcqRel) {
            // The isolate keeps its account for as long as it can be interrupted.
            isolate.request_interrupt(look, Arc::as_ptr(self).cast::<c_void>().cast_mut());
        }
    }

    fn look(&self, isolate: &mut v8::Isolate) {
        self.judge(isolate);
        // Only now: a request that came while garbage was swept up would be heard before any code goes on.
        self.is_asked.store(false, Ordering::Release);
    }

    /// Ends the call when it holds too much.
    fn judge(&self, isolate: &mut v8::Isolate) {
        let limit = self.limit.load(Ordering::Relaxed);
        let told = self.told(isolate);
        if told.sum() + self.untold(&told) <= limit {
            self.is_suspect.store(false, Ordering::Relaxed);
            return;
        }
        // Part of it may be garbage that was not collected yet.
        isolate.low_memory_notification();
        // What the process holds was seen before that: it takes a second look to be sure of it.
        if self.told(isolate).sum() > limit || self.is_suspect.swap(true, Ordering::Relaxed) {
            self.stop.out_of_memory();
            isolate.terminate_execution();
        }
    }

    /// Bytes of the process of which the engine does not tell and did not tell at the beginning.
    fn untold(&self, told: &HeapUsage) -> usize {
        let before = told.committed + self.untold.get().copied().unwrap_or_default();
        self.process.load(Ordering::Relaxed).saturating_sub(before).saturating_sub(UNTOLD)
    }

    fn told(&self, isolate: &mut v8::Isolate) -> HeapUsage {
        let statistics = isolate.get_heap_statistics();
        self.heap.store(statistics.used_heap_size(), Ordering::Relaxed);
        let outside = statistics.external_memory().max(self.buffers.load(Ordering::Relaxed));
        HeapUsage {
            heap: statistics.used_heap_size(),
            outside,
            committed: statistics.total_heap_size() + statistics.malloced_memory() + outside,
        }
    }
}

/// What the engine tells of its memory, in bytes.
struct HeapUsage {
    /// Objects and strings.
    heap: usize,
    /// Array buffers.
    outside: usize,
    /// All of it, with the pages that are not full.
    committed: usize,
}

impl HeapUsage {
    fn sum(&self) -> usize {
        self.heap + self.outside
    }
}

/// Runs on the isolate's thread, between two steps of its code.
#[allow(unsafe_code)]
unsafe extern "C" fn look(mut isolate: v8::UnsafeRawIsolatePtr, account: *mut c_void) {
    // SAFETY: the engine gives the isolate that it interrupts, and that isolate's owner keeps the account (see `ask`).
    let (isolate, account) =
        unsafe { (v8::Isolate::ref_from_raw_isolate_ptr_mut(&mut isolate), &*account.cast_const().cast::<Account>()) };
    account.look(isolate);
}
