//! The memory account of one isolate: its limit, and its use at the last check.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use deno_core::v8;

use super::buffers;
use crate::stop::Stop;

/// Memory of the process that the engine does not report and that is not counted, in bytes: pages
/// that the heap reserves, tables, stacks, code being compiled.
const UNREPORTED: usize = 24 * 1024 * 1024;
/// Address space for compiled code, in bytes. The engine makes all of it writable at once, and it
/// counts for the process.
const CODE: usize = 32 * 1024 * 1024;

pub struct Account {
    /// The limit on all memory together, in bytes.
    limit: AtomicUsize,
    /// The engine's heap at the last check, in bytes.
    heap: AtomicUsize,
    /// The array buffers that are allocated, in bytes.
    buffers: AtomicUsize,
    /// Bytes of the process at the last check; 0 if unknown.
    process: AtomicUsize,
    /// Memory of the process, in bytes, that the engine did not report when the isolate's first
    /// call began. What a kept isolate holds counts in its next call.
    unreported: OnceLock<usize>,
    /// The isolate was asked for a check and has not done it yet.
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
            unreported: OnceLock::new(),
            is_asked: AtomicBool::new(false),
            is_suspect: AtomicBool::new(false),
            stop,
        })
    }

    /// Makes the isolate allocate array buffers with an allocator that observes this account.
    pub fn apply(self: &Arc<Self>, parameters: v8::CreateParams) -> v8::CreateParams {
        parameters.array_buffer_allocator(buffers::allocator(self.clone())).set_code_range_size_in_bytes(CODE)
    }

    /// Sets the limit on the sum, in bytes.
    pub fn allow(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Reserves this many bytes for a buffer, if they are available.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let room = self.limit.load(Ordering::Relaxed).saturating_sub(self.heap.load(Ordering::Relaxed));
        self.buffers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                held.checked_add(bytes).filter(|sum| *sum <= room)
            })
            .is_ok()
    }

    pub(super) fn release(&self, bytes: usize) {
        self.buffers.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A call begins. `process` returns the process's memory, as in `ask`; it is called only for an
    /// isolate's first call.
    pub(super) fn begin(&self, isolate: &mut v8::Isolate, process: impl FnOnce() -> Option<u64>) {
        let usage = self.usage(isolate);
        self.unreported.get_or_init(|| {
            let process = process().map_or(0, |bytes| bytes as usize);
            self.process.store(process, Ordering::Relaxed);
            process.saturating_sub(usage.committed)
        });
    }

    /// Makes the isolate check its memory as soon as its code allows. `process` is the memory of
    /// the whole process, in bytes: nothing else reports WebAssembly's memories.
    pub(super) fn ask(self: &Arc<Self>, isolate: &v8::IsolateHandle, process: Option<u64>) {
        self.process.store(process.map_or(0, |bytes| bytes as usize), Ordering::Relaxed);
        if !self.is_asked.swap(true, Ordering::AcqRel) {
            // The isolate owns its account for as long as it can be interrupted.
            isolate.request_interrupt(look, Arc::as_ptr(self).cast::<c_void>().cast_mut());
        }
    }

    fn look(&self, isolate: &mut v8::Isolate) {
        self.judge(isolate);
        // Only now: a request during the garbage collection would be handled before any code
        // continues.
        self.is_asked.store(false, Ordering::Release);
    }

    /// Ends the call if it uses too much memory.
    fn judge(&self, isolate: &mut v8::Isolate) {
        let limit = self.limit.load(Ordering::Relaxed);
        let usage = self.usage(isolate);
        if usage.sum() + self.unreported(&usage) <= limit {
            self.is_suspect.store(false, Ordering::Relaxed);
            return;
        }
        // Part of it may be garbage that was not collected yet.
        isolate.low_memory_notification();
        // The process's memory was read before the collection, so a second check must confirm it.
        if self.usage(isolate).sum() > limit || self.is_suspect.swap(true, Ordering::Relaxed) {
            self.stop.out_of_memory();
            isolate.terminate_execution();
        }
    }

    /// Memory of the process, in bytes, that the engine does not report and did not report at the
    /// start.
    fn unreported(&self, usage: &HeapUsage) -> usize {
        let before = usage.committed + self.unreported.get().copied().unwrap_or_default();
        self.process.load(Ordering::Relaxed).saturating_sub(before).saturating_sub(UNREPORTED)
    }

    /// Objects, strings and buffers, in bytes, with those that are not collected yet.
    pub fn held(&self, isolate: &mut v8::Isolate) -> usize {
        self.usage(isolate).sum()
    }

    fn usage(&self, isolate: &mut v8::Isolate) -> HeapUsage {
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

/// The engine's memory as it reports it, in bytes.
struct HeapUsage {
    /// Objects and strings.
    heap: usize,
    /// Array buffers.
    outside: usize,
    /// All of it, including pages that are partly free.
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
    // SAFETY: the engine passes the isolate that it interrupts, and its owner holds the account
    // (see `ask`).
    let (isolate, account) =
        unsafe { (v8::Isolate::ref_from_raw_isolate_ptr_mut(&mut isolate), &*account.cast_const().cast::<Account>()) };
    account.look(isolate);
}
