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

/// How long a process may take to become ready; generous, for a loaded machine.
pub const START: Duration = Duration::from_secs(30);
/// How long a worker may take from one isolate's process to the next.
const NEXT_CHILD: Duration = Duration::from_secs(5);
/// How long a process may take to exit by itself after its socket closed.
const OWN_END: Duration = Duration::from_millis(500);
/// How long to wait for the exit of a killed process.
pub const REAP: Duration = Duration::from_secs(5);
/// How many frames are read at once between calls.
const FRAMES_AT_ONCE: usize = 64;
/// How much of a dead worker's standard error is read, in bytes.
pub const STDERR_TAIL: u64 = 2000;

pub struct Worker {
    process: Process,
    pub frames: FramedRead<OwnedReadHalf, FrameCodec>,
    pub sink: FramedWrite<OwnedWriteHalf, FrameCodec>,
    /// The number of the last call.
    calls: u32,
    /// The limits of the process that runs tool code, a descendant of the one that was started.
    pub bounds: ProcessLimits,
    /// How many fresh isolates the process can still create.
    isolates: u32,
    /// Heap limit of the next fresh isolate, in MiB: what the call before had.
    next_mb: u64,
    /// That isolate is ready.
    is_ready: bool,
    /// Each fresh isolate has its own process.
    pub has_child: bool,
    /// The protections that its first process reported.
    protections: Vec<Protection>,
    /// The process of the last isolate was asked to exit; until the next one reports, no limits
    /// apply to any.
    is_between_children: bool,
    /// It broke the protocol between calls or closed the socket: it must not get a call.
    is_broken: bool,
}

