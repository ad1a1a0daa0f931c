//! The worker's two threads: one reads the socket and can end what runs, the other owns the isolate and runs calls.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use breadcrumb::ErrorCode;
use deno_core::{JsRuntime, v8};
use sandbox::protocol::{
    Begin, CallDone, CallResult, CallStart, Frame, Hello, Kind, PROTOCOL_VERSION, Protection, decode, encode,
    read_frame,
};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, mpsc};

use crate::WorkerError;
use crate::call;
use crate::engine::Isolate;
use crate::jail::{self, OwnMemory};
use crate::link::Link;
use crate::memory::Meter;
use crate::outcome::failed;

/// Stack of the isolate's thread, in bytes; the engine keeps to about one of them and throws a RangeError beyond.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// Isolates that one process makes. QuickJS keeps something of each, and after about a hundred makes no more; V8's
/// processes are renewed for good measure.
const ISOLATES: u32 = if cfg!(feature = "quickjs") { 30 } else { 10_000 };
/// Exit status of a process that panicked.
const PANICKED: i32 = 101;
/// What the engine does not keep by itself: an end has to wait for long built-in functions, which the parent does not;
/// and QuickJS counts its own memory, but not that of the layer through which it is spoken to.
const LEFT_TO_PROCESS: &[&str] = if cfg!(feature = "quickjs") {
    &["timeout_ms and cpu_ms, within long built-in functions", "memory_mb, of the layer around the engine"]
} else {
    &["timeout_ms and cpu_ms, within long built-in functions"]
};
/// Threads for what Deno's crypto does aside.
const SIDE_THREADS: usize = 2;
/// How long they may take to come to rest when a call is over.
const REST: Duration = Duration::from_millis(50);
/// They are not started again: the jail is sealed.
const FOR_EVER: Duration = Duration::from_hours(24 * 365 * 100);

/// Why the running call is to end, set by whoever knows first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Told,
    OutOfMemory,
}

/// The switch that ends the running call from another thread.
#[derive(Clone, Default)]
pub struct Stop(Arc<StopState>);

#[derive(Default)]
struct StopState {
    running: Mutex<Running>,
    told: Notify,
}

#[derive(Default)]
struct Running {
    call: u32,
    engine: Option<v8::IsolateHandle>,
    reason: Option<Reason>,
}

impl Stop {
    fn held(&self) -> MutexGuard<'_, Running> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, call: u32, engine: v8::IsolateHandle) {
        *self.held() = Running { call, engine: Some(engine), reason: None };
    }

    /// After this no word from outside reaches the isolate.
    fn end(&self) -> Option<Reason> {
        std::mem::take(&mut *self.held()).reason
    }

    /// The parent's word, from the reading thread.
    fn tell(&self, call: u32) {
        let mut running = self.held();
        if running.call != call {
            return;
        }
        running.reason.get_or_insert(Reason::Told);
        if let Some(engine) = &running.engine {
            engine.terminate_execution();
        }
        self.0.told.notify_one();
    }

    /// Waits until the running call is to end.
    async fn wanted(&self) {
        // A word for a call that ended by itself may have left its mark.
        while self.held().reason.is_none() {
            self.0.told.notified().await;
        }
    }

    /// From the engine's own thread, which ends the call itself.
    pub fn out_of_memory(&self) {
        self.held().reason.get_or_insert(Reason::OutOfMemory);
        self.0.told.notify_one();
    }
}

/// Serves calls until the socket closes.
pub fn serve(
    socket: UnixStream,
    startup: Option<&'static [u8]>,
    begin: &Begin,
    protections: Vec<Protection>,
    memory: OwnMemory,
) -> Result<(), WorkerError> {
    end_when_it_panics();
    // The engine's platform before any thread of ours.
    JsRuntime::init_platform(None);
    let link = Link::new(socket.try_clone().map_err(|error| WorkerError::Socket(error.into()))?);
    let stop = Stop::default();
    // The parent sends one call at a time; one more may stand in line while an isolate is being made.
    let (calls, waiting) = mpsc::channel(2);
    let meter = Meter::start(&Arc::new(memory)).map_err(WorkerError::Threads)?;
    let host = Host { link: link.clone(), stop: stop.clone(), startup, memory_mb: begin.memory_mb, protections, meter };
    let runs = thread::Builder::new()
        .name("isolate".into())
        .stack_size(STACK_BYTES)
        .spawn(move || exit(&host.run(waiting)))
        .map_err(WorkerError::Threads)?;
    let read = read(socket, &link, &stop, &calls);
    // The socket is closed: whatever runs is for nobody. No waiting, no unwinding of the engine.
    let _ = runs;
    exit(&read)
}

/// A panic below the engine could not unwind through it: the abort would look like memory that ran out.
fn end_when_it_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        // SAFETY: ends the process at once, whatever state it is in.
        #[allow(unsafe_code)]
        unsafe {
            nix::libc::_exit(PANICKED)
        }
    }));
}

fn exit(result: &Result<(), WorkerError>) -> ! {
    use nix::libc;
    if let Err(error) = result {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("{error}");
        }
    }
    // SAFETY: ends the process at once; the engine on the other thread must not meet static destructors.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(i32::from(result.is_err()))
    }
}

fn read(
    mut socket: UnixStream,
    link: &Link,
    stop: &Stop,
    calls: &mpsc::Sender<(u32, CallStart)>,
) -> Result<(), WorkerError> {
    while let Some(frame) = read_frame(&mut socket)? {
        match frame.kind {
            Kind::Call => {
                let start = decode(&frame.payload)?;
                if calls.try_send((frame.call, start)).is_err() {
                    return Ok(());
                }
            }
            Kind::Cancel => stop.tell(frame.call),
            _ => link.deliver(frame)?,
        }
    }
    Ok(())
}

