//! A thread that has the running isolate look at its memory every few milliseconds.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use deno_core::v8;

use super::Account;
use crate::jail::OwnMemory;

const PERIOD: Duration = Duration::from_millis(4);

#[derive(Clone)]
pub struct Meter(Arc<Shared>);

struct Shared {
    running: Mutex<Option<Running>>,
    begun: Condvar,
    process: Arc<OwnMemory>,
}

struct Running {
    isolate: v8::IsolateHandle,
    account: Arc<Account>,
}

impl Meter {
    /// Starts the thread. It ends with the process.
    pub fn start(process: &Arc<OwnMemory>) -> io::Result<Self> {
        let shared = Arc::new(Shared { running: Mutex::new(None), begun: Condvar::new(), process: process.clone() });
        if cfg!(not(feature = "quickjs")) {
            let watched = shared.clone();
            thread::Builder::new().name("meter".into()).spawn(move || watched.watch())?;
        }
        Ok(Self(shared))
    }

    pub fn begin(&self, isolate: &mut v8::Isolate, account: Arc<Account>) {
        account.begin(isolate, self.0.process.data_bytes());
        *self.0.held() = Some(Running { isolate: isolate.thread_safe_handle(), account });
        self.0.begun.notify_one();
    }

    pub fn end(&self) {
        *self.0.held() = None;
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut running = self.held();
        loop {
            if let Some(running) = &*running {
                running.account.ask(&running.isolate, self.process.data_bytes());
            }
            running = if running.is_some() {
                self.begun.wait_timeout(running, PERIOD).unwrap_or_else(PoisonError::into_inner).0
            } else {
                self.begun.wait(running).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}
