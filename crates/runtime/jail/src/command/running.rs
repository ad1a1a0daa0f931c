//! A running program, on the caller's side.

use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::command_spec::Input;
use super::helper_message::HelperMessage;
use super::jail::GroupLimits;
use super::{Captured, CommandLimits, CommandSpec, ExitReason, Helper, JailError, SOCKET_FD};
use crate::cgroup::{Cgroups, Group};

/// How long a helper may take to exit before it is killed. Long, because it waits for every process
/// of the jail.
const LEAVING: Duration = Duration::from_secs(20);
/// Read buffer size, in bytes.
const PIECE: usize = 64 * 1024;
/// Processes around the program: the keeper and the first process.
const AROUND: u32 = 2;

/// The result of a program, after it and all its descendants have exited.
#[derive(Debug)]
pub struct Finished {
    pub how: ExitReason,
    pub stdout: Captured,
    pub stderr: Captured,
    /// Wall time from the start of the helper until the last process exited.
    pub took: Duration,
}

/// A helper with its program. Both are killed when it is dropped.
pub struct Running {
    started: Instant,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    hold: Hold,
}

/// A running program with open pipes. It and all its descendants are killed when this is dropped.
pub struct LiveProgram {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    /// Keeps the program alive.
    pub process: LiveProcess,
}

/// The processes of a [`LiveProgram`]. They are killed when this is dropped.
pub struct LiveProcess(Hold);

impl LiveProcess {
    /// Returns how the program ended, when it has. `None`: its helper was killed.
    pub async fn ended(&mut self) -> Option<ExitReason> {
        loop {
            if let HelperMessage::Ended(reason) = next(&mut self.0.socket).await? {
                return Some(reason);
            }
        }
    }
}

/// Keeps a helper alive by its socket. When the socket closes, the helper kills the program and
/// everything in the jail.
struct Hold {
    /// `None` once it is dropped.
    parts: Option<(Child, Option<Group>)>,
    socket: Option<(Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf)>,
    ends: TaskTracker,
    _counted: TaskTrackerToken,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.socket = None;
        let Some((child, group)) = self.parts.take().filter(|(child, _)| child.id().is_some()) else { return };
        // Without a runtime the helper is killed, and the jail with it.
        let Ok(runtime) = Handle::try_current() else { return };
        self.ends.spawn_on(
            async move {
                let _ = end_of(child).await;
                drop(group);
            },
            &runtime,
        );
    }
}

/// The helper exits after everything in the jail has.
async fn end_of(mut child: Child) -> io::Result<std::process::ExitStatus> {
    match timeout(LEAVING, child.wait()).await {
        Ok(ended) => ended,
        Err(_) => {
            tracing::error!("the processes of a jail do not exit; killing its helper");
            child.start_kill()?;
            child.wait().await
        }
    }
}

#[derive(serde::Serialize)]
struct Plan<'a> {
    order: &'a CommandSpec,
    input: Input,
    counted: GroupLimits,
}

impl Running {
    pub async fn start(
        helper: &Helper,
        cgroups: &Arc<Cgroups>,
        counted: GroupLimits,
        (order, input): (&CommandSpec, Input),
        ends: &TaskTracker,
    ) -> Result<Self, JailError> {
        let started = Instant::now();
        let (ours, theirs) = StdUnixStream::pair().map_err(JailError::Start)?;
        ours.set_nonblocking(true).map_err(JailError::Start)?;
        let ours = UnixStream::from_std(ours).map_err(JailError::Start)?;
        let mut child = spawn(helper, theirs, input).map_err(JailError::Start)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (reads, writes) = ours.into_split();
        let mut hold = Hold {
            parts: Some((child, None)),
            socket: Some((BufReader::new(reads).lines(), writes)),
            ends: ends.clone(),
            _counted: ends.token(),
        };
        hold.admit(cgroups, order.bounds).await.map_err(JailError::Start)?;
        let plan =
            serde_json::to_vec(&Plan { order, input, counted }).map_err(|error| JailError::Start(error.into()))?;
        if let Some((_, socket)) = &mut hold.socket {
            let sent = timeout_at(started + order.bounds.time, send(socket, &plan)).await;
            // If the helper does not read it, its message or its exit status says why.
            if !matches!(sent, Ok(Ok(()))) {
                tracing::debug!("a jail's helper did not read its plan");
            }
        }
        Ok(Self { started, stdin, stdout, stderr, hold })
    }

