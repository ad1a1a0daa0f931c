//! A thread that makes the running isolate check its memory every few milliseconds, and lets the
//! reader read during a call that is not over at once. It sleeps while no call runs and while the
//! isolate's thread waits: a waiting call allocates nothing, and checks of a thousand waiting calls
//! would keep the machine busy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, thread};

use deno_core::v8;

use super::Account;
use crate::inbox::Turn;
use crate::jail::OwnMemory;

const PERIOD: Duration = Duration::from_millis(4);
/// The thread sleeps after this many periods in which nothing could allocate.
const IDLE_PERIODS: u32 = 2;

#[derive(Clone, Default)]
pub struct Meter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The running call.
    running: Mutex<Option<Running>>,
    begun: Condvar,
    process: OnceLock<OwnMemory>,
    /// The isolate's thread waits for an event from outside.
    is_waiting: AtomicBool,
    /// The thread sleeps until it is woken. It stays awake between calls in quick succession.
    is_asleep: AtomicBool,
}

struct Running {
    isolate: v8::IsolateHandle,
    account: Arc<Account>,
    /// It was seen at a check.
    is_seen: bool,
}

impl Meter {
    /// Starts the thread, once. It runs until the process exits; `process` is the process's memory,
    /// `turn` who reads its socket.
    pub fn start(&self, process: OwnMemory, turn: Turn) -> io::Result<()> {
        let is_first = self.0.process.set(process).is_ok();
        if is_first {
            let watched = self.0.clone();
            thread::Builder::new().name("meter".into()).spawn(move || watched.watch(&turn))?;
        }
        Ok(())
    }

    pub fn begin(&self, isolate: &mut v8::Isolate, account: Arc<Account>) {
        account.begin(isolate, || self.0.data_bytes());
        *self.0.held() = Some(Running { isolate: isolate.thread_safe_handle(), account, is_seen: false });
        self.0.wake();
    }

    /// The isolate's thread has nothing to do until an event from outside.
    pub fn waits(&self) {
        self.0.is_waiting.store(true, Ordering::SeqCst);
    }

    /// The isolate's thread continues.
    pub fn resume(&self) {
        self.0.is_waiting.store(false, Ordering::SeqCst);
        self.0.wake();
    }

    pub fn end(&self) {
        *self.0.held() = None;
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn data_bytes(&self) -> Option<u64> {
        self.process.get()?.data_bytes()
    }

    fn wake(&self) {
        if self.is_asleep.load(Ordering::SeqCst) {
            // The thread holds this lock until it sleeps.
            drop(self.held());
            self.begun.notify_one();
        }
    }

    /// Whether nothing can allocate.
    fn is_idle(&self, running: Option<&Running>) -> bool {
        running.is_none() || self.is_waiting.load(Ordering::SeqCst)
    }

    fn watch(&self, turn: &Turn) {
        let mut held = self.held();
        let mut idle = 0;
        loop {
            if idle > IDLE_PERIODS {
                self.is_asleep.store(true, Ordering::SeqCst);
                // A thread that continued before the flag was set does not wake it.
                if self.is_idle(held.as_ref()) {
                    held = self.begun.wait(held).unwrap_or_else(PoisonError::into_inner);
                }
                self.is_asleep.store(false, Ordering::SeqCst);
            }
            // A call can do as much before the first check as between two checks.
            held = self.begun.wait_timeout(held, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
            if let Some(running) = &mut *held {
                // Only now: most calls are over before, and the parent does not end them.
                if std::mem::replace(&mut running.is_seen, true) {
                    turn.hand_over();
                }
                // Also if the isolate waits: it checks when its code continues.
                running.account.ask(&running.isolate, self.data_bytes());
            }
            idle = if self.is_idle(held.as_ref()) { idle + 1 } else { 0 };
        }
    }
}