impl Worker {
    /// Starts a process and sends its mode.
    pub async fn spawn(
        spawner: &Spawner,
        mode: Mode,
        snapshot: Option<OwnedFd>,
        memory_mb: u64,
    ) -> Result<Self, SandboxError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(SandboxError::Socket)?;
        ours.set_nonblocking(true).map_err(SandboxError::Socket)?;
        let (read, write) = UnixStream::from_std(ours).map_err(SandboxError::Socket)?.into_split();
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
            protections: Vec::new(),
            is_between_children: false,
            is_broken: false,
        };
        let begin = Begin::frame(mode, has_snapshot, memory_mb);
        let sent = worker.sink.send(begin.map_err(|error| SandboxError::Protocol(error.to_string()))?).await;
        if sent.is_err() {
            return Err(SandboxError::Died(worker.last_output().await));
        }
        let frame = worker.next_while_starting().await?;
        let named = match frame.kind {
            Kind::Process => frame.named_process(),
            _ => None,
        };
        let named = named.ok_or_else(|| SandboxError::Protocol(format!("{:?} instead of the process", frame.kind)))?;
        if let Some(child) = worker.process.id() {
            worker.bounds.attach(named, child);
        }
        Ok(worker)
    }

    /// The next frame while the worker gets ready.
    pub async fn next_while_starting(&mut self) -> Result<Frame, SandboxError> {
        match timeout(START, self.frames.next()).await {
            Err(_) => Err(SandboxError::Slow(START.as_secs())),
            Ok(Some(Ok(frame))) => Ok(frame),
            Ok(Some(Err(FrameError::Io(_))) | None) => Err(SandboxError::Died(self.last_output().await)),
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
        self.protections.clone_from(&hello.protections);
        if self.has_child {
            self.bounds.take_child().map_err(|error| SandboxError::Protocol(error.to_string()))?;
        }
        self.is_ready = true;
        Ok(hello)
    }

    /// Whether the process cannot create another fresh isolate.
    pub fn is_exhausted(&self) -> bool {
        self.isolates == 0
    }

    /// Whether it never ran tool code.
    pub fn is_untouched(&self) -> bool {
        self.calls == 0
    }

    /// Whether the next process was requested a while ago and is not ready.
    pub fn is_overdue(&mut self, since: Instant) -> bool {
        since.elapsed() > NEXT_CHILD && self.is_between_children()
    }

    /// Whether the process of the last isolate was asked to exit and the next one is not ready, as
    /// far as the worker has reported.
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
                Some(Some(Ok(Frame { kind: Kind::Ready, payload, .. }))) => self.set_ready(&payload),
                // A late frame of something that the call dropped.
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

    /// Handles `Ready`: the next isolate is ready. If it has its own process, that process is
    /// opened.
    fn set_ready(&mut self, ready: &[u8]) {
        if !self.has_child {
            self.is_ready = true;
            return;
        }
        match self.take_child(ready) {
            Ok(()) => (self.is_ready, self.is_between_children) = (true, false),
            Err(reason) => {
                let process = self.process.id();
                tracing::warn!(%reason, process, "a sandbox worker has no valid process for its next isolate");
                self.is_broken = true;
            }
        }
    }

    /// Switches to the next process. An attacker in the last process, or data that it left on the
    /// socket, must not be able to send frames for the next one, or to it.
    fn take_child(&mut self, ready: &[u8]) -> Result<(), String> {
        if !self.is_between_children {
            return Err("no new process was requested".into());
        }
        self.bounds.take_child().map_err(|error| error.to_string())?;
        // The last process has exited now, so everything that it sent has arrived. The new one
        // sends nothing before a call.
        let socket: &UnixStream = self.frames.get_ref().as_ref();
        let is_flushed = self.frames.read_buffer().is_empty() && ioctl_fionread(socket).is_ok_and(|bytes| bytes == 0);
        if !is_flushed {
            return Err("it sent data before its first call".into());
        }
        let Ready { mark, protections } = decode(ready).map_err(|error| error.to_string())?;
        let lost = level::lost(&self.protections, &protections);
        if !lost.is_empty() {
            return Err(format!("protections are not in force any more: {}", lost.join("; ")));
        }
        // After everything for the last process, and before everything for this one.
        self.sink.write_buffer_mut().extend_from_slice(mark.bytes());
        Ok(())
    }

    /// Waits for a process that has not run a call, if each isolate has its own.
    pub async fn next_child(&mut self) -> Result<(), SandboxError> {
        timeout(NEXT_CHILD, self.wait_for_child()).await.unwrap_or(Err(SandboxError::Slow(NEXT_CHILD.as_secs())))
    }

    async fn wait_for_child(&mut self) -> Result<(), SandboxError> {
        self.listen();
        if !self.has_child || self.is_ready {
            return Ok(());
        }
        self.is_between_children = true;
        // The second one says that a call is waiting. If it arrives after the process has exited,
        // it is never read.
        for _ in 0..2 {
            let _ = self.sink.feed(Frame::new(Kind::Spent, 0, 0, Vec::new())).await;
        }
        let _ = self.sink.flush().await;
        while self.is_between_children {
            // A late frame of something that the call dropped.
            let frame = self.next_while_starting().await?;
            if frame.kind == Kind::Ready {
                self.set_ready(&frame.payload);
            }
            if self.is_broken {
                return Err(SandboxError::Protocol("the process of the next isolate is not a new one".into()));
            }
        }
        Ok(())
    }

    /// Tells the worker that the isolate of the last call is not needed any more.
    pub async fn spend(&mut self) -> Result<(), FrameError> {
        if self.has_child {
            self.is_between_children = true;
            self.sink.send(Frame::new(Kind::Spent, 0, 0, Vec::new())).await?;
        }
        Ok(())
    }

    /// Whether a fresh isolate is ready that can have this many MiB.
    pub fn is_ready_for(&mut self, memory_mb: u64) -> bool {
        (self.has_child || self.next_mb == memory_mb) && self.is_ready()
    }

    /// The number of a new call with this much memory, in a kept or a fresh isolate.
    pub fn next_call(&mut self, is_fresh: bool, memory_mb: u64) -> u32 {
        self.isolates = self.isolates.saturating_sub(u32::from(is_fresh));
        self.next_mb = memory_mb;
        self.is_ready = false;
        self.calls = self.calls.wrapping_add(1).max(1);
        self.calls
    }

    /// Whether it can take a call, as far as is known without waiting.
    pub fn is_alive(&mut self) -> bool {
        // The stream reports a breach once and continues: a caller that checks only the process
        // would never see it.
        self.listen();
        !self.is_broken && self.process.is_alive()
    }

    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Kills the process and waits for its exit. `None` if the exit is not observed.
    pub async fn kill(mut self) -> Option<Death> {
        self.bounds.kill();
        self.process.start_kill();
        self.death().await
    }

    /// Waits for the exit of a process whose socket closed, and kills it if it does not exit.
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
        Some(Death { status, is_memory_kill, output: self.last_output().await })
    }

    /// The process's error output, on one line.
    async fn last_output(&mut self) -> String {
        let Some(stderr) = self.process.take_stderr() else { return String::new() };
        let mut output = Vec::new();
        let _ = timeout(REAP, stderr.take(STDERR_TAIL).read_to_end(&mut output)).await;
        on_one_line(&output)
    }
}

/// Formats error output for a log line.
pub fn on_one_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How a process ended.
#[derive(Debug)]
pub struct Death {
    pub status: ExitStatus,
    /// The kernel killed it because its control group reached the memory limit.
    pub is_memory_kill: bool,
    pub output: String,
}

impl Death {
    /// The signal that killed it, or its child: a process that outlives its child exits with the
    /// code that a shell would use.
    fn signal(&self) -> Option<i32> {
        self.status.signal().or_else(|| self.status.code().map(|code| code - 128).filter(|signal| *signal > 0))
    }

    /// It was killed from outside.
    pub fn is_killed(&self) -> bool {
        self.signal() == Some(nix::libc::SIGKILL)
    }

    /// The kernel killed it for a system call that its filter forbids.
    pub fn is_forbidden_call(&self) -> bool {
        self.signal() == Some(nix::libc::SIGSYS)
    }

    /// The kernel kills for it; the engine and the allocator abort when memory runs out.
    pub fn is_out_of_memory(&self) -> bool {
        use nix::libc::{SIGABRT, SIGILL, SIGTRAP};
        self.is_memory_kill
            || self.signal().is_some_and(|signal| [SIGABRT, SIGTRAP, SIGILL].contains(&signal))
            || self.output.contains("out of memory")
    }
}
