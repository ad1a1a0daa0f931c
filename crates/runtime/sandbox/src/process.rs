//! A worker's process. It is killed when its last handle is dropped, and reaped even then.

use std::process::ExitStatus;

use tokio::io;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::zygote::CopiedProcess;

/// A child of this program that is killed when it is dropped.
pub enum Started {
    /// By exec.
    Program(Child),
    /// Forked from the zygote.
    Copy(CopiedProcess),
}

impl Started {
    /// `None` when its end was seen.
    fn id(&self) -> Option<u32> {
        match self {
            Self::Program(child) => child.id(),
            Self::Copy(copy) => copy.id(),
        }
    }

    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Program(child) => child.try_wait(),
            Self::Copy(copy) => copy.try_wait(),
        }
    }

    fn start_kill(&mut self) {
        match self {
            Self::Program(child) => drop(child.start_kill()),
            Self::Copy(copy) => copy.kill(),
        }
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Program(child) => child.wait().await,
            Self::Copy(copy) => copy.wait().await,
        }
    }
}

pub struct Process {
    /// `None` once it is dropped.
    started: Option<Started>,
    /// Its standard error, until it is taken.
    stderr: Option<Receiver>,
    ends: TaskTracker,
    /// Counts the process until its exit is observed.
    _running: TaskTrackerToken,
}

impl Process {
    /// `ends` tracks the process until it has exited.
    pub fn new(started: Started, stderr: Option<Receiver>, ends: TaskTracker) -> Self {
        let running = ends.token();
        Self { started: Some(started), stderr, ends, _running: running }
    }

    /// `None` when its end was seen.
    pub fn id(&self) -> Option<u32> {
        self.started.as_ref()?.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.started.as_mut().is_some_and(|started| matches!(started.try_wait(), Ok(None)))
    }

    pub fn start_kill(&mut self) {
        if let Some(started) = &mut self.started {
            started.start_kill();
        }
    }

    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.started {
            Some(started) => started.wait().await,
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn take_stderr(&mut self) -> Option<Receiver> {
        self.stderr.take()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut started) = self.started.take().filter(|started| started.id().is_some()) else { return };
        // Without a runtime the child is still killed, but not reaped.
        let Ok(runtime) = Handle::try_current() else { return };
        started.start_kill();
        self.ends.spawn_on(
            async move {
                let _ = started.wait().await;
            },
            &runtime,
        );
    }
}
