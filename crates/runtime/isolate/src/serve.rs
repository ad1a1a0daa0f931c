//! A process that runs calls. Its first thread owns the isolate, reads calls and runs them; a
//! second thread reads the socket while a call waits or runs for long, and can stop it. Two more
//! threads meter the call and do background work.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use deno_core::v8;
use deno_crypto::rand::RngCore;
use deno_crypto::rand::rngs::OsRng;
use rcrt_breadcrumb::ErrorCode;
use rcrt_sandbox::Isolation;
use rcrt_sandbox::protocol::{
    CallDone, CallResult, CallStart, Frame, FrameError, Hello, Kind, PROTOCOL_VERSION, Protection, Ready, StartMarker,
    encode, encode_large,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::call::{self, Work};
use crate::crypto_thread;
use crate::engine::{self, Isolate};
use crate::inbox::{Frames, Inbox};
use crate::isolate_fork::{self, IsolateTurn};
use crate::isolates::Isolates;
use crate::jail::{self, OwnMemory, OwnProcFolder};
use crate::link::Link;
use crate::memory::Meter;
use crate::outcome::{self, failed};
use crate::stop::{Reason, Stop};
use crate::tasks::Tasks;
use crate::{Jailed, WorkerError};

/// How many isolates one process creates before it is replaced.
const ISOLATES: u32 = 10_000;
/// The delay after a call before its isolate is dropped and the next one created, unless a call is
/// waiting: the CPU is first used to write and read the result.
const AFTER_ANSWER: Duration = Duration::from_millis(4);
/// Exit status of a process that panicked.
const PANICKED: i32 = 101;
/// Limits that the engine does not enforce alone: it cannot interrupt long built-in functions, so
/// the parent does.
const LEFT_TO_PROCESS: &[&str] = &["timeout_ms and cpu_ms, within long built-in functions"];

/// Serves calls until the socket closes, in a process that creates its isolates itself, one after
/// the other.
pub fn serve(jailed: Jailed, startup: Option<&'static [u8]>, memory: OwnProcFolder) -> Result<(), WorkerError> {
    end_when_it_panics();
    let Jailed { socket, begin, mut protections } = jailed;
    // Before the engine's threads start: it would not apply to them.
    let own = jail::close_files(memory, &mut protections);
    engine::start(false);
    let (link, stop, memory_mb) = (Link::default(), Stop::default(), begin.memory_mb);
    let meter = Meter::default();
    let served = crypto_thread::runtime(&meter).map_err(WorkerError::Threads)?.block_on(async {
        let isolate = Isolate::new(startup, memory_mb, &link, &stop).map_err(WorkerError::Engine)?;
        Serving { socket, link, stop, meter, startup, memory_mb, protections, own, turn: None }
            .serve(isolate.into())
            .await
    });
    exit(&served, 0)
}

/// A process in its jail, not sealed yet.
pub struct Serving {
    pub socket: UnixStream,
    pub link: Link,
    pub stop: Stop,
    pub meter: Meter,
    pub startup: Option<&'static [u8]>,
    /// Heap limit with which the isolate was created, in MiB.
    pub memory_mb: u64,
    pub protections: Vec<Protection>,
    pub own: OwnMemory,
    /// Which isolate of its worker it has, if each has its own process.
    pub turn: Option<IsolateTurn>,
}

impl Serving {
    /// Starts the threads beside the isolate's and serves calls.
    pub async fn serve(self, isolates: Isolates) -> Result<(), WorkerError> {
        let Self { socket, link, stop, meter, startup, memory_mb, protections, own, turn } = self;
        link.use_socket(&socket).map_err(FrameError::Io)?;
        crypto_thread::start();
        meter.start(own, link.turn().clone()).map_err(WorkerError::Threads)?;
        let mut frames = Frames::new(socket, link.clone(), stop.clone());
        let mark = matches!(turn, Some(IsolateTurn::Later)).then(draw_mark);
        frames.mark = mark;
        frames.closed = if turn.is_some() { isolate_fork::PARENT_IS_GONE } else { 0 };
        let spent = turn.is_some().then(|| frames.spent.clone());
        let inbox = Inbox::open(frames)?;
        Host { link, stop, startup, memory_mb, protections, meter, spent }.serve(isolates, mark, inbox).await
    }
}

/// From the kernel, so that no earlier process can know it.
fn draw_mark() -> StartMarker {
    let mut bytes = [0; 16];
    OsRng.fill_bytes(&mut bytes);
    StartMarker::new(bytes)
}

/// A panic cannot unwind through the engine: the abort would look like an out-of-memory error.
pub fn end_when_it_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        isolate_fork::leave(PANICKED)
    }));
}

/// `well` is the exit status if there is no error.
pub fn exit(result: &Result<(), WorkerError>, well: i32) -> ! {
    if let Err(error) = result {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("{error}");
        }
    }
    isolate_fork::leave(if result.is_ok() { well } else { 1 })
}

/// The isolate's thread.
struct Host {
    link: Link,
    stop: Stop,
    startup: Option<&'static [u8]>,
    /// Heap limit of the call before, in MiB: the next call is likely to have the same.
    memory_mb: u64,
    protections: Vec<Protection>,
    meter: Meter,
    /// Set if the process belongs to this isolate only: notified when it is not needed any more.
    spent: Option<Arc<Notify>>,
}

/// Whether the call did not end by itself.
fn was_stopped(result: &CallResult) -> bool {
    matches!(result, CallResult::Terminated | CallResult::OutOfMemory)
}

