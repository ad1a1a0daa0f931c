//! A child process of this program that the zygote forked for it.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use tokio::io;
use tokio::io::unix::AsyncFd;

/// Killed when it is dropped. Its id is not reused before its exit is observed.
pub struct CopiedProcess {
    pid: Pid,
    /// Readable when it has ended.
    descriptor: AsyncFd<OwnedFd>,
    status: Option<ExitStatus>,
}

impl CopiedProcess {
    /// Takes ownership of the child `pid`; call it within an async runtime. A process that is not a
    /// child of this program is an error and is not affected.
    pub fn take(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        // Before the exit can be observed: afterwards the id is free.
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        let status = ended(pid)?;
        // SAFETY: the descriptor is owned by what it is handed to, and stays open as long as that.
        #[allow(unsafe_code)]
        let descriptor = unsafe { AsyncFd::register(descriptor) }?;
        Ok(Self { pid, descriptor, status })
    }

    /// `None` when its end was seen.
    pub fn id(&self) -> Option<u32> {
        self.status.is_none().then(|| self.pid.as_raw_nonzero().get().unsigned_abs())
    }

    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = ended(self.pid)?;
        }
        Ok(self.status)
    }

    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            self.descriptor.readable().await?.clear_ready();
        }
    }

    pub fn kill(&self) {
        if self.status.is_none() {
            let _ = pidfd_send_signal(self.descriptor.get_ref(), Signal::KILL);
        }
    }
}

impl Drop for CopiedProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ended(pid: Pid) -> io::Result<Option<ExitStatus>> {
    let ended = waitpid(Some(pid), WaitOptions::NOHANG)?;
    Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
}
