//! One worker process: start, handshake, calls, kill.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use futures::{FutureExt, SinkExt, StreamExt};
use rustix::io::ioctl_fionread;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, FramedWrite};

use crate::SandboxError;
use crate::level;
use crate::limits::ProcessLimits;
use crate::process::Process;
use crate::protocol::{
    Begin, Frame, FrameCodec, FrameError, Hello, Kind, Mode, PROTOCOL_VERSION, Protection, Ready, decode,
};
use crate::spawner::Spawner;

/// How long a process may take to be ready: a loaded machine takes its time.
pub const START: Duration = Duration::from_secs(30);
/// How long a worker may take from one isolate's process to the next.
const NEXT_CHILD: Duration = Duration::from_secs(5);
/// How long a process may take to end by itself after its socket closed.
const OWN_END: Duration = Duration::from_millis(500);
/// How long to wait for a killed process's end, which the kernel brings about.
pub const REAP: Duration = Duration::from_secs(5);
/// Frames that are read between calls without looking up.
const FRAMES_AT_ONCE: usize = 64;
/// Bytes of a dead worker's standard error that are looked at.
pub const LAST_WORDS: u64 = 2000;

pub struct Worker {
    process: Process,
    pub frames: FramedRead<OwnedReadHalf, FrameCodec>,
    pub sink: FramedWrite<OwnedWriteHalf, FrameCodec>,
    /// The number of the last call.
    calls: u32,
    /// Around the process that runs tool code, which the one that was started has below it.
    pub bounds: ProcessLimits,
    /// Fresh isolates that the process is still good for.
    isolates: u32,
    /// Heap of the next fresh isolate, in MiB: what the call before had.
    next_mb: u64,
    /// That isolate is made and waits.
    is_ready: bool,
    /// Each fresh isolate has a process of its own.
    pub has_child: bool,
    /// What its first process reported.
    walls: Vec<Protection>,
    /// The process of the last isolate was asked to end; until the next one reports, none is
    /// limited.
    is_between_children: bool,
    /// It broke the protocol between calls, or hung up: no call may meet it.
    is_broken: bool,
}