impl Host {
    async fn serve(
        mut self,
        isolates: Isolates,
        mark: Option<StartMarker>,
        mut inbox: Inbox,
    ) -> Result<(), WorkerError> {
        let (mut first, mut ready) = (Some(isolates), None::<Isolate>);
        jail::seal(&mut self.protections);
        match mark {
            None => self.hello()?,
            Some(mark) => {
                let ready = Ready { mark, protections: std::mem::take(&mut self.protections) };
                self.link.send_frame(&Frame::new(Kind::Ready, 0, 0, encode(&ready)?))?;
            }
        }
        let mut next = inbox.next().await;
        while let Some(work) = next {
            let start = &work.start;
            let isolate = match (ready.take(), first.take()) {
                (_, Some(isolates)) => Ok(isolates.for_call(start.isolation)),
                (Some(isolate), None) if isolate.is_kept() == start.javascript.is_none() => Ok(isolate),
                (other, None) => {
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
                    let message = format!("cannot create an isolate with {} MiB: {error}", self.memory_mb);
                    self.done(work.call, &CallDone::fresh(failed(ErrorCode::ResourceExhausted, message)))?;
                    None
                }
            };
            if let (Some(spent), None) = (&self.spent, &ready) {
                inbox.read_beside();
                spent.notified().await;
                tokio::time::sleep(AFTER_ANSWER).await;
                isolate_fork::leave(isolate_fork::DONE);
            }
            next = if ready.is_none() {
                inbox.read_beside();
                let waits = timeout(AFTER_ANSWER, inbox.next()).await;
                drop(spent);
                // In idle time; if this fails, the next call reports it.
                ready = self.isolate().ok();
                self.link.send_frame(&Frame::new(Kind::Ready, 0, 0, Vec::new()))?;
                match waits {
                    Ok(next) => next,
                    Err(_) => inbox.next().await,
                }
            } else {
                inbox.next().await
            };
        }
        Ok(())
    }

    fn isolate(&self) -> Result<Isolate, String> {
        Isolate::new(self.startup, self.memory_mb, &self.link, &self.stop)
    }

    /// Runs the call and sends its result. Returns whether the isolate is kept for the next call.
    async fn call(&self, mut isolate: Isolate, work: Work) -> Result<(Isolate, bool), WorkerError> {
        let CallStart { memory_mb, hrtime, isolation, is_counted, .. } = work.start;
        let call = work.call;
        isolate.admit(memory_mb, hrtime);
        self.link.begin(call);
        self.stop.begin(call, isolate.runtime.v8_isolate().thread_safe_handle());
        self.meter.begin(isolate.runtime.v8_isolate(), isolate.account.clone());
        if !is_counted {
            self.link.send(Kind::Started, 0, Vec::new())?;
        }
        let tasks = Tasks::of(&mut isolate.runtime);
        let run = call::run(&mut isolate, &self.link, work);
        let run = tasks.beside(run);
        let ended = tokio::select! {
            biased;
            () = self.stop.wanted() => None,
            result = run => Some(result),
        };
        // Before waiting for anything else: a reply that arrives meanwhile would hide that an op
        // was pending.
        let is_idle = !isolate.has_ops();
        let is_quiet = is_idle && !isolate.has_timers();
        self.meter.end();
        let reason = self.stop.end();
        let result = match (reason, ended) {
            (Some(Reason::OutOfMemory), _) => CallResult::OutOfMemory,
            (Some(Reason::Cancelled), _) | (None, None) => CallResult::Terminated,
            (None, Some(result)) => result,
        };
        // Work on the other thread has a pending op that waits for it: without an op, that thread
        // is idle.
        let spent = !is_idle && !crypto_thread::is_idle().await;
        let tool = isolate.module.as_ref();
        let is_ready = match isolation {
            Isolation::Process => false,
            Isolation::Tool => matches!(result, CallResult::Ok(_)) && isolate.execute.is_some(),
            Isolation::Call => tool.is_some_and(|tool| tool.is_clean) && !was_stopped(&result),
        };
        let kept = is_ready && is_quiet && !spent;
        self.link.end();
        let is_cache_refused = isolate.main.was_cache_refused() || tool.is_some_and(|tool| tool.is_cache_refused);
        // Also if the realm could not be hardened.
        let failed = || !was_stopped(&result) && (tool.is_none() || outcome::is_refused_change(&result));
        let is_refused_change = isolation == Isolation::Call && (isolate.has_refused_change() || failed());
        let omitted_lines = isolate.omitted_lines();
        self.done(call, &CallDone { kept, spent, is_cache_refused, is_refused_change, omitted_lines, result })?;
        Ok((isolate, kept))
    }

    fn done(&self, call: u32, done: &CallDone) -> Result<(), WorkerError> {
        let bytes = if let CallResult::Ok(json) = &done.result { json.get().len() } else { 0 };
        let done = encode_large(done, bytes)?;
        Ok(self.link.send_frame(&Frame::new(Kind::Done, call, 0, done))?)
    }

    fn hello(&mut self) -> Result<(), WorkerError> {
        let hello = encode(&Hello {
            protocol: PROTOCOL_VERSION,
            engine_version: v8::VERSION_STRING.into(),
            isolates: ISOLATES,
            has_child: self.spent.is_some(),
            left_to_process: LEFT_TO_PROCESS.iter().map(|&limit| limit.into()).collect(),
            protections: std::mem::take(&mut self.protections),
        })?;
        self.link.send_frame(&Frame::new(Kind::Hello, 0, 0, hello))?;
        Ok(())
    }
}
