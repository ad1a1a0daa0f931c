//! Starts worker processes, all from one thread that lives as long as the sandbox: the kernel kills a worker when the
//! thread that started it ends, and an asynchronous runtime's threads come and go.

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use command_fds::{CommandFdExt, FdMapping};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::protocol::{SNAPSHOT_FD, SOCKET_FD};
use crate::{SandboxError, WorkerCommand};

/// Starts that may stand in line.
const LINE: usize = 64;

struct Order {
    socket: OwnedFd,
    snapshot: Option<OwnedFd>,
    started: oneshot::Sender<std::io::Result<Child>>,
}

pub struct Spawner {
    command: WorkerCommand,
    orders: Option<SyncSender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Spawner {
    /// Must be called within an asynchronous runtime, which watches the processes' ends.
    pub fn start(command: WorkerCommand) -> Result<Self, SandboxError> {
        let (orders, line) = sync_channel(LINE);
        let runtime = Handle::current();
        let program = command.clone();
        let thread = Builder::new()
            .name("sandbox-spawner".into())
            .spawn(move || {
                let _entered = runtime.enter();
                serve(&program, &line);
            })
            .map_err(|source| SandboxError::Start { program: command.program.clone(), source })?;
        Ok(Self { command, orders: Some(orders), thread: Some(thread) })
    }

    /// Starts one process with `socket` as its only tie, and the snapshot to read if there is one.
    pub async fn spawn(&self, socket: OwnedFd, snapshot: Option<OwnedFd>) -> Result<Child, SandboxError> {
        let (started, wait) = oneshot::channel();
        let order = Order { socket, snapshot, started };
        let orders = self.orders.as_ref().ok_or(SandboxError::Closed)?;
        orders.try_send(order).map_err(|_| SandboxError::Closed)?;
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

fn serve(command: &WorkerCommand, line: &Receiver<Order>) {
    while let Ok(order) = line.recv() {
        let started = spawn(command, order.socket, order.snapshot);
        // Nobody waits any more: the dropped child is killed.
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
