//! The helper: what runs between its start by exec and the start of the program. The restrictions
//! are applied in an order in which none blocks the next, and each of them is required.

mod identity;
mod init;
mod isolation;
mod jail_root;
mod keeper_loop;
mod landlock_rules;
mod loopback;
mod mounts;
mod syscall_filter;
mod usage;
mod wait;

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use serde::Deserialize;

use super::CommandSpec;
use super::command_spec::Input;
use super::helper_message::HelperMessage;
use super::jail::GroupLimits;
use crate::protections::{keeper, privileges, process};
use identity::Identity;
use jail_root::JailRoot;

/// The largest plan, in bytes.
const LONGEST: u32 = 16 * 1024 * 1024;

/// What the caller sends.
#[derive(Deserialize)]
struct Plan {
    order: CommandSpec,
    input: Input,
    counted: GroupLimits,
}

/// Runs the helper. `socket` is the descriptor number of the socket to its caller.
pub fn run(socket: i32) -> ExitCode {
    // A separate session: Ctrl-C at the caller's terminal must not reach the jail.
    let _ = nix::unistd::setsid();
    // SAFETY: the caller hands over this descriptor by exec, and nothing else in this process knows
    // its number.
    #[allow(unsafe_code)]
    let mut socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(socket) });
    let message = match prepare(&mut socket) {
        // Only the first process of the jail gets here; the keeper does not return.
        Ok(plan) => init::run(&plan, &mut socket),
        Err(reason) => HelperMessage::Refused(reason),
    };
    let _ = tell(&mut socket, &message);
    keeper::leave(0)
}

fn tell(socket: &mut UnixStream, message: &HelperMessage) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Returns in the first process of the jail, when all protections are in force. If one is missing,
/// it returns the reason in the process that found it.
fn prepare(socket: &mut UnixStream) -> Result<Plan, String> {
    let named = |protection: &'static str| move |reason: String| format!("{protection}: {reason}");
    process::close_descriptors_from(super::SOCKET_FD + 1).map_err(named("no inherited descriptors"))?;
    fcntl(&*socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|error| format!("socket: {error}"))?;
    let plan = read_plan(socket).map_err(|error| format!("plan: {error}"))?;
    let Plan { order, counted, .. } = &plan;
    // If the machine runs out of memory, processes of a jail are killed first. This is optional.
    let _ = process::raise_oom_score();
    let _ = process::lower_priority();
    privileges::forbid_new().map_err(named("no new privileges"))?;
    // Opened while this machine's files are visible.
    let processes = File::open("/proc").map_err(|error| format!("/proc: {error}"))?;
    let identity = Identity::choose();
    // The superuser opens its folders before it drops privileges with the namespaces; an ordinary
    // user gets the privileges in its namespace.
    let (identity, taken) = identity.with_permissions(&order.view, counted.processes)?;
    identity.may_be_bounded(counted.processes)?;
    let network = isolation::unshare(identity, order.network)?;
    let binds = match taken {
        Some(binds) => binds,
        None => mounts::Binds::take(&order.view, identity).map_err(named("files"))?,
    };
    let death = keeper::fork(|_| true, |child| keeper_loop::keep(child, super::SOCKET_FD))
        .map_err(|error| format!("process namespace: {error}"))?;
    death.map_err(named("parent death signal"))?;
    if network {
        loopback::up().map_err(named("network namespace"))?;
    }
    let jail_root = JailRoot::build(order, &binds)?;
    jail_root.enter().map_err(named("files"))?;
    identity.switch_to(&processes).map_err(named("ordinary user"))?;
    drop(processes);
    // A change of user resets this and the dumpable flag.
    process::die_with_parent().map_err(named("parent death signal"))?;
    isolation::limit(&order.bounds).map_err(named("resource limits"))?;
    privileges::drop_capabilities().map_err(named("no capabilities"))?;
    process::forbid_core_dumps().map_err(named("no core dumps"))?;
    // Optional: not every kernel has it, and files outside of the jail are not visible anyway.
    if let Err(reason) = landlock_rules::restrict(&order.view) {
        tracing::debug!(reason, "the jail runs without Landlock");
    }
    syscall_filter::apply(counted.memory).map_err(named("seccomp"))?;
    Ok(plan)
}

fn read_plan(socket: &mut UnixStream) -> io::Result<Plan> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too large"));
    }
    let mut plan = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    socket.read_exact(&mut plan)?;
    Ok(serde_json::from_slice(&plan)?)
}
