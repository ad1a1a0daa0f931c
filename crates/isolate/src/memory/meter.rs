//! A thread that has the running isolate look at its memory every few milliseconds.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use deno_core::v8;

use super::Account;
use crate::jail::OwnMemory;

const PERIOD: Duration = Duration::from_millis(4);
/// Periods without a call after which the thread sleeps.
const IDLE_PERIODS: u32 = 2;

#[derive(Clone)]
pub struct Meter(Arc<Shared>);

struct Shared {
    watched: Mutex<Watched>,
    begun: Condvar,
    process: Arc<OwnMemory>,
}

#[derive(Default)]
struct Watched {
    running: Option<Running>,
    /// The thread sleeps until it is woken. Calls that follow each other closely need not wake it.
    is_asleep: bool,
}

struct Running {
    isolate: v8::IsolateHandle,
    account: Arc<Account>,
}

impl Meter {
    /// Starts the thread. It ends with the process.
    pub fn start(process: &Arc<OwnMemory>) -> io::Result<Self> {
        let shared = Arc::new(Shared { watched: Mutex::default(), begun: Condvar::new(), process: process.clone() });
        if cfg!(not(feature = "quickjs")) {
            let watched = shared.clone();
            thread::Builder::new().name("meter".into()).spawn(move || watched.watch())?;
        }
        Ok(Self(shared))
    }

    pub fn begin(&self, isolate: &mut v8::Isolate, account: Arc<Account>) {
        account.begin(isolate, || self.0.process.data_bytes());
        let mut watched = self.0.held();
        watched.running = Some(Running { isolate: isolate.thread_safe_handle(), account });
        if watched.is_asleep {
            self.0.begun.notify_one();
        }
    }

    pub fn end(&self) {
        self.0.held().running = None;
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut watched = self.held();
        let mut idle = 0;
        loop {
            if idle > IDLE_PERIODS {
                watched.is_asleep = true;
                watched = self.begun.wait(watched).unwrap_or_else(PoisonError::into_inner);
                watched.is_asleep = false;
            }
            // What a call can do before the first look is what it can do between two of them.
            watched = self.begun.wait_timeout(watched, PERIOD).unwrap_or_else(PoisonError::into_inner).0;
            match &watched.running {
                Some(running) => {
                    idle = 0;
                    running.account.ask(&running.isolate, self.process.data_bytes());
                }
                None => idle += 1,
            }
        }
    }
}
