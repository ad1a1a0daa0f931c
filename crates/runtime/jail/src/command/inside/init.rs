//! The first process of the jail. It starts the program, reaps orphaned processes, checks resource
//! use, and exits when the program does. The kernel then kills every other process of the jail.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::keeper_loop::release_streams;
use super::usage::Usage;
use super::wait::{Awaited, wait_for};
use super::{Plan, tell};
use crate::command::ExitReason;
use crate::command::command_spec::Input;
use crate::command::helper_message::HelperMessage;

/// How often it checks resource use.
const LOOK: Duration = Duration::from_millis(50);

pub fn run(plan: &Plan, socket: &mut UnixStream) -> HelperMessage {
    let command = &plan.order;
    let started = Command::new(&command.program)
        .args(&command.arguments)
        .env_clear()
        .envs(&command.environment)
        .current_dir(&command.folder)
        .stdin(if plan.input == Input::Pipe { Stdio::inherit() } else { Stdio::null() })
        .process_group(0)
        .spawn();
    let program = match started {
        Ok(child) => Pid::from_raw(child.id().cast_signed()),
        Err(error) => return HelperMessage::NoProgram(format!("{}: {error}", command.program.display())),
    };
    let released = release_streams();
    let held = rustix::process::Pid::from_raw(program.as_raw()).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let (Ok(()), Some(Ok(held))) = (released, held) else {
        return HelperMessage::Refused("the helper cannot watch the program".into());
    };
    if tell(socket, &HelperMessage::Started).is_err() {
        return HelperMessage::Ended(ExitReason::OutOfTime);
    }
    HelperMessage::Ended(watch(plan, program, &held))
}

fn watch(plan: &Plan, program: Pid, held: &OwnedFd) -> ExitReason {
    let bounds = &plan.order.bounds;
    let mut usage = Usage::default();
    loop {
        if let Some(how) = collect(program) {
            return how;
        }
        match wait_for(held, super::super::SOCKET_FD, Some(LOOK)) {
            Awaited::Process => {}
            Awaited::Time => usage.look(),
            // The caller is gone.
            Awaited::Caller | Awaited::Nothing => return ExitReason::OutOfTime,
        }
        if usage.processor_time() > bounds.processor_time {
            return ExitReason::OutOfProcessorTime;
        }
        if !plan.counted.memory && usage.memory() > bounds.memory {
            return ExitReason::OutOfMemory;
        }
    }
}

/// Reaps every child that has exited. Returns how the program ended, if it has.
fn collect(program: Pid) -> Option<ExitReason> {
    let mut how = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) if pid == program => how = Some(ExitReason::Exited(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == program => {
                how = Some(ExitReason::Signalled(signal as i32));
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return how,
            Ok(_) => {}
        }
    }
}
