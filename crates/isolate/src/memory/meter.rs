//! A thread that has the running isolate look at its memory every few milliseconds. It sleeps while no call runs, and while the
//! isolate's thread waits: a call that waits allocates nothing, and a thousand of them would keep the machine busy with looking.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, thread};

use deno_core::v8;

use super::Account;
use crate::jail::OwnMemory;

const PERIOD: Duration = Duration::from_millis(4);
/// Periods in which nothing could allocate, after which the thread sleeps.
const IDLE_PERIODS: u32 = 2;

#[derive(Clone, Default)]
pub struct Meter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The call that runs.
    running: Mutex<Option<Running>>,
    begun: Condvar,
    process: OnceLock<OwnMemory>,
    /// The isolate's thread waits for something outside of it.
    is_waiting: AtomicBool,
    /// The thread sleeps until it is woken. Calls that follow each other closely need not wake it.
    is_asleep: AtomicBool,
}

struct Running {
    isolate: v8::IsolateHandle,
    account: Arc<Account>,
}

impl Meter {
    /// Starts the thread, once. It ends with the process, whose memory is `process`.
    pub fn start(&self, process: OwnMemory) -> io::Result<()> {
        let is_first = self.0.process.set(process).is_ok();
        if is_first {
            let watched = self.0.clone();
            thread::Builder::new().name("meter".into()).spawn(move || watched.watch())?;
        }
        Ok(())
    }

    pub fn begin(&self, isolate: &mut v8::Isolate, account: Arc<Account>) {
        account.begin(isolate, || self.0.data_bytes());
        *self.0.held() = Some(Running { isolate: isolate.thread_safe_handle(), account });
        self.0.wake();
    }

    /// The isolate's thread has nothing to do until something comes from outside.
    pub fn waits(&self) {
        self.0.is_waiting.store(true, Ordering::SeqCst);
    }

    /// The isolate's thread goes on.
    pub fn goes_on(&self) {
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
            // It holds this until it sleeps.
            drop(self.held());
            self.begun.notify_one();
        }
    }

    /// Whether nothing can allocate.
    fn is_idle(&self, running: Option<&Running>) -> bool {
        running.is_none() || self.is_waiting.load(Ordering::SeqCst)
    }

    fn watch(&self) {
        let mut held = self.held();
        let mut idle = 0;
        loop {
            if idle > IDLE_PERIODS {
                self.is_asleep.store(true, Ordering::SeqCst);
                // Whoever went on before that was seen does not wake it.
                if self.is_idle(held.as_ref()) {
                    held = self.begun.wait(held).unwrap_or_else(PoisonError::into_inner);
                }
                self.is_asleep.store(false, Ordering::SeqCst);
            }
            // What a call can do before the first look is what it can do between two of them.
            held = self.begun.wait_timeout(held, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
            if let Some(running) = &*held {
                // Also of one that waits: it hears of it when its code goes on.
                running.account.ask(&running.isolate, self.data_bytes());
            }
            idle = if self.is_idle(held.as_ref()) { idle + 1 } else { 0 };
        }
    }
}
