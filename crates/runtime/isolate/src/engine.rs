//! An isolate: created from the snapshot if there is one, ready for one tool.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use deno_core::stats::RuntimeActivityStatsFilter;
use deno_core::{JsRuntime, RuntimeOptions, v8};

use crate::extensions::{self, Scripts};
use crate::link::Link;
use crate::loader::Main;
use crate::memory::Account;
use crate::ops::{Clock, Console, Fetches, Progress, Timers};
use crate::stop::Stop;
use crate::tool_module::ToolModule;

const MIB: usize = 1024 * 1024;
/// How much the heap can grow beyond its limit while the call is being ended, in bytes.
const ROOM_TO_END: usize = 32 * MIB;

/// Starts the engine, before this program starts a thread. With `is_copied` the engine works only
/// on the calling thread, since a fork copies no other.
pub fn start(is_copied: bool) {
    #[cfg(target_os = "linux")]
    {
        // By default the engine reads a file for this.
        v8::V8::set_entropy_source(random);
        if is_copied {
            // All workers have the same flags: a code cache is valid only for the flags that it was
            // made with.
            v8::V8::set_flags_from_string("--single-threaded");
            return JsRuntime::init_platform(Some(v8::new_single_threaded_default_platform(false).make_shared()));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = is_copied;
    JsRuntime::init_platform(None);
}

/// Fills the bytes from the kernel. Returns whether all were filled.
#[cfg(target_os = "linux")]
fn random(bytes: &mut [u8]) -> bool {
    // SAFETY: writes at most the length of the slice.
    #[allow(unsafe_code)]
    let filled = unsafe { nix::libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    usize::try_from(filled) == Ok(bytes.len())
}

pub struct Isolate {
    pub runtime: JsRuntime,
    /// `invoke` of `main.js`.
    pub invoke: v8::Global<v8::Function>,
    /// `renew` of `main.js`: makes the next call the isolate's first.
    pub prepare: v8::Global<v8::Function>,
    /// `seed` of `main.js`: makes the clock and the random numbers the same in each run.
    pub seed: v8::Global<v8::Function>,
    /// `harden` of `main.js`: makes everything that calls share unchangeable.
    pub harden: v8::Global<v8::Function>,
    /// `clean` of `main.js`: whether the next call finds what the first one found.
    pub clean: v8::Global<v8::Function>,
    /// The tool's `execute` that an earlier call kept with all its state.
    pub execute: Option<v8::Global<v8::Function>>,
    /// Calls can follow each other in its realm.
    pub is_hardened: bool,
    /// The tool's module, if each call evaluates it again in this isolate.
    pub module: Option<ToolModule>,
    /// Heap limit with which the isolate was created, in MiB.
    made_for: u64,
    /// Heap limit of the running call, in bytes.
    heap_limit: Rc<Cell<usize>>,
    /// Memory limit and use of the running call. The engine has a pointer to it, so it is dropped
    /// after the engine.
    pub account: Arc<Account>,
    /// The tool's only module, until the engine loads it.
    pub main: Rc<Main>,
    stop: Stop,
}

impl Isolate {
    /// The error is the engine's message.
    pub fn new(startup: Option<&'static [u8]>, memory_mb: u64, link: &Link, stop: &Stop) -> Result<Self, String> {
        let scripts = if startup.is_some() { Scripts::InSnapshot } else { Scripts::Included };
        let limit = memory_mb as usize * MIB;
        let account = Account::new(stop.clone());
        let main = Rc::new(Main::default());
        let parameters = account.apply(v8::CreateParams::default().heap_limits(0, limit).allow_atomics_wait(false));
        let mut runtime = JsRuntime::try_new(RuntimeOptions {
            extensions: extensions::all(scripts),
            startup_snapshot: startup,
            module_loader: Some(main.clone()),
            create_params: Some(parameters),
            ..RuntimeOptions::default()
        })
        .map_err(|error| error.to_string())?;
        {
            let state = runtime.op_state();
            let mut state = state.borrow_mut();
            state.put(link.clone());
            state.put(Console::new());
            state.put(Fetches::default());
            state.put(Progress::default());
            state.put(Clock::new());
            state.put(Timers::default());
        }
        let heap_limit = Rc::new(Cell::new(limit));
        watch_heap(&mut runtime, &heap_limit, stop);
        let start =
            runtime.execute_script("sandbox:start", "globalThis.__sandbox()").map_err(|error| error.to_string())?;
        let [invoke, prepare, seed, harden, clean] = {
            deno_core::scope!(scope, &mut runtime);
            // No eval and no Function from text, even if the validators missed it.
            scope.get_current_context().set_allow_generation_from_strings(false);
            let list = v8::Local::new(scope, start).to_object(scope).ok_or("the start script returns nothing")?;
            let function = |index| {
                let value = list.get_index(scope, index);
                let function = value.and_then(|value| v8::Local::<v8::Function>::try_from(value).ok());
                function.map(|function| v8::Global::new(scope, function)).ok_or("the start script returns no function")
            };
            [function(0)?, function(1)?, function(2)?, function(3)?, function(4)?]
        };
        Ok(Self {
            runtime,
            invoke,
            prepare,
            seed,
            harden,
            clean,
            execute: None,
            is_hardened: false,
            module: None,
            made_for: memory_mb,
            heap_limit,
            account,
            main,
            stop: stop.clone(),
        })
    }

    /// Makes the isolate that the thread had before this one its current isolate again. Only the
    /// current isolate can run code or be dropped.
    pub fn suspend(&mut self) {
        // SAFETY: it is the thread's current isolate: it was created or resumed last.
        #[allow(unsafe_code)]
        unsafe {
            self.runtime.v8_isolate().exit();
        }
    }

    /// Makes it the thread's current isolate.
    pub fn resume(&mut self) {
        // SAFETY: isolates do not leave their thread.
        #[allow(unsafe_code)]
        unsafe {
            self.runtime.v8_isolate().enter();
        }
    }

    /// Whether it belongs to one script, whose next call does not bring the code.
    pub fn is_kept(&self) -> bool {
        self.execute.is_some() || self.module.is_some()
    }

    /// Whether the last call left a pending operation.
    pub fn has_ops(&self) -> bool {
        let filter = RuntimeActivityStatsFilter::default().with_ops();
        !self.runtime.runtime_activity_stats_factory().capture(&filter).dump().active.is_empty()
    }

    /// Whether the last call left a timer.
    pub fn has_timers(&self) -> bool {
        !self.runtime.op_state().borrow().borrow::<Timers>().is_empty()
    }

    /// How many console lines of the last call were beyond the limits.
    pub fn omitted_lines(&self) -> u64 {
        self.runtime.op_state().borrow().borrow::<Console>().omitted()
    }

    /// Whether the last call tried to change what calls share, in code that nothing waited for.
    pub fn has_refused_change(&self) -> bool {
        self.runtime.op_state().borrow().borrow::<Console>().has_refused_change()
    }

    /// Prepares for a call with this much memory. `hrtime` gives it clocks finer than a
    /// millisecond.
    pub fn admit(&mut self, memory_mb: u64, hrtime: bool) {
        let limit = memory_mb as usize * MIB;
        self.heap_limit.set(limit);
        if memory_mb < self.made_for {
            // The only way to lower the limit. It is set a little lower, as at creation: the engine
            // calls back once also when only a buffer was refused.
            self.runtime.remove_near_heap_limit_callback(limit - limit / 8);
            watch_heap(&mut self.runtime, &self.heap_limit, &self.stop);
        }
        // It can grow to this limit.
        self.made_for = memory_mb;
        self.account.allow(limit);
        self.runtime.v8_isolate().cancel_terminate_execution();
        let state = self.runtime.op_state();
        let mut state = state.borrow_mut();
        state.put(Console::new());
        state.put(Fetches::default());
        state.put(Progress::default());
        state.borrow::<Clock>().set_fine(hrtime);
    }
}

/// Ends the call if the heap is full.
fn watch_heap(runtime: &mut JsRuntime, limit: &Rc<Cell<usize>>, stop: &Stop) {
    let (limit, stop) = (limit.clone(), stop.clone());
    let handle = runtime.v8_isolate().thread_safe_handle();
    runtime.add_near_heap_limit_callback(move |current, _initial| {
        // An isolate that was created with less can grow to the call's limit.
        let allowed = limit.get();
        if current < allowed {
            return allowed;
        }
        stop.out_of_memory();
        handle.terminate_execution();
        current + ROOM_TO_END
    });
}
