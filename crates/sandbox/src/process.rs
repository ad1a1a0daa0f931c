//! A worker's process: killed when nobody holds it any more, and waited for even then.

use std::process::ExitStatus;

use tokio::io;
use tokio::process::{Child, ChildStderr};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

pub struct Process {
    /// Until it is dropped.
    child: Option<Child>,
    ends: TaskTracker,
    /// Counts until the end was seen.
    _running: TaskTrackerToken,
}

impl Process {
    /// Takes over a child that is killed on drop. It is counted in `ends` until it has ended.
    pub fn new(child: Child, ends: TaskTracker) -> Self {
        let running = ends.token();
        Self { child: Some(child), ends, _running: running }
    }

    /// `None` when its end was seen.
    pub fn id(&self) -> Option<u32> {
        self.child.as_ref()?.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    pub fn start_kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.start_kill();
        }
    }

    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.as_mut()?.stderr.take()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take().filter(|child| child.id().is_some()) else { return };
        // Without a runtime the child is killed all the same, and nobody is left to wait.
        let Ok(runtime) = Handle::try_current() else { return };
        let _ = child.start_kill();
        self.ends.spawn_on(
            async move {
                let _ = child.wait().await;
            },
            &runtime,
        );
    }
}
