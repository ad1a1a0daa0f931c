//! Starts worker processes, by forking the zygote where possible and otherwise by exec. All from
//! one thread that lives as long as the sandbox: the kernel kills a worker when the thread that
//! started it (or its zygote) ends, and an async runtime's threads come and go.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use command_fds::{CommandFdExt, FdMapping};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::limits::{Cgroups, Group, ProcessLimits};
use crate::process::{Process, Started};
use crate::protocol::{SNAPSHOT_FD, SOCKET_FD};
use crate::zygote::Zygote;
use crate::{SandboxError, WorkerCommand};

/// The length of the queue of starts. Further ones wait for a place, and give it up if their call
/// is cancelled.
const LINE: usize = 64;
/// How many zygotes are tried for one worker.
const MAX_ZYGOTES: u32 = 2;

enum SpawnerCommand {
    Worker(SpawnRequest),
    /// No more workers are needed; the zygote can exit.
    Close,
}

struct SpawnRequest {
    socket: OwnedFd,
    snapshot: Option<OwnedFd>,
    started: oneshot::Sender<Result<(Process, Group), SandboxError>>,
    /// Waits for all processes include those that are still to be started.
    _counted: TaskTrackerToken,
}

pub struct Spawner {
    orders: Option<Sender<SpawnerCommand>>,
    thread: Option<JoinHandle<()>>,
    /// Tracks every process until it has exited.
    pub ends: TaskTracker,
}

impl Spawner {
    /// Must be called within an async runtime, which observes the processes' exits.
    pub fn start(command: WorkerCommand, cgroups: Arc<Cgroups>) -> Result<Self, SandboxError> {
        let (orders, line) = channel(LINE);
        let runtime = Handle::current();
        let program = command.program.clone();
        let ends = TaskTracker::new();
        let maker = SpawnerThread { command, cgroups, ends: ends.clone(), zygote: None, copying: Copying::Untried };
        let thread = Builder::new()
            .name("sandbox-spawner".into())
            .spawn(move || {
                let _entered = runtime.enter();
                maker.serve(line);
            })
            .map_err(|source| SandboxError::Start { program, source })?;
        Ok(Self { orders: Some(orders), thread: Some(thread), ends })
    }

    /// Starts one process with `socket` as its only connection, and the snapshot to read if there
    /// is one. The process is in its control groups, and so are its descendants.
    pub async fn spawn(&self, socket: OwnedFd, snapshot: Option<OwnedFd>) -> Result<(Process, Group), SandboxError> {
        let (started, wait) = oneshot::channel();
        let wanted = SpawnRequest { socket, snapshot, started, _counted: self.ends.token() };
        self.order(SpawnerCommand::Worker(wanted)).await?;
        wait.await.map_err(|_| SandboxError::Closed)?
    }

    /// Stops the zygote.
    pub async fn close(&self) {
        let _ = self.order(SpawnerCommand::Close).await;
    }

    async fn order(&self, order: SpawnerCommand) -> Result<(), SandboxError> {
        let orders = self.orders.as_ref().ok_or(SandboxError::Closed)?;
        orders.send(order).await.map_err(|_| SandboxError::Closed)
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // The thread exits when the channel closes, and the kernel kills every worker that is left.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread that starts processes.
struct SpawnerThread {
    command: WorkerCommand,
    cgroups: Arc<Cgroups>,
    ends: TaskTracker,
    zygote: Option<Zygote>,
    copying: Copying,
}

/// Whether workers can be forked from the zygote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    Untried,
    Works,
    /// The kernel or the engine refuses it.
    Fails,
}

impl SpawnerThread {
    fn serve(mut self, mut line: Receiver<SpawnerCommand>) {
        while let Some(order) = line.blocking_recv() {
            match order {
                SpawnerCommand::Worker(wanted) => {
                    let started = self.make(wanted.socket, wanted.snapshot);
                    // If the caller no longer waits, the process is dropped, and so killed.
                    let _ = wanted.started.send(started);
                }
                SpawnerCommand::Close => self.zygote = None,
            }
        }
    }

    fn make(&mut self, socket: OwnedFd, snapshot: Option<OwnedFd>) -> Result<(Process, Group), SandboxError> {
        let copy = match &snapshot {
            Some(snapshot) if ProcessLimits::sees_children() && self.copying != Copying::Fails => {
                self.copy(&socket, snapshot)?
            }
            _ => None,
        };
        let process = match copy {
            Some(copy) => copy,
            None => self.start(socket, snapshot).map_err(|source| self.failed(source))?,
        };
        let id = process.id().ok_or_else(|| self.failed(std::io::Error::other("it exited immediately")))?;
        let group = self.cgroups.admit(id).map_err(|source| self.failed(source))?;
        Ok((process, group))
    }

    fn failed(&self, source: std::io::Error) -> SandboxError {
        SandboxError::Start { program: self.command.program.clone(), source }
    }

    /// Forks a worker from the zygote, which is started if there is none. `None` if forking does
    /// not work.
    fn copy(&mut self, socket: &OwnedFd, snapshot: &OwnedFd) -> Result<Option<Process>, SandboxError> {
        self.zygote.take_if(|zygote| zygote.is_exhausted());
        // A zygote that was killed is replaced.
        let mut tries = 1;
        loop {
            let mut zygote = match self.zygote.take() {
                Some(zygote) => zygote,
                None => self.zygote(snapshot).map_err(|source| self.failed(source))?,
            };
            match zygote.copy(socket) {
                Ok((copy, stderr)) => {
                    self.zygote = Some(zygote);
                    self.copying = Copying::Works;
                    return Ok(Some(Process::new(Started::Copy(copy), Some(stderr), self.ends.clone())));
                }
                Err(error) => {
                    let words = zygote.last_words();
                    tracing::warn!(%error, words, "the zygote cannot fork a worker");
                    if self.copying == Copying::Untried {
                        tracing::warn!("sandbox workers are started by exec from now on, and each takes more memory");
                        self.copying = Copying::Fails;
                        return Ok(None);
                    }
                    if tries == MAX_ZYGOTES {
                        return Err(SandboxError::Died(words));
                    }
                    tries += 1;
                }
            }
        }
    }

    fn zygote(&self, snapshot: &OwnedFd) -> std::io::Result<Zygote> {
        let (ours, theirs) = UnixStream::pair()?;
        let command = self.program(theirs.into(), Some(snapshot.try_clone()?))?;
        Zygote::start(command, ours, self.ends.token())
    }

    fn start(&self, socket: OwnedFd, snapshot: Option<OwnedFd>) -> std::io::Result<Process> {
        let command = self.program(socket, snapshot)?;
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
        let stderr = child.stderr.take().map(|stderr| pipe::Receiver::from_owned_fd(stderr.into_owned_fd()?));
        Ok(Process::new(Started::Program(child), stderr.transpose()?, self.ends.clone()))
    }

    fn program(&self, socket: OwnedFd, snapshot: Option<OwnedFd>) -> std::io::Result<Command> {
        let mut mappings = vec![FdMapping { parent_fd: socket, child_fd: SOCKET_FD }];
        mappings.extend(snapshot.map(|snapshot| FdMapping { parent_fd: snapshot, child_fd: SNAPSHOT_FD }));
        let mut command = Command::new(&self.command.program);
        command
            .args(&self.command.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // Its error output, for when it dies.
            .stderr(Stdio::piped())
            .fd_mappings(mappings)
            .map_err(std::io::Error::other)?;
        Ok(command)
    }
}
