//! The first process of the jail: starts the program, collects whatever is left to it, looks after what they use, and
//! ends when the program does. The kernel then ends every other process of the jail.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::keeping::release_streams;
use super::usage::Usage;
use super::watching::{Awaited, wait_for};
use super::{Ready, tell};
use crate::command::How;
use crate::command::told::Told;

/// How often it looks at what is used.
const LOOK: Duration = Duration::from_millis(50);

pub fn run(ready: &Ready, socket: &mut UnixStream) -> Told {
    let order = &ready.order;
    let started = Command::new(&order.program)
        .args(&order.arguments)
        .env_clear()
        .envs(&order.environment)
        .current_dir(&order.folder)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn();
    let program = match started {
        Ok(child) => Pid::from_raw(child.id().cast_signed()),
        Err(error) => return Told::NoProgram(format!("{}: {error}", order.program.display())),
    };
    let released = release_streams();
    let held = rustix::process::Pid::from_raw(program.as_raw()).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let (Ok(()), Some(Ok(held))) = (released, held) else {
        return Told::Refused("the program cannot be watched".into());
    };
    if tell(socket, &Told::Started).is_err() {
        return Told::Ended(How::OutOfTime);
    }
    Told::Ended(watch(ready, program, &held))
}

fn watch(ready: &Ready, program: Pid, held: &OwnedFd) -> How {
    let bounds = &ready.order.bounds;
    let mut usage = Usage::default();
    loop {
        if let Some(how) = collect(program) {
            return how;
        }
        match wait_for(held, super::super::SOCKET_FD, Some(LOOK)) {
            Awaited::Process => {}
            Awaited::Time => usage.look(),
            // Nobody is there any more to be told.
            Awaited::Caller | Awaited::Nothing => return How::OutOfTime,
        }
        if usage.processor_time() > bounds.processor_time {
            return How::OutOfProcessorTime;
        }
        if !ready.counted.memory && usage.memory() > bounds.memory {
            return How::OutOfMemory;
        }
    }
}

/// Collects every process that has ended and belongs to nobody else; gives how the program ended, if it has.
fn collect(program: Pid) -> Option<How> {
    let mut how = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => how = Some(How::Exited(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => how = Some(How::Signalled(signal as i32)),
            Ok(WaitStatus::StillAlive) | Err(_) => return how,
            Ok(_) => {}
        }
    }
}