    /// Waits until the program runs.
    pub async fn live(mut self, order: &CommandSpec) -> Result<LiveProgram, JailError> {
        let started = timeout_at(self.started + order.bounds.time, next(&mut self.hold.socket)).await;
        match started {
            Ok(Some(HelperMessage::Started)) => {}
            Ok(Some(HelperMessage::Refused(reason))) => return Err(JailError::Refused(reason)),
            Ok(Some(HelperMessage::NoProgram(reason))) => return Err(JailError::Program(reason)),
            Ok(_) => return Err(JailError::Broken("it exited before the program started".into())),
            Err(_) => return Err(JailError::Broken("the program did not start in time".into())),
        }
        match (self.stdin, self.stdout, self.stderr) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                let process = LiveProcess(self.hold);
                Ok(LiveProgram { stdin, stdout, stderr, process })
            }
            _ => Err(JailError::Broken("it has no pipes".into())),
        }
    }

    /// Reads the program's output until it exits, reaches a limit, or `stop` completes. Then waits
    /// until everything has exited.
    pub async fn finish<T>(
        mut self,
        order: &CommandSpec,
        stop: impl Future<Output = T>,
    ) -> Result<Result<Finished, T>, JailError> {
        let bounds = order.bounds;
        let mut stop = std::pin::pin!(stop);
        let mut stopped = None;
        let mut stdout = Stream::new(self.stdout.take(), bounds.output);
        let mut stderr = Stream::new(self.stderr.take(), bounds.output);
        let mut how = None;
        let until = self.started + bounds.time;
        let mut failure = None;
        while self.hold.socket.is_some() || stdout.is_open() || stderr.is_open() {
            tokio::select! {
                line = next(&mut self.hold.socket) => match line {
                    Some(HelperMessage::Started) => {}
                    Some(HelperMessage::Ended(reason)) => how = how.or(Some(reason)),
                    Some(other) => failure = Some(other),
                    None => self.hold.socket = None,
                },
                read = stdout.read() => read,
                read = stderr.read() => read,
                value = &mut stop, if how.is_none() && stopped.is_none() => {
                    stopped = Some(value);
                    self.hold.socket = None;
                }
                () = sleep_until(until), if how.is_none() && stopped.is_none() => {
                    how = Some(ExitReason::OutOfTime);
                    self.hold.socket = None;
                }
            }
            if how.is_none() && stopped.is_none() && stdout.total + stderr.total > bounds.flood {
                how = Some(ExitReason::TooMuchOutput);
                self.hold.socket = None;
            }
        }
        let ended = self.hold.wait().await.map_err(|error| JailError::Broken(error.to_string()))?;
        if let Some(value) = stopped {
            return Ok(Err(value));
        }
        match failure {
            Some(HelperMessage::Refused(reason)) => return Err(JailError::Refused(reason)),
            Some(HelperMessage::NoProgram(reason)) => return Err(JailError::Program(reason)),
            _ => {}
        }
        let how = match how {
            Some(ExitReason::Exited(_) | ExitReason::Signalled(_)) | None if ended.is_out_of_memory => {
                ExitReason::OutOfMemory
            }
            Some(how) => how,
            None => return Err(JailError::Broken(ended.status)),
        };
        let took = self.started.elapsed();
        Ok(Ok(Finished { how, stdout: stdout.captured, stderr: stderr.captured, took }))
    }
}

struct HelperExit {
    status: String,
    is_out_of_memory: bool,
}

impl Hold {
    /// Puts the helper, and so whatever it starts, under its limits before it gets the command.
    async fn admit(&mut self, cgroups: &Arc<Cgroups>, bounds: CommandLimits) -> io::Result<()> {
        let Some((child, group)) = &mut self.parts else { return Ok(()) };
        let id = child.id().ok_or_else(|| io::Error::other("it exited immediately"))?;
        let cgroups = cgroups.clone();
        let admitted = move || -> io::Result<Group> {
            let group = cgroups.admit(id)?;
            group.set_processes(bounds.processes + AROUND)?;
            group.set_cpu_percent(bounds.cpu_percent)?;
            group.lower_memory(bounds.memory)?;
            group.raise_memory(bounds.memory)?;
            Ok(group)
        };
        let admitted = tokio::task::spawn_blocking(admitted).await.map_err(io::Error::other)?;
        *group = Some(admitted?);
        Ok(())
    }

    async fn wait(&mut self) -> io::Result<HelperExit> {
        self.socket = None;
        let Some((child, group)) = &mut self.parts else { return Err(io::ErrorKind::NotFound.into()) };
        let status = match timeout(LEAVING, child.wait()).await {
            Ok(ended) => ended?,
            Err(_) => return Err(io::Error::other("it does not exit")),
        };
        let is_out_of_memory = group.as_ref().is_some_and(Group::was_killed_for_memory);
        Ok(HelperExit { status: status.to_string(), is_out_of_memory })
    }
}

/// The next message of the helper; `None` at the end of the stream. Never returns if the socket is
/// closed.
async fn next(socket: &mut Option<(Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf)>) -> Option<HelperMessage> {
    match socket {
        Some((lines, _)) => serde_json::from_str(&lines.next_line().await.ok()??).ok(),
        None => std::future::pending().await,
    }
}

async fn send(socket: &mut OwnedWriteHalf, plan: &[u8]) -> io::Result<()> {
    let length = u32::try_from(plan.len()).map_err(io::Error::other)?;
    socket.write_all(&length.to_le_bytes()).await?;
    socket.write_all(plan).await
}

fn spawn(helper: &Helper, socket: StdUnixStream, input: Input) -> io::Result<Child> {
    let mut process = Command::new(&helper.program);
    process
        .args(&helper.arguments)
        .env_clear()
        .current_dir("/")
        .stdin(if input == Input::Pipe { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .fd_mappings(vec![FdMapping { parent_fd: socket.into(), child_fd: SOCKET_FD }])
        .map_err(io::Error::other)?;
    process.spawn()
}

/// One output stream of the program.
struct Stream<S> {
    from: Option<S>,
    buffer: Vec<u8>,
    captured: Captured,
    total: u64,
}

impl<S: AsyncRead + Unpin> Stream<S> {
    fn new(from: Option<S>, most: usize) -> Self {
        Self { from, buffer: vec![0; PIECE], captured: Captured::at_most(most), total: 0 }
    }

    fn is_open(&self) -> bool {
        self.from.is_some()
    }

    /// Never returns after the end of the stream.
    async fn read(&mut self) {
        let Some(from) = &mut self.from else { return std::future::pending().await };
        match from.read(&mut self.buffer).await {
            Ok(length) if length > 0 => {
                self.total += length as u64;
                self.captured.add(&self.buffer[..length]);
            }
            _ => self.from = None,
        }
    }
}
