//! The isolates that a process has before its first call, which uses one of them. The other one
//! costs nothing: it is memory of the zygote that the process never writes to.

use std::mem::{ManuallyDrop, forget};

use deno_core::error::CoreError;
use rcrt_sandbox::Isolation;

use crate::engine::Isolate;
use crate::link::Link;
use crate::stop::Stop;
use crate::{WorkerError, call};

pub struct Isolates {
    plain: Isolate,
    /// For calls that share a process. Hardening a realm writes to most of its memory, so it is
    /// done once, in the zygote. Suspended, and so it cannot be dropped.
    hardened: Option<ManuallyDrop<Isolate>>,
}

impl Isolates {
    /// Creates and rehearses both.
    pub async fn in_zygote(
        startup: Option<&'static [u8]>,
        memory_mb: u64,
        link: &Link,
        stop: &Stop,
    ) -> Result<Self, WorkerError> {
        let failed = |error: CoreError| WorkerError::Engine(error.to_string());
        let mut plain = Isolate::new(startup, memory_mb, link, stop).map_err(WorkerError::Engine)?;
        call::warm_up(&mut plain, "zygote").await.map_err(failed)?;
        let mut hardened = Isolate::new(startup, memory_mb, link, stop).map_err(WorkerError::Engine)?;
        if !call::warm_up_hardened(&mut hardened, memory_mb).await.map_err(failed)? {
            return Err(WorkerError::Engine("a hardened realm was changed by a rehearsal".into()));
        }
        compact(&mut hardened);
        hardened.suspend();
        Ok(Self { plain, hardened: Some(ManuallyDrop::new(hardened)) })
    }

    /// Runs what every call runs through in the isolate that is not hardened, so that a call finds
    /// it in the memory of its own process.
    pub async fn rehearse(&mut self) -> Result<(), WorkerError> {
        call::warm_up(&mut self.plain, "child").await.map_err(|error| WorkerError::Engine(error.to_string()))
    }

    /// The isolate for the process's first call.
    pub fn for_call(self, isolation: Isolation) -> Isolate {
        match self.hardened {
            Some(hardened) if isolation == Isolation::Call => {
                forget(self.plain);
                let mut hardened = ManuallyDrop::into_inner(hardened);
                hardened.resume();
                hardened
            }
            _ => self.plain,
        }
    }
}

/// Processes write to fewer pages of a compact heap.
fn compact(isolate: &mut Isolate) {
    let isolate = isolate.runtime.v8_isolate();
    isolate.low_memory_notification();
    // The collection sweeps pages only when they are needed, so each process would do it again on
    // its own copies. These statistics need all pages swept.
    let _ = isolate.get_heap_code_and_metadata_statistics();
}

impl From<Isolate> for Isolates {
    fn from(plain: Isolate) -> Self {
        Self { plain, hardened: None }
    }
}