impl Worker {
    /// Starts a process and says what it is for.
    pub async fn spawn(
        spawner: &Spawner,
        mode: Mode,
        snapshot: Option<OwnedFd>,
        memory_mb: u64,
    ) -> Result<Self, SandboxError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(SandboxError::Snapshot)?;
        ours.set_nonblocking(true).map_err(SandboxError::Snapshot)?;
        let (read, write) = UnixStream::from_std(ours).map_err(SandboxError::Snapshot)?.into_split();
        let has_snapshot = snapshot.is_some();
        let (process, group) = spawner.spawn(theirs.into(), snapshot).await?;
        let mut worker = Self {
            process,
            frames: FramedRead::new(read, FrameCodec),
            sink: FramedWrite::new(write, FrameCodec),
            calls: 0,
            bounds: ProcessLimits::new(group),
            isolates: 0,
            next_mb: memory_mb,
            is_ready: false,
            has_child: false,
            walls: Vec::new(),
            is_between_children: false,
            is_broken: false,
        };
        let begin = Begin::frame(mode, has_snapshot, memory_mb);
        let sent = worker.sink.send(begin.map_err(|error| SandboxError::Protocol(error.to_string()))?).await;
        if sent.is_err() {
            return Err(SandboxError::Died(worker.last_words().await));
        }
        let frame = worker.next_while_starting().await?;
        let named = match frame.kind {
            Kind::Process => frame.named_process(),
            _ => None,
        };
        let named = named.ok_or_else(|| SandboxError::Protocol(format!("{:?} instead of the process", frame.kind)))?;
        if let Some(child) = worker.process.id() {
            worker.bounds.take_hold(named, child);
        }
        Ok(worker)
    }

    /// The next frame while the worker gets ready.
    pub async fn next_while_starting(&mut self) -> Result<Frame, SandboxError> {
        match timeout(START, self.frames.next()).await {
            Err(_) => Err(SandboxError::Slow(START.as_secs())),
            Ok(Some(Ok(frame))) => Ok(frame),
            Ok(Some(Err(FrameError::Io(_))) | None) => Err(SandboxError::Died(self.last_words().await)),
            Ok(Some(Err(error))) => Err(SandboxError::Protocol(error.to_string())),
        }
    }

    /// Waits until the worker can take a call.
    pub async fn hello(&mut self) -> Result<Hello, SandboxError> {
        let frame = self.next_while_starting().await?;
        if frame.kind != Kind::Hello {
            return Err(SandboxError::Protocol(format!("{:?} instead of Hello", frame.kind)));
        }
        let hello: Hello = decode(&frame.payload).map_err(|error| SandboxError::Protocol(error.to_string()))?;
        if hello.protocol != PROTOCOL_VERSION {
            return Err(SandboxError::Version { worker: hello.protocol, parent: PROTOCOL_VERSION });
        }
        self.isolates = hello.isolates;
        self.has_child = hello.has_child;
        self.walls.clone_from(&hello.protections);
        if self.has_child {
            self.bounds.take_child().map_err(|error| SandboxError::Protocol(error.to_string()))?;
        }
        self.is_ready = true;
        Ok(hello)
    }

    /// Whether another fresh isolate may be made in this process.
    pub fn is_worn_out(&self) -> bool {
        self.isolates == 0
    }

    /// Whether no tool's code ever came here.
    pub fn is_untouched(&self) -> bool {
        self.calls == 0
    }

    /// Whether the next process was asked for a while ago and is not there.
    pub fn is_overdue(&mut self, since: Instant) -> bool {
        since.elapsed() > NEXT_CHILD && self.is_between_children()
    }

    /// Whether the process of the last isolate is to end and the next one is not there, as far as
    /// the worker has reported.
    fn is_between_children(&mut self) -> bool {
        self.listen();
        self.is_between_children
    }

    /// Whether a fresh isolate is ready here, as far as the worker has reported.
    pub fn is_ready(&mut self) -> bool {
        self.listen();
        self.is_ready
    }

    /// Reads what the worker has reported since its last call.
    fn listen(&mut self) {
        if self.is_broken {
            return;
        }
        for _ in 0..FRAMES_AT_ONCE {
            match self.frames.next().now_or_never() {
                Some(Some(Ok(Frame { kind: Kind::Ready, payload, .. }))) => self.welcome(&payload),
                // What a call let go of arrives late.
                Some(Some(Ok(_))) => {}
                Some(Some(Err(_)) | None) => {
                    self.is_broken = true;
                    self.is_ready = false;
                    break;
                }
                None => break,
            }
        }
    }

    /// The next isolate is there. Where it has a process of its own, that one is held from now on.
    fn welcome(&mut self, ready: &[u8]) {
        if !self.has_child {
            self.is_ready = true;
            return;
        }
        match self.take_child(ready) {
            Ok(()) => (self.is_ready, self.is_between_children) = (true, false),
            Err(reason) => {
                let process = self.process.id();
                tracing::warn!(%reason, process, "a sandbox worker has no good process for its next isolate");
                self.is_broken = true;
            }
        }
    }

    /// Who had the last process in its hands, and whatever it left on the socket, must not speak for the next one, nor to it.
    fn take_child(&mut self, ready: &[u8]) -> Result<(), String> {
        if !self.is_between_children {
            return Err("nobody asked for one".into());
        }
        self.bounds.take_child().map_err(|error| error.to_string())?;
        // From here on the last one has ended, so that all that it said is here. The new one says nothing before a call.
        let socket: &UnixStream = self.frames.get_ref().as_ref();
        let is_silent = self.frames.read_buffer().is_empty() && ioctl_fionread(socket).is_ok_and(|bytes| bytes == 0);
        if !is_silent {
            return Err("more was said than that it is there".into());
        }
        let Ready { mark, protections } = decode(ready).map_err(|error| error.to_string())?;
        let lost = level::lost(&self.walls, &protections);
        if !lost.is_empty() {
            return Err(format!("walls do not stand any more: {}", lost.join("; ")));
        }
        // Behind all that was for the last one, and before all that is for this one.
        self.sink.write_buffer_mut().extend_from_slice(mark.bytes());
        Ok(())
    }

    /// Waits until a process is there that had no call yet, where each isolate has its own.
    pub async fn next_child(&mut self) -> Result<(), SandboxError> {
        timeout(NEXT_CHILD, self.born()).await.unwrap_or(Err(SandboxError::Slow(NEXT_CHILD.as_secs())))
    }

    async fn born(&mut self) -> Result<(), SandboxError> {
        self.listen();
        if !self.has_child || self.is_ready {
            return Ok(());
        }
        self.is_between_children = true;
        // The second one says that there is a call. One that comes when the process has ended is never read.
        for _ in 0..2 {
            let _ = self.sink.feed(Frame::new(Kind::Spent, 0, 0, Vec::new())).await;
        }
        let _ = self.sink.flush().await;
        while self.is_between_children {
            // What a call let go of arrives late.
            let frame = self.next_while_starting().await?;
            if frame.kind == Kind::Ready {
                self.welcome(&frame.payload);
            }
            if self.is_broken {
                return Err(SandboxError::Protocol("the process of the next isolate is not a new one".into()));
            }
        }
        Ok(())
    }

    /// The isolate of the last call is not wanted again.
    pub async fn spend(&mut self) -> Result<(), FrameError> {
        if self.has_child {
            self.is_between_children = true;
            self.sink.send(Frame::new(Kind::Spent, 0, 0, Vec::new())).await?;
        }
        Ok(())
    }

    /// Whether a fresh isolate waits here that can have so many MiB.
    pub fn is_ready_for(&mut self, memory_mb: u64) -> bool {
        (self.has_child || self.next_mb == memory_mb) && self.is_ready()
    }

    /// The number of a new call with so many MiB, which may run in a kept isolate or a fresh one.
    pub fn next_call(&mut self, is_fresh: bool, memory_mb: u64) -> u32 {
        self.isolates = self.isolates.saturating_sub(u32::from(is_fresh));
        self.next_mb = memory_mb;
        self.is_ready = false;
        self.calls = self.calls.wrapping_add(1).max(1);
        self.calls
    }

    /// Whether a call may have it, as far as can be seen without waiting.
    pub fn is_alive(&mut self) -> bool {
        // The stream reports a breach once and continues: a caller that checks only the process
        // would never see it.
        self.listen();
        !self.is_broken && self.process.is_alive()
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Kills the process and waits for its end. `None` when its end cannot be seen.
    pub async fn kill(mut self) -> Option<Death> {
        self.bounds.kill();
        self.process.start_kill();
        self.death().await
    }

    /// The end of a process whose socket closed. One that closed its socket and lives on is killed.
    pub async fn death(&mut self) -> Option<Death> {
        let status = match timeout(OWN_END, self.process.wait()).await {
            Ok(ended) => ended.ok()?,
            Err(_) => {
                self.bounds.kill();
                self.process.start_kill();
                timeout(REAP, self.process.wait()).await.ok()?.ok()?
            }
        };
        let is_memory_kill = self.bounds.was_killed_for_memory();
        Some(Death { status, is_memory_kill, words: self.last_words().await })
    }

    /// What the process wrote before it died, on one line.
    async fn last_words(&mut self) -> String {
        let Some(stderr) = self.process.take_stderr() else { return String::new() };
        let mut words = Vec::new();
        let _ = timeout(REAP, stderr.take(LAST_WORDS).read_to_end(&mut words)).await;
        on_one_line(&words)
    }
}

