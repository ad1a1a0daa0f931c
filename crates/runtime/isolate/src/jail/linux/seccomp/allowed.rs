//! The system calls that the worker needs: memory, threads, clocks, random bytes and its
//! descriptors. The list was found by tracing the engine; an entry cannot reach anything that the
//! process does not have already.

use nix::libc;
use rcrt_jail::protections::seccomp::rules::{Argument, Rules, always, when};

const ALWAYS: &[i64] = &[
    // The socket and other open descriptors. More cannot be opened.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    // Memory, including that of the just-in-time compiler.
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_brk,
    libc::SYS_mincore,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_membarrier,
    // Threads.
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getcpu,
    // Clocks and random numbers.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    libc::SYS_getrandom,
    // The kernel version; the engine does not start without it. The host name is hidden by its
    // namespace.
    libc::SYS_uname,
    // The process's own signals and its exit.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // For later filters, which forbid it.
    libc::SYS_seccomp,
];

/// How the two C libraries start a thread: everything shared except the stack.
const THREAD: libc::c_int = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID;
const THREADS: [libc::c_int; 2] = [THREAD, THREAD | libc::CLONE_DETACHED];

/// How the C libraries fork, with and without storing the child's id in its own memory.
const FORKS: [libc::c_int; 2] = [libc::SIGCHLD, libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD];

/// What a process needs to fork a child for each isolate, and what such a child needs to open its
/// own `/proc` entry and to apply Landlock. A sealed process is refused all of it. Its parent never
/// runs a tool's code.
const UNTIL_SEALED: &[i64] = &[
    libc::SYS_wait4,
    libc::SYS_openat,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
];

const DESCRIPTOR_COMMANDS: [libc::c_int; 5] =
    [libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL];

const PROCESS_COMMANDS: [libc::c_int; 4] =
    [libc::PR_SET_NAME, libc::PR_SET_VMA, libc::PR_SET_NO_NEW_PRIVS, libc::PR_SET_PDEATHSIG];

/// Waiting for other threads and waking them, privately or not, with a timeout on either clock. No
/// priority-inheriting locks.
const WAITING: [libc::c_int; 6] = [
    libc::FUTEX_WAIT,
    libc::FUTEX_WAKE,
    libc::FUTEX_REQUEUE,
    libc::FUTEX_CMP_REQUEUE,
    libc::FUTEX_WAIT_BITSET,
    libc::FUTEX_WAKE_BITSET,
];
const HOW_TO_WAIT: libc::c_int = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;

/// Freeing memory, and excluding it from forks and dumps. The `libc` crate does not define the
/// guards of stacks yet.
const ADVICE: [libc::c_int; 9] = [
    libc::MADV_DONTNEED,
    libc::MADV_FREE,
    libc::MADV_DONTFORK,
    libc::MADV_DOFORK,
    libc::MADV_DONTDUMP,
    libc::MADV_DODUMP,
    libc::MADV_NOHUGEPAGE,
    MADV_GUARD_INSTALL,
    MADV_GUARD_REMOVE,
];
const MADV_GUARD_INSTALL: libc::c_int = 102;
const MADV_GUARD_REMOVE: libc::c_int = 103;

pub fn rules() -> Result<Rules, String> {
    let mut rules = always(ALWAYS);
    rules.extend(always(UNTIL_SEALED));
    for flags in THREADS.into_iter().chain(FORKS) {
        when(&mut rules, libc::SYS_clone, &[Argument::IsWide(0, u64::from(flags.unsigned_abs()))])?;
    }
    // Shared memory, or memory that grows like a stack, would not count against the process's
    // ceiling. Nor would a stack that is moved and enlarged, so `mremap` is not allowed; allocators
    // copy instead.
    let kinds = (libc::MAP_TYPE | libc::MAP_GROWSDOWN | libc::MAP_HUGETLB).unsigned_abs();
    when(&mut rules, libc::SYS_mmap, &[Argument::HasOf(3, kinds, libc::MAP_PRIVATE.unsigned_abs())])?;
    for command in DESCRIPTOR_COMMANDS {
        when(&mut rules, libc::SYS_fcntl, &[Argument::Is(1, command.unsigned_abs())])?;
    }
    for command in PROCESS_COMMANDS {
        when(&mut rules, libc::SYS_prctl, &[Argument::Is(0, command.unsigned_abs())])?;
    }
    for operation in WAITING {
        let operation = Argument::HasOf(1, !HOW_TO_WAIT.unsigned_abs(), operation.unsigned_abs());
        when(&mut rules, libc::SYS_futex, &[operation])?;
    }
    for advice in ADVICE {
        when(&mut rules, libc::SYS_madvise, &[Argument::Is(2, advice.unsigned_abs())])?;
    }
    // A connected socket needs no address, and a stream no out-of-band data.
    for flags in [0, libc::MSG_NOSIGNAL] {
        when(&mut rules, libc::SYS_sendto, &[Argument::Is(3, flags.unsigned_abs()), Argument::IsWide(4, 0)])?;
    }
    when(&mut rules, libc::SYS_recvfrom, &[Argument::Is(3, 0), Argument::IsWide(4, 0)])?;
    // Its own limits can be read: the C library needs the stack size.
    when(&mut rules, libc::SYS_prlimit64, &[Argument::Is(0, 0), Argument::IsWide(2, 0)])?;
    // An abort is a signal to itself. The target is checked when the process is sealed.
    rules.extend(always(&[libc::SYS_tgkill]));
    Ok(rules)
}

/// What no thread of a sealed process needs any more.
pub fn rules_of_the_past() -> Result<Rules, String> {
    let mut rules = always(UNTIL_SEALED);
    rules.extend(always(&[libc::SYS_clone]));
    when(&mut rules, libc::SYS_prctl, &[Argument::Is(0, libc::PR_SET_PDEATHSIG.unsigned_abs())])?;
    Ok(rules)
}

pub fn keeper_rules() -> Result<Rules, String> {
    let mut rules = always(&[
        libc::SYS_wait4,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_munmap,
        libc::SYS_exit_group,
    ]);
    when(&mut rules, libc::SYS_kill, &[Argument::Is(0, std::process::id())])?;
    Ok(rules)
}
