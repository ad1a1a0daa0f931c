//! Starts worker processes, all from one thread that lives as long as the sandbox: the kernel kills a worker when the
//! thread that started it ends, and an asynchronous runtime's threads come and go.

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use command_fds::{CommandFdExt, FdMapping};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::limits::{Cgroups, Group};
use crate::process::Process;
use crate::protocol::{SNAPSHOT_FD, SOCKET_FD};
use crate::{SandboxError, WorkerCommand};

/// Starts that stand in line; who comes later waits for a place, and leaves it to others when its call is cancelled.
const LINE: usize = 64;

struct Order {
    socket: OwnedFd,
    snapshot: Option<OwnedFd>,
    started: oneshot::Sender<std::io::Result<(Process, Group)>>,
    /// Whoever waits for all processes waits for those that are still to be started.
    _counted: TaskTrackerToken,
}

pub struct Spawner {
    command: WorkerCommand,
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    /// Every process until it has ended.
    pub ends: TaskTracker,
}

impl Spawner {
    /// Must be called within an asynchronous runtime, which watches the processes' ends.
    pub fn start(command: WorkerCommand, cgroups: Arc<Cgroups>) -> Result<Self, SandboxError> {
        let (orders, line) = channel(LINE);
        let runtime = Handle::current();
        let program = command.clone();
        let ends = TaskTracker::new();
        let of_thread = ends.clone();
        let thread = Builder::new()
            .name("sandbox-spawner".into())
            .spawn(move || {
                let _entered = runtime.enter();
                serve(&program, &cgroups, line, &of_thread);
            })
            .map_err(|source| SandboxError::Start { program: command.program.clone(), source })?;
        Ok(Self { command, orders: Some(orders), thread: Some(thread), ends })
    }

    /// Starts one process with `socket` as its only tie, and the snapshot to read if there is one. It stands in its
    /// control groups, and so does whatever it starts.
    pub async fn spawn(&self, socket: OwnedFd, snapshot: Option<OwnedFd>) -> Result<(Process, Group), SandboxError> {
        let (started, wait) = oneshot::channel();
        let order = Order { socket, snapshot, started, _counted: self.ends.token() };
        let orders = self.orders.as_ref().ok_or(SandboxError::Closed)?;
        orders.send(order).await.map_err(|_| SandboxError::Closed)?;
        wait.await
            .map_err(|_| SandboxError::Closed)?
            .map_err(|source| SandboxError::Start { program: self.command.program.clone(), source })
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // Without orders the thread ends, and the kernel ends every worker that is left.
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(command: &WorkerCommand, cgroups: &Cgroups, mut line: Receiver<Order>, ends: &TaskTracker) {
    while let Some(order) = line.blocking_recv() {
        let started = spawn(command, order.socket, order.snapshot).and_then(|child| {
            let process = Process::new(child, ends.clone());
            let id = process.id().ok_or_else(|| std::io::Error::other("it ended at once"))?;
            let group = cgroups.admit(id)?;
            Ok((process, group))
        });
        // Where nobody waits any more, the process is dropped, and so killed.
        let _ = order.started.send(started);
    }
}

fn spawn(command: &WorkerCommand, socket: OwnedFd, snapshot: Option<OwnedFd>) -> std::io::Result<Child> {
    let mut mappings = vec![FdMapping { parent_fd: socket, child_fd: SOCKET_FD }];
    mappings.extend(snapshot.map(|snapshot| FdMapping { parent_fd: snapshot, child_fd: SNAPSHOT_FD }));
    let mut process = Command::new(&command.program);
    process
        .args(&command.args)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Its last words, when it dies.
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .fd_mappings(mappings)
        .map_err(std::io::Error::other)?;
    process.spawn()
}
