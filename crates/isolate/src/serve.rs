//! The worker's two threads: one reads the socket and can end what runs, the other owns the isolate and runs calls.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use breadcrumb::ErrorCode;
use deno_core::{JsRuntime, v8};
use sandbox::protocol::{
    Begin, CallDone, CallResult, CallStart, Frame, Hello, Kind, PROTOCOL_VERSION, Protection, decode, encode,
    read_frame,
};
use tokio::sync::{Notify, mpsc};

use crate::WorkerError;
use crate::call;
use crate::engine::Isolate;
use crate::jail::MemoryCeiling;
use crate::link::Link;
use crate::outcome::failed;

/// Stack of the isolate's thread, in bytes; the engine keeps to about one of them and throws a RangeError beyond.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// Isolates that one process makes. QuickJS keeps something of each, and after about a hundred makes no more; V8's
/// processes are renewed for good measure.
const ISOLATES: u32 = if cfg!(feature = "quickjs") { 30 } else { 10_000 };
/// Threads for what Deno's crypto does aside.
const SIDE_THREADS: usize = 2;

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
    ceiling: MemoryCeiling,
) -> Result<(), WorkerError> {
    // The engine's platform before any thread of ours.
    JsRuntime::init_platform(None);
    let link = Link::new(socket.try_clone().map_err(|error| WorkerError::Socket(error.into()))?);
    let stop = Stop::default();
    // The parent sends one call at a time; one more may stand in line while an isolate is being made.
    let (calls, waiting) = mpsc::channel(2);
    let host =
        Host { link: link.clone(), stop: stop.clone(), startup, memory_mb: begin.memory_mb, ceiling, protections };
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
    ceiling: MemoryCeiling,
    protections: Vec<Protection>,
}

impl Host {
    fn run(mut self, waiting: mpsc::Receiver<(u32, CallStart)>) -> Result<(), WorkerError> {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(SIDE_THREADS)
            .build()
            .map_err(WorkerError::Threads)?;
        tokio.block_on(self.serve(waiting))
    }

    async fn serve(&mut self, mut waiting: mpsc::Receiver<(u32, CallStart)>) -> Result<(), WorkerError> {
        let mut ready = Some(self.isolate().map_err(WorkerError::Engine)?);
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
                    self.done(call, false, failed(ErrorCode::ResourceExhausted, message))?;
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
        self.ceiling.set(start.memory_mb);
        isolate.admit(start.memory_mb);
        self.link.begin(call);
        self.stop.begin(call, isolate.runtime.v8_isolate().thread_safe_handle());
        self.link.send(Kind::Started, 0, Vec::new())?;
        let keep = start.keep;
        let ended = tokio::select! {
            biased;
            () = self.stop.wanted() => None,
            result = call::run(&mut isolate, start) => Some(result),
        };
        let reason = self.stop.end();
        let result = match (reason, ended) {
            (Some(Reason::OutOfMemory), _) => CallResult::OutOfMemory,
            (Some(Reason::Told), _) | (None, None) => CallResult::Terminated,
            (None, Some(result)) => result,
        };
        let kept = keep && matches!(result, CallResult::Ok(_)) && isolate.execute.is_some();
        self.link.end();
        self.done(call, kept, result)?;
        Ok(kept.then_some(isolate))
    }

    fn done(&self, call: u32, kept: bool, result: CallResult) -> Result<(), WorkerError> {
        let done = encode(&CallDone { kept, result })?;
        Ok(self.link.send_frame(&Frame::new(Kind::Done, call, 0, done))?)
    }

    fn hello(&mut self) -> Result<(), WorkerError> {
        let hello = encode(&Hello {
            protocol: PROTOCOL_VERSION,
            engine: if cfg!(feature = "quickjs") { "QuickJS" } else { "V8" }.into(),
            engine_version: v8::VERSION_STRING.into(),
            isolates: ISOLATES,
            protections: std::mem::take(&mut self.protections),
        })?;
        self.link.send_frame(&Frame::new(Kind::Hello, 0, 0, hello))?;
        Ok(())
    }
}
