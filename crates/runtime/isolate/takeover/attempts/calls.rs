//! System calls, each made once.

use std::borrow::Cow;

use nix::libc::{self, c_int};

use crate::attempt::{Attempt, How};
use crate::expected::Expected;

const REFUSED: Expected = Expected::Refused(Cow::Borrowed(&[libc::ENOSYS]));

fn int(value: c_int) -> usize {
    value as isize as usize
}

fn text(value: &'static std::ffi::CStr) -> usize {
    value.as_ptr() as usize
}

/// The worker's socket.
const SOCKET: usize = 3;
const HERE: usize = libc::AT_FDCWD as isize as usize;
const ALL_MEMORY: usize = 8 << 30;

pub fn all() -> Vec<Attempt> {
    let mut all = Vec::new();
    let mut add = |name, expected, number, arguments: &[usize]| {
        let mut six = [0; 6];
        six[..arguments.len()].copy_from_slice(arguments);
        all.push(Attempt { name, expected, how: How::Call(number, six) });
    };
    network(&mut add);
    files(&mut add);
    programs(&mut add);
    processes(&mut add);
    namespaces(&mut add);
    kernel(&mut add);
    rights(&mut add);
    memory(&mut add);
    all
}

type Add<'a> = &'a mut dyn FnMut(&'static str, Expected, i64, &[usize]);

fn network(add: Add<'_>) {
    add("a TCP socket", Expected::Killed, libc::SYS_socket, &[int(libc::AF_INET), int(libc::SOCK_STREAM), 0]);
    add("a UDP socket over IPv6", Expected::Killed, libc::SYS_socket, &[int(libc::AF_INET6), int(libc::SOCK_DGRAM), 0]);
    add(
        "a socket on this machine",
        Expected::Killed,
        libc::SYS_socket,
        &[int(libc::AF_UNIX), int(libc::SOCK_STREAM), 0],
    );
    add("a socket to the kernel", Expected::Killed, libc::SYS_socket, &[int(libc::AF_NETLINK), int(libc::SOCK_RAW), 0]);
    add("a raw socket", Expected::Killed, libc::SYS_socket, &[int(libc::AF_PACKET), int(libc::SOCK_RAW), 3]);
    add(
        "a socket to the hypervisor",
        Expected::Killed,
        libc::SYS_socket,
        &[int(libc::AF_VSOCK), int(libc::SOCK_STREAM), 0],
    );
    add(
        "a pair of sockets",
        Expected::Killed,
        libc::SYS_socketpair,
        &[int(libc::AF_UNIX), int(libc::SOCK_STREAM), 0, 0],
    );
    add("connecting the socket elsewhere", Expected::Killed, libc::SYS_connect, &[SOCKET, 0, 0]);
    add("binding the socket to a name", Expected::Killed, libc::SYS_bind, &[SOCKET, 0, 0]);
    add("listening on the socket", Expected::Killed, libc::SYS_listen, &[SOCKET, 1]);
    add("accepting on the socket", Expected::Killed, libc::SYS_accept4, &[SOCKET, 0, 0, 0]);
    add("handing over a descriptor", Expected::Killed, libc::SYS_sendmsg, &[SOCKET, 0, 0]);
    add("taking a descriptor", Expected::Killed, libc::SYS_recvmsg, &[SOCKET, 0, 0]);
    add("many messages at once", REFUSED, libc::SYS_sendmmsg, &[SOCKET, 0, 0, 0]);
    let urgent = int(libc::MSG_OOB);
    add("sending a byte past the others", REFUSED, libc::SYS_sendto, &[SOCKET, text(c"x"), 1, urgent, 0, 0]);
    add("taking a byte past the others", REFUSED, libc::SYS_recvfrom, &[SOCKET, 0, 0, urgent, 0, 0]);
    add("looking at what has not been read", REFUSED, libc::SYS_recvfrom, &[SOCKET, 0, 0, int(libc::MSG_PEEK), 0, 0]);
    add("asking where bytes come from", REFUSED, libc::SYS_recvfrom, &[SOCKET, 0, 0, 0, 1, 1]);
    add("sending to an address", REFUSED, libc::SYS_sendto, &[SOCKET, 0, 0, 0, 1, 16]);
    add("asking who the peer is", REFUSED, libc::SYS_getsockopt, &[SOCKET, 1, 17, 0, 0]);
    add("shutting the socket down", REFUSED, libc::SYS_shutdown, &[SOCKET, 2]);
}

fn files(add: Add<'_>) {
    add("the list of users", REFUSED, libc::SYS_openat, &[HERE, text(c"/etc/passwd"), 0]);
    add("the root folder", REFUSED, libc::SYS_openat, &[HERE, text(c"/"), int(libc::O_DIRECTORY)]);
    add("its own program", REFUSED, libc::SYS_openat, &[HERE, text(c"/proc/self/exe"), 0]);
    add("its own memory as a file", REFUSED, libc::SYS_openat, &[HERE, text(c"/proc/self/mem"), int(libc::O_RDWR)]);
    add("the first process's environment", REFUSED, libc::SYS_openat, &[HERE, text(c"/proc/1/environ"), 0]);
    add("the kernel's settings", REFUSED, libc::SYS_openat, &[HERE, text(c"/proc/sys/kernel/core_pattern"), 1]);
    add("a file by a descriptor", REFUSED, libc::SYS_openat, &[0, text(c"../../etc/passwd"), 0]);
    add("a file without a name", REFUSED, libc::SYS_openat, &[HERE, text(c"/"), int(libc::O_TMPFILE | libc::O_RDWR)]);
    add("a file the newer way", REFUSED, libc::SYS_openat2, &[HERE, text(c"/etc/passwd"), 0, 0]);
    add("a file by its handle", Expected::Killed, libc::SYS_open_by_handle_at, &[HERE, 0, 0]);
    add("a file's properties", REFUSED, libc::SYS_newfstatat, &[HERE, text(c"/etc/passwd"), 0, 0]);
    add("a file's properties the newer way", REFUSED, libc::SYS_statx, &[HERE, text(c"/etc/passwd"), 0, 0, 0]);
    add("where a link leads", REFUSED, libc::SYS_readlinkat, &[HERE, text(c"/proc/self/exe"), 0, 0]);
    add("whether a file exists", REFUSED, libc::SYS_faccessat, &[HERE, text(c"/etc/passwd"), 0]);
    add("a new folder", REFUSED, libc::SYS_mkdirat, &[HERE, text(c"/here"), 0o777]);
    add("a device of its own", Expected::Killed, libc::SYS_mknodat, &[HERE, text(c"/here"), 0o60_666, 0x0801]);
    add("removing a file", REFUSED, libc::SYS_unlinkat, &[HERE, text(c"/etc/passwd"), 0]);
    add("moving a file", REFUSED, libc::SYS_renameat2, &[HERE, text(c"/etc/passwd"), HERE, text(c"/here"), 0]);
    add("a link", REFUSED, libc::SYS_symlinkat, &[text(c"/etc/passwd"), HERE, text(c"/here")]);
    add("a file's permissions", REFUSED, libc::SYS_fchmodat, &[HERE, text(c"/etc/passwd"), 0o777]);
    add("another working folder", REFUSED, libc::SYS_chdir, &[text(c"/etc")]);
    add("the working folder", REFUSED, libc::SYS_getcwd, &[0, 0]);
    add("watching files", REFUSED, libc::SYS_inotify_init1, &[0]);
    add("watching all files", Expected::Killed, libc::SYS_fanotify_init, &[0, 0]);
    add("typing into a terminal", REFUSED, libc::SYS_ioctl, &[0, libc::TIOCSTI as usize, text(c"x")]);
    add("a pipe", REFUSED, libc::SYS_pipe2, &[0, 0]);
    #[cfg(target_arch = "x86_64")]
    add("the list of users the oldest way", REFUSED, libc::SYS_open, &[text(c"/etc/passwd"), 0]);
    // The same numbers with another bit belong to another table of calls.
    #[cfg(target_arch = "x86_64")]
    add("a call from the table for x32", REFUSED, 0x4000_0000 + libc::SYS_openat, &[HERE, text(c"/etc/passwd"), 0]);
}

fn programs(add: Add<'_>) {
    add("a shell", Expected::Killed, libc::SYS_execve, &[text(c"/bin/sh"), 0, 0]);
    add(
        "a program by a descriptor",
        Expected::Killed,
        libc::SYS_execveat,
        &[0, text(c""), 0, 0, int(libc::AT_EMPTY_PATH)],
    );
    add("a file in memory", Expected::Killed, libc::SYS_memfd_create, &[text(c"x"), 0]);
    add("secret memory", Expected::Killed, libc::SYS_memfd_secret, &[0]);
    add("a copy of itself", Expected::Killed, libc::SYS_clone, &[int(libc::SIGCHLD), 0, 0, 0, 0]);
    add(
        "a copy of itself in another namespace",
        Expected::Killed,
        libc::SYS_clone,
        &[int(libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::SIGCHLD), 0, 0, 0, 0],
    );
    add("a copy the newer way", REFUSED, libc::SYS_clone3, &[0, 88]);
    #[cfg(target_arch = "x86_64")]
    add("a copy the old way", Expected::Killed, libc::SYS_fork, &[]);
    #[cfg(target_arch = "x86_64")]
    add("a copy that borrows", Expected::Killed, libc::SYS_vfork, &[]);
    add("a program from a library", REFUSED, libc::SYS_mmap, &[0, 4096, 5, int(libc::MAP_SHARED), 0, 0]);
}

fn processes(add: Add<'_>) {
    add("killing all processes", Expected::Killed, libc::SYS_kill, &[int(-1), int(libc::SIGKILL)]);
    add("killing its group, and its keeper", Expected::Killed, libc::SYS_kill, &[0, int(libc::SIGKILL)]);
    add("killing the first process", Expected::Killed, libc::SYS_kill, &[1, int(libc::SIGKILL)]);
    add("asking whether a process exists", Expected::Killed, libc::SYS_kill, &[2, 0]);
    add("a signal to another's thread", Expected::Killed, libc::SYS_tgkill, &[2, 2, int(libc::SIGTERM)]);
    add("a signal to any thread", Expected::Killed, libc::SYS_tkill, &[1, int(libc::SIGTERM)]);
    add("a forged signal", Expected::Killed, libc::SYS_rt_sigqueueinfo, &[1, int(libc::SIGTERM), 0]);
    add("holding a process", Expected::Killed, libc::SYS_pidfd_open, &[1, 0]);
    add("signalling a process that it holds", Expected::Killed, libc::SYS_pidfd_send_signal, &[SOCKET, 9, 0, 0]);
    add("a descriptor of another process", Expected::Killed, libc::SYS_pidfd_getfd, &[SOCKET, 0, 0]);
    add("being traced", Expected::Killed, libc::SYS_ptrace, &[int(libc::PTRACE_TRACEME as c_int), 0, 0, 0]);
    add("tracing another", Expected::Killed, libc::SYS_ptrace, &[int(libc::PTRACE_ATTACH as c_int), 2, 0, 0]);
    add("reading another's memory", Expected::Killed, libc::SYS_process_vm_readv, &[2, 0, 0, 0, 0, 0]);
    add("writing another's memory", Expected::Killed, libc::SYS_process_vm_writev, &[2, 0, 0, 0, 0, 0]);
    add("comparing with another", Expected::Killed, libc::SYS_kcmp, &[1, 2, 0, 0, 0]);
    add("who its parent is", REFUSED, libc::SYS_getppid, &[]);
    add("a session of its own", REFUSED, libc::SYS_setsid, &[]);
    add("another's group", REFUSED, libc::SYS_setpgid, &[0, 1]);
    add("a timer that signals", REFUSED, libc::SYS_timer_create, &[0, 0, 0]);
    add("memory for all processes", Expected::Killed, libc::SYS_shmget, &[1, 4096, 0o1666]);
    add("a queue for all processes", Expected::Killed, libc::SYS_mq_open, &[text(c"/q"), int(libc::O_CREAT), 0o666, 0]);
    add("semaphores for all processes", Expected::Killed, libc::SYS_semget, &[1, 1, 0o1666]);
}

fn namespaces(add: Add<'_>) {
    add("a user namespace", Expected::Killed, libc::SYS_unshare, &[int(libc::CLONE_NEWUSER)]);
    add("another's namespace", Expected::Killed, libc::SYS_setns, &[SOCKET, 0]);
    add("a mount", Expected::Killed, libc::SYS_mount, &[text(c"proc"), text(c"/"), text(c"proc"), 0, 0]);
    add("unmounting", Expected::Killed, libc::SYS_umount2, &[text(c"/"), 2]);
    add("another root", Expected::Killed, libc::SYS_pivot_root, &[text(c"/"), text(c"/")]);
    add("another root the old way", Expected::Killed, libc::SYS_chroot, &[text(c"/")]);
    add("a mount the newer way", Expected::Killed, libc::SYS_fsopen, &[text(c"proc"), 0]);
    add("a copy of a mount", Expected::Killed, libc::SYS_open_tree, &[HERE, text(c"/"), 1]);
    add("moving a mount", Expected::Killed, libc::SYS_move_mount, &[HERE, text(c"/"), HERE, text(c"/"), 0]);
    add("changing a mount", Expected::Killed, libc::SYS_mount_setattr, &[HERE, text(c"/"), 0, 0, 0]);
    add("another host name", Expected::Killed, libc::SYS_sethostname, &[text(c"x"), 1]);
}

fn kernel(add: Add<'_>) {
    add("a ring of io_uring", Expected::Killed, libc::SYS_io_uring_setup, &[8, 0]);
    add("using a ring of io_uring", Expected::Killed, libc::SYS_io_uring_enter, &[SOCKET, 1, 0, 0, 0]);
    add("a program in the kernel", Expected::Killed, libc::SYS_bpf, &[0, 0, 0]);
    add("handling the pages of others", Expected::Killed, libc::SYS_userfaultfd, &[0]);
    add("counting what the processor does", Expected::Killed, libc::SYS_perf_event_open, &[0, 0, int(-1), int(-1), 0]);
    add("the keyring", Expected::Killed, libc::SYS_keyctl, &[0, int(-3), 1]);
    add("a new key", Expected::Killed, libc::SYS_add_key, &[text(c"user"), text(c"x"), text(c"x"), 1, int(-3)]);
    add("another user's key", Expected::Killed, libc::SYS_request_key, &[text(c"user"), text(c"x"), 0, 0]);
    add("another kernel", Expected::Killed, libc::SYS_kexec_load, &[0, 0, 0, 0]);
    add("another kernel from a file", Expected::Killed, libc::SYS_kexec_file_load, &[0, 0, 0, 0, 0]);
    add("a module", Expected::Killed, libc::SYS_init_module, &[0, 0, text(c"")]);
    add("a module from a file", Expected::Killed, libc::SYS_finit_module, &[SOCKET, text(c""), 0]);
    add("unloading a module", Expected::Killed, libc::SYS_delete_module, &[text(c"x"), 0]);
    add("a reboot", Expected::Killed, libc::SYS_reboot, &[0, 0, 0, 0]);
    add("the kernel's log", Expected::Killed, libc::SYS_syslog, &[3, 0, 0]);
    add("swap memory on a disk", Expected::Killed, libc::SYS_swapon, &[text(c"/dev/sda"), 0]);
    add("process accounting", Expected::Killed, libc::SYS_acct, &[0]);
    add("the machine's clock", Expected::Killed, libc::SYS_clock_settime, &[0, 0]);
    add("the clock's rate", Expected::Killed, libc::SYS_adjtimex, &[0]);
    add("disk quotas", Expected::Killed, libc::SYS_quotactl, &[0, 0, 0, 0]);
    add("another personality", Expected::Killed, libc::SYS_personality, &[0x0400_0000]);
    add("pages of others", Expected::Killed, libc::SYS_move_pages, &[0, 0, 0, 0, 0, 0]);
    add("how much memory this machine has", REFUSED, libc::SYS_sysinfo, &[0]);
    #[cfg(target_arch = "x86_64")]
    add("the ports of the hardware", Expected::Killed, libc::SYS_iopl, &[3]);
    #[cfg(target_arch = "x86_64")]
    add("some ports of the hardware", Expected::Killed, libc::SYS_ioperm, &[0, 1, 1]);
    #[cfg(target_arch = "x86_64")]
    add("a descriptor table of its own", Expected::Killed, libc::SYS_modify_ldt, &[0, 0, 0]);
}

fn rights(add: Add<'_>) {
    add("becoming the superuser", Expected::Killed, libc::SYS_setuid, &[0]);
    add("becoming the superuser in all ways", Expected::Killed, libc::SYS_setresuid, &[0, 0, 0]);
    add("the superuser's group", Expected::Killed, libc::SYS_setresgid, &[0, 0, 0]);
    add("more groups", Expected::Killed, libc::SYS_setgroups, &[0, 0]);
    add("capabilities", Expected::Killed, libc::SYS_capset, &[0, 0]);
    add("a weaker filter", Expected::Killed, libc::SYS_seccomp, &[1, 0, 0]);
    add("a weaker filter the old way", Expected::Killed, libc::SYS_prctl, &[int(libc::PR_SET_SECCOMP), 2, 0]);
    add("outliving the runner", REFUSED, libc::SYS_prctl, &[int(libc::PR_SET_PDEATHSIG), 0]);
    add("being dumped", REFUSED, libc::SYS_prctl, &[int(libc::PR_SET_DUMPABLE), 1]);
    add("letting others trace it", REFUSED, libc::SYS_prctl, &[int(libc::PR_SET_PTRACER), int(-1)]);
    add("keeping capabilities", REFUSED, libc::SYS_prctl, &[int(libc::PR_SET_KEEPCAPS), 1]);
    add("speculating again", REFUSED, libc::SYS_prctl, &[int(libc::PR_SET_SPECULATION_CTRL), 0, 2]);
    add(
        "new privileges by exec",
        Expected::Refused(Cow::Borrowed(&[libc::EINVAL])),
        libc::SYS_prctl,
        &[int(libc::PR_SET_NO_NEW_PRIVS), 0],
    );
    add(
        "a limit of its own",
        Expected::Killed,
        libc::SYS_prlimit64,
        &[0, libc::RLIMIT_NOFILE as usize, text(c"xxxxxxxxxxxxxxx"), 0],
    );
    add("the limits of another", Expected::Killed, libc::SYS_prlimit64, &[2, libc::RLIMIT_NOFILE as usize, 0, 0]);
    #[cfg(target_arch = "x86_64")]
    add(
        "a limit the old way",
        Expected::Killed,
        libc::SYS_setrlimit,
        &[libc::RLIMIT_DATA as usize, text(c"xxxxxxxxxxxxxxx")],
    );
    add("a higher priority", REFUSED, libc::SYS_setpriority, &[0, 0, int(-20)]);
    add("real-time priority", REFUSED, libc::SYS_sched_setscheduler, &[0, 1, text(c"xxxx")]);
    add("other processors", REFUSED, libc::SYS_sched_setaffinity, &[0, 8, text(c"xxxxxxxx")]);
    add("a hole in Landlock", REFUSED, libc::SYS_landlock_create_ruleset, &[0, 0, 1]);
}

fn memory(add: Add<'_>) {
    let writable = int(libc::PROT_READ | libc::PROT_WRITE);
    let no_file = int(-1);
    let shared = int(libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    add("shared memory, which is not counted", REFUSED, libc::SYS_mmap, &[0, ALL_MEMORY, writable, shared, no_file, 0]);
    let stack = int(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN);
    add("memory that counts as a stack", REFUSED, libc::SYS_mmap, &[0, ALL_MEMORY, writable, stack, no_file, 0]);
    let plain = int(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let no_memory = Expected::Refused(Cow::Borrowed(&[libc::ENOMEM]));
    add("more memory than the call has", no_memory, libc::SYS_mmap, &[0, ALL_MEMORY, writable, plain, no_file, 0]);
    add("memory that is never swapped", REFUSED, libc::SYS_mlockall, &[3]);
    add("huge pages", REFUSED, libc::SYS_mmap, &[0, 4096, writable, plain | int(libc::MAP_HUGETLB), no_file, 0]);
    let moved = int(libc::MREMAP_MAYMOVE);
    add("memory that grows where it does not count", REFUSED, libc::SYS_mremap, &[0, 4096, ALL_MEMORY, moved, 0]);
    add("memory that is merged with that of others", REFUSED, libc::SYS_madvise, &[0, 4096, int(libc::MADV_MERGEABLE)]);
    add("huge pages by advice", REFUSED, libc::SYS_madvise, &[0, 4096, int(libc::MADV_HUGEPAGE)]);
    add("a lock with priority inheritance", REFUSED, libc::SYS_futex, &[0, int(libc::FUTEX_LOCK_PI), 0, 0, 0, 0]);
    add("moving waiters to such a lock", REFUSED, libc::SYS_futex, &[0, int(libc::FUTEX_CMP_REQUEUE_PI), 0, 0, 0, 0]);
}
