//! The worker's two threads: one reads the socket and can end what runs, the other owns the isolate and runs calls.

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use breadcrumb::ErrorCode;
use deno_core::{JsRuntime, v8};
use sandbox::protocol::{
    Begin, CallDone, CallResult, CallStart, Frame, Hello, Kind, PROTOCOL_VERSION, Protection, decode, encode,
    read_frame,
};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::WorkerError;
use crate::aside;
use crate::call::{self, Work};
use crate::engine::Isolate;
use crate::jail::{self, OwnMemory};
use crate::link::Link;
use crate::memory::Meter;
use crate::outcome::failed;
use crate::stop::{Reason, Stop};

/// Stack of the isolate's thread, in bytes; the engine keeps to about one of them and throws a RangeError beyond.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// Isolates that one process makes. QuickJS keeps something of each, and after about a hundred makes no more; V8's
/// processes are renewed for good measure.
const ISOLATES: u32 = if cfg!(feature = "quickjs") { 30 } else { 10_000 };
/// After a call the next isolate is made this much later, unless a call waits for it: the processor is first for those
/// who write, and read, what was answered.
const AFTER_ANSWER: Duration = Duration::from_millis(4);
/// Bytes of frames that are read at once.
const READ_AT_ONCE: usize = 16 * 1024;
/// Exit status of a process that panicked.
const PANICKED: i32 = 101;
/// What the engine does not keep by itself: an end has to wait for long built-in functions, which the parent does not;
/// and QuickJS counts its own memory, but not that of the layer through which it is spoken to.
const LEFT_TO_PROCESS: &[&str] = if cfg!(feature = "quickjs") {
    &["timeout_ms and cpu_ms, within long built-in functions", "memory_mb, of the layer around the engine"]
} else {
    &["timeout_ms and cpu_ms, within long built-in functions"]
};

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

fn read(socket: UnixStream, link: &Link, stop: &Stop, calls: &mpsc::Sender<Work>) -> Result<(), WorkerError> {
    let mut socket = BufReader::with_capacity(READ_AT_ONCE, socket);
    let mut cache = None;
    while let Some(frame) = read_frame(&mut socket)? {
        match frame.kind {
            Kind::CodeCache => cache = Some(frame.payload),
            Kind::Call => {
                let start = decode(&frame.payload)?;
                if calls.try_send(Work { call: frame.call, start, cache: cache.take() }).is_err() {
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
    fn run(mut self, waiting: mpsc::Receiver<Work>) -> Result<(), WorkerError> {
        aside::runtime().map_err(WorkerError::Threads)?.block_on(self.serve(waiting))
    }

    async fn serve(&mut self, mut waiting: mpsc::Receiver<Work>) -> Result<(), WorkerError> {
        let mut ready = Some(self.isolate().map_err(WorkerError::Engine)?);
        jail::seal(&mut self.protections);
        self.hello()?;
        let mut next = waiting.recv().await;
        while let Some(work) = next {
            let start = &work.start;
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
            let mut spent = None;
            ready = match isolate {
                Ok(isolate) => {
                    let (isolate, is_kept) = self.call(isolate, work).await?;
                    if is_kept {
                        Some(isolate)
                    } else {
                        spent = Some(isolate);
                        None
                    }
                }
                Err(error) => {
                    let message = format!("no isolate can be made with {} MiB: {error}", self.memory_mb);
                    self.done(work.call, &CallDone::fresh(failed(ErrorCode::ResourceExhausted, message)))?;
                    None
                }
            };
            next = if ready.is_none() {
                let waits = timeout(AFTER_ANSWER, waiting.recv()).await;
                drop(spent);
                // While nobody waits for it; if it cannot be made, the next call says so.
                ready = self.isolate().ok();
                self.link.send_frame(&Frame::new(Kind::Ready, 0, 0, Vec::new()))?;
                match waits {
                    Ok(next) => next,
                    Err(_) => waiting.recv().await,
                }
            } else {
                waiting.recv().await
            };
        }
        Ok(())
    }

    fn isolate(&self) -> Result<Isolate, String> {
        Isolate::new(self.startup, self.memory_mb, &self.link, &self.stop)
    }

    /// Runs the call and answers it. Tells whether the isolate is kept for the next.
    async fn call(&self, mut isolate: Isolate, work: Work) -> Result<(Isolate, bool), WorkerError> {
        let CallStart { memory_mb, hrtime, keep, is_counted, .. } = work.start;
        let call = work.call;
        isolate.admit(memory_mb, hrtime);
        self.link.begin(call);
        self.stop.begin(call, isolate.runtime.v8_isolate().thread_safe_handle());
        self.meter.begin(isolate.runtime.v8_isolate(), isolate.account.clone());
        if !is_counted {
            self.link.send(Kind::Started, 0, Vec::new())?;
        }
        let ended = tokio::select! {
            biased;
            () = self.stop.wanted() => None,
            result = call::run(&mut isolate, &self.link, work) => Some(result),
        };
        // Before anything else is waited for: an answer that comes meanwhile would only look as if nothing waited for it.
        let is_idle = !isolate.has_ops();
        let is_quiet = is_idle && !isolate.has_timers();
        self.meter.end();
        let reason = self.stop.end();
        let result = match (reason, ended) {
            (Some(Reason::OutOfMemory), _) => CallResult::OutOfMemory,
            (Some(Reason::Told), _) | (None, None) => CallResult::Terminated,
            (None, Some(result)) => result,
        };
        // What an operation does on a thread beside the isolate's is waited for by the operation: without one, nothing
        // is left there.
        let spent = !is_idle && !aside::rests().await;
        let kept = keep && is_quiet && !spent && matches!(result, CallResult::Ok(_)) && isolate.execute.is_some();
        self.link.end();
        let is_cache_refused = isolate.main.was_cache_refused();
        self.done(call, &CallDone { kept, spent, is_cache_refused, result })?;
        Ok((isolate, kept))
    }

    fn done(&self, call: u32, done: &CallDone) -> Result<(), WorkerError> {
        let done = encode(done)?;
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
