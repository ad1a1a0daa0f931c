//! The process that runs tool code, on kernels other than Linux: it can be killed, stopped and
//! continued, and is neither limited nor measured.

use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const WHY: &str = "only on Linux";

pub struct Process(Pid);

impl Process {
    pub fn open(process: u32, _child: u32) -> io::Result<Self> {
        let pid = i32::try_from(process).ok().filter(|pid| *pid > 0).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Self(Pid::from_raw(pid)))
    }

    pub fn next(&self, _parent: u32) -> io::Result<Self> {
        Err(io::Error::other(WHY))
    }

    pub fn measure(&mut self) {}

    pub fn ceiling(&self) -> Result<(), String> {
        Err(WHY.into())
    }

    pub fn has_clock(&self) -> Result<(), String> {
        Err(WHY.into())
    }

    pub fn set_ceiling(&mut self, _bytes: u64) -> io::Result<()> {
        Ok(())
    }

    pub fn is_past_its_ceiling(&self) -> bool {
        false
    }

    pub fn has_grown_by(&self, _bytes: u64) -> bool {
        false
    }

    pub fn cpu_time(&self) -> Option<Duration> {
        None
    }

    pub fn stop(&self) -> io::Result<()> {
        Ok(kill(self.0, Signal::SIGSTOP)?)
    }

    pub fn resume(&self) -> io::Result<()> {
        Ok(kill(self.0, Signal::SIGCONT)?)
    }

    /// Does nothing: without a descriptor the id can belong to another process by now. The
    /// process that started it kills it.
    pub fn kill(&self) {}
}
