//! On kernels other than Linux workers are not forked from a zygote, so none of these ever exists.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitStatus};

use tokio::io;
use tokio::net::unix::pipe::Receiver;
use tokio_util::task::task_tracker::TaskTrackerToken;

pub struct CopiedProcess(Infallible);

impl CopiedProcess {
    pub fn id(&self) -> Option<u32> {
        match self.0 {}
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self.0 {}
    }

    #[allow(clippy::unused_async)]
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self.0 {}
    }

    pub fn kill(&self) {
        match self.0 {}
    }
}

pub struct Zygote(Infallible);

impl Zygote {
    pub fn start(_command: Command, _ours: UnixStream, _counted: TaskTrackerToken) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn is_exhausted(&self) -> bool {
        match self.0 {}
    }

    pub fn copy(&mut self, _socket: &OwnedFd) -> io::Result<(CopiedProcess, Receiver)> {
        match self.0 {}
    }

    pub fn last_words(self) -> String {
        match self.0 {}
    }
}
