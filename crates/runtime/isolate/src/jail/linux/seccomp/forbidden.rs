//! System calls that the engine and its libraries never make. A process that makes one has been
//! taken over and is killed. Each of them would be refused even if it were not listed here.

use nix::libc;
use rcrt_jail::walls::seccomp::rules::{Argument, Rules, always, when};

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
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_mknodat,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Parts of the kernel that were exploited before, and that the worker does not need.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_personality,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_mbind,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_set_mempolicy,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
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
const HERE: &[i64] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_setrlimit,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_mknod,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const HERE: &[i64] = &[];

pub fn rules() -> Result<Rules, String> {
    let mut rules = always(ALWAYS);
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
