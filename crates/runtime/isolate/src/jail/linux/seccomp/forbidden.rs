//! System calls that the engine and its libraries never make. A process that makes one has been
//! taken over and is killed. Each of them would be refused even if it were not listed here.

use nix::libc;
use rcrt_jail::protections::seccomp::denied::denied;
use rcrt_jail::protections::seccomp::rules::{Argument, Rules, always, when};

/// In addition to [`denied`].
const ALWAYS: &[i64] = &[
    // The network.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Passing descriptors between processes.
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_memfd_create,
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_process_mrelease,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_mq_open,
    // Devices.
    libc::SYS_mknodat,
    // Parts of the kernel that were exploited before, and that the worker does not need.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_personality,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    // The machine itself.
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    // Changes of privileges.
    libc::SYS_seccomp,
    libc::SYS_capset,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
];

/// Calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const HERE: &[i64] = &[libc::SYS_fork, libc::SYS_vfork, libc::SYS_setrlimit, libc::SYS_mknod];
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[i64] = &[];

pub fn rules() -> Result<Rules, String> {
    let mut rules = denied();
    rules.extend(always(ALWAYS));
    rules.extend(always(HERE));
    // A new process rather than a thread.
    when(&mut rules, libc::SYS_clone, &[Argument::HasOf(0, libc::CLONE_THREAD.unsigned_abs(), 0)])?;
    // Setting a limit, or reading another process's.
    when(&mut rules, libc::SYS_prlimit64, &[Argument::IsNotWide(2, 0)])?;
    when(&mut rules, libc::SYS_prlimit64, &[Argument::IsNot(0, 0)])?;
    when(&mut rules, libc::SYS_tgkill, &[Argument::IsNot(0, std::process::id())])?;
    when(&mut rules, libc::SYS_prctl, &[Argument::Is(0, libc::PR_SET_SECCOMP.unsigned_abs())])?;
    Ok(rules)
}