/// Last words as they are told.
pub fn on_one_line(words: &[u8]) -> String {
    String::from_utf8_lossy(words).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How a process ended.
#[derive(Debug)]
pub struct Death {
    pub status: ExitStatus,
    /// The kernel did it, for the memory of the process's control group.
    pub is_memory_kill: bool,
    pub words: String,
}

impl Death {
    /// The signal that ended it, or its child: who outlives its child tells of that as a shell does.
    fn signal(&self) -> Option<i32> {
        self.status.signal().or_else(|| self.status.code().map(|code| code - 128).filter(|signal| *signal > 0))
    }

    /// Somebody else killed it.
    pub fn is_killed(&self) -> bool {
        self.signal() == Some(nix::libc::SIGKILL)
    }

    /// The kernel killed it for a system call that its filter forbids.
    pub fn is_forbidden_call(&self) -> bool {
        self.signal() == Some(nix::libc::SIGSYS)
    }

    /// The kernel kills for it; the engine and the allocator abort when memory ends.
    pub fn is_out_of_memory(&self) -> bool {
        use nix::libc::{SIGABRT, SIGILL, SIGTRAP};
        self.is_memory_kill
            || self.signal().is_some_and(|signal| [SIGABRT, SIGTRAP, SIGILL].contains(&signal))
            || self.words.contains("out of memory")
    }
}
