//! Denies system calls that ordinary programs do not need and that were used in kernel exploits or
//! jail escapes. Everything else is allowed, since any program can run.

use nix::libc;

use crate::protections::ProtectionResult;
use crate::protections::seccomp::denied::denied;
use crate::protections::seccomp::rules::{Argument, Rules, always, when};
use crate::protections::seccomp::{SeccompAction, install, refuse_other_numbers};

/// Refused with `EPERM`, as for a process without privileges, in addition to [`denied`].
#[cfg(target_arch = "x86_64")]
const REFUSED: &[i64] = &[libc::SYS_vmsplice, libc::SYS_ustat, libc::SYS_sysfs];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED: &[i64] = &[libc::SYS_vmsplice];

/// Refused with `ENOSYS`, so that libraries use an older call: a filter cannot see the arguments of
/// these.
const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Refused with `EOPNOTSUPP`, as by file systems without it, so that libraries write instead. It
/// fills a disk at once.
const UNSUPPORTED: &[i64] = &[libc::SYS_fallocate];

/// Flags of `clone` that create namespaces.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    // `CLONE_NEWTIME`, which `libc` does not define.
    0x80,
];

/// Terminal requests: `TIOCSTI`, which fakes input, `TIOCLINUX` and `TIOCSETD`.
const TERMINALS: [u32; 3] = [0x5412, 0x541C, 0x5423];

/// Socket families that ordinary programs use and that network namespaces isolate.
const NETWORKS: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The set-user-id and set-group-id bits: a file in the working folder belongs to the caller's
/// user.
const SET_ID: [u32; 2] = [0o4000, 0o2000];

/// The flags with which `open` creates a file and applies its mode: with a name, or without one
/// until `linkat` gives it one. `O_TMPFILE` is two bits; the other one is `O_DIRECTORY`, which
/// creates nothing.
const CREATING: [u32; 2] = [libc::O_CREAT.cast_unsigned(), (libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned()];

/// `is_counted`: a control group counts the memory of in-memory files.
pub fn apply(is_counted: bool) -> ProtectionResult {
    refuse_other_numbers()?;
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    install(refusals(is_counted)?, refused, SeccompAction::Allow)?;
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    install(always(UNKNOWN), unknown, SeccompAction::Allow)?;
    let unsupported = SeccompAction::Errno(libc::EOPNOTSUPP.unsigned_abs());
    install(always(UNSUPPORTED), unsupported, SeccompAction::Allow)?;
    let no_such_network = SeccompAction::Errno(libc::EAFNOSUPPORT.unsigned_abs());
    install(networks()?, no_such_network, SeccompAction::Allow)
}

fn refusals(is_counted: bool) -> Result<Rules, String> {
    let mut rules = denied();
    rules.extend(always(REFUSED));
    if !is_counted {
        rules.extend(always(&[libc::SYS_memfd_create]));
    }
    for flag in NAMESPACES.map(libc::c_int::cast_unsigned) {
        when(&mut rules, libc::SYS_clone, &[Argument::HasOf(0, flag, flag)])?;
    }
    for request in TERMINALS {
        when(&mut rules, libc::SYS_ioctl, &[Argument::Is(1, request)])?;
    }
    // Any personality except Linux's own. The query is allowed.
    when(&mut rules, libc::SYS_personality, &[Argument::IsNot(0, 0), Argument::IsNot(0, u32::MAX)])?;
    for bit in SET_ID {
        let bit_in = |argument| Argument::HasOf(argument, bit, bit);
        when(&mut rules, libc::SYS_fchmod, &[bit_in(1)])?;
        when(&mut rules, libc::SYS_fchmodat, &[bit_in(2)])?;
        when(&mut rules, SYS_FCHMODAT2, &[bit_in(2)])?;
        when(&mut rules, libc::SYS_mknodat, &[bit_in(2)])?;
        when(&mut rules, libc::SYS_mkdirat, &[bit_in(2)])?;
        for flag in CREATING {
            when(&mut rules, libc::SYS_openat, &[Argument::HasOf(2, flag, flag), bit_in(3)])?;
        }
        older_names(&mut rules, bit)?;
    }
    Ok(rules)
}

/// The same number on all architectures.
const SYS_FCHMODAT2: i64 = 452;

#[cfg(target_arch = "x86_64")]
fn older_names(rules: &mut Rules, bit: u32) -> ProtectionResult {
    let bit_in = |argument| Argument::HasOf(argument, bit, bit);
    when(rules, libc::SYS_chmod, &[bit_in(1)])?;
    when(rules, libc::SYS_mknod, &[bit_in(1)])?;
    when(rules, libc::SYS_mkdir, &[bit_in(1)])?;
    when(rules, libc::SYS_creat, &[bit_in(1)])?;
    for flag in CREATING {
        when(rules, libc::SYS_open, &[Argument::HasOf(1, flag, flag), bit_in(2)])?;
    }
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn older_names(_rules: &mut Rules, _bit: u32) -> ProtectionResult {
    Ok(())
}

/// Sockets of all other families. Some, such as those to the host of a virtual machine, have no
/// namespaces.
fn networks() -> Result<Rules, String> {
    let mut rules = Rules::new();
    let others = NETWORKS.map(|network| Argument::IsNot(0, network.cast_unsigned()));
    let routes = libc::NETLINK_ROUTE.cast_unsigned();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        when(&mut rules, call, &others)?;
        let netlink = Argument::Is(0, libc::AF_NETLINK.cast_unsigned());
        when(&mut rules, call, &[netlink, Argument::IsNot(2, routes)])?;
    }
    Ok(rules)
}