/// The isolate's thread.
struct Host {
    link: Link,
    stop: Stop,
    startup: Option<&'static [u8]>,
    /// Heap of the call before, in MiB: the next is likely to want the same.
    memory_mb: u64,
    protections: Vec<Protection>,
    meter: Meter,
}

impl Host {
    fn run(mut self, waiting: mpsc::Receiver<(u32, CallStart)>) -> Result<(), WorkerError> {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(SIDE_THREADS)
            .thread_keep_alive(FOR_EVER)
            .build()
            .map_err(WorkerError::Threads)?;
        start_side_threads(&tokio);
        tokio.block_on(self.serve(waiting))
    }

    async fn serve(&mut self, mut waiting: mpsc::Receiver<(u32, CallStart)>) -> Result<(), WorkerError> {
        let mut ready = Some(self.isolate().map_err(WorkerError::Engine)?);
        jail::seal(&mut self.protections);
        self.hello()?;
        while let Some((call, start)) = waiting.recv().await {
            let isolate = match ready.take() {
                Some(isolate) if isolate.execute.is_some() && start.javascript.is_none() => Ok(isolate),
                Some(isolate) if isolate.execute.is_none() && isolate.fits(start.memory_mb) => Ok(isolate),
                other => {
                    drop(other);
                    self.memory_mb = start.memory_mb;
                    self.isolate()
                }
            };
            self.memory_mb = start.memory_mb;
            ready = match isolate {
                Ok(isolate) => self.call(isolate, call, start).await?,
                Err(error) => {
                    let message = format!("no isolate can be made with {} MiB: {error}", self.memory_mb);
                    self.done(call, false, false, failed(ErrorCode::ResourceExhausted, message))?;
                    None
                }
            };
            if ready.is_none() {
                // The next isolate is made now, while nobody waits for it; if it cannot be, the next call says so.
                ready = self.isolate().ok();
            }
        }
        Ok(())
    }

    fn isolate(&self) -> Result<Isolate, String> {
        Isolate::new(self.startup, self.memory_mb, &self.link, &self.stop)
    }

    /// Runs the call and answers it; gives back the isolate if it is to be kept.
    async fn call(&self, mut isolate: Isolate, call: u32, start: CallStart) -> Result<Option<Isolate>, WorkerError> {
        isolate.admit(start.memory_mb, start.hrtime);
        self.link.begin(call);
        self.stop.begin(call, isolate.runtime.v8_isolate().thread_safe_handle());
        self.meter.begin(isolate.runtime.v8_isolate(), isolate.account.clone());
        self.link.send(Kind::Started, 0, Vec::new())?;
        let keep = start.keep;
        let ended = tokio::select! {
            biased;
            () = self.stop.wanted() => None,
            result = call::run(&mut isolate, start) => Some(result),
        };
        // Before anything else is waited for: an answer that comes meanwhile would only look as if nothing waited for it.
        let is_quiet = isolate.is_quiet();
        self.meter.end();
        let reason = self.stop.end();
        let result = match (reason, ended) {
            (Some(Reason::OutOfMemory), _) => CallResult::OutOfMemory,
            (Some(Reason::Told), _) | (None, None) => CallResult::Terminated,
            (None, Some(result)) => result,
        };
        let spent = !side_threads_rest().await;
        let kept = keep && is_quiet && !spent && matches!(result, CallResult::Ok(_)) && isolate.execute.is_some();
        self.link.end();
        self.done(call, kept, spent, result)?;
        Ok(kept.then_some(isolate))
    }

    fn done(&self, call: u32, kept: bool, spent: bool, result: CallResult) -> Result<(), WorkerError> {
        let done = encode(&CallDone { kept, spent, result })?;
        Ok(self.link.send_frame(&Frame::new(Kind::Done, call, 0, done))?)
    }

    fn hello(&mut self) -> Result<(), WorkerError> {
        let hello = encode(&Hello {
            protocol: PROTOCOL_VERSION,
            engine: if cfg!(feature = "quickjs") { "QuickJS" } else { "V8" }.into(),
            engine_version: v8::VERSION_STRING.into(),
            isolates: ISOLATES,
            left_to_process: LEFT_TO_PROCESS.iter().map(|&limit| limit.into()).collect(),
            protections: std::mem::take(&mut self.protections),
        })?;
        self.link.send_frame(&Frame::new(Kind::Hello, 0, 0, hello))?;
        Ok(())
    }
}

/// Each is held until all are there, so that none does the work of two.
fn start_side_threads(tokio: &Runtime) {
    let all = Arc::new(Barrier::new(SIDE_THREADS + 1));
    for _ in 0..SIDE_THREADS {
        let all = all.clone();
        tokio.spawn_blocking(move || all.wait());
    }
    all.wait();
}

/// Whether no call's work is left on the threads beside the isolate's: nothing ends it there, and the next call would
/// pay for it and wait behind it.
async fn side_threads_rest() -> bool {
    let all = Arc::new(Barrier::new(SIDE_THREADS));
    let rests: Vec<_> = (0..SIDE_THREADS)
        .map(|_| {
            let all = all.clone();
            tokio::task::spawn_blocking(move || all.wait())
        })
        .collect();
    let rest = async {
        for rest in rests {
            let _ = rest.await;
        }
    };
    tokio::time::timeout(REST, rest).await.is_ok()
}
