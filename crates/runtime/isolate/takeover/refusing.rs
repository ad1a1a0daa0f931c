//! Simulates a kernel that refuses certain system calls.

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::libc;
use rcrt_jail::protections::seccomp::rules::Argument;
use rcrt_jail::protections::seccomp::{SeccompAction, install, rules};

/// Not a whole system call: only forking a process as a sibling of its parent.
const COPIES: &str = "copies";

pub fn become_program(calls: &str, program: &str) -> ! {
    let (copies, calls): (Vec<&str>, Vec<&str>) = calls.split(',').partition(|name| *name == COPIES);
    let refused: Vec<i64> = calls.into_iter().flat_map(numbers).collect();
    let mut refused = rules::always(&refused);
    if !copies.is_empty() {
        let beside = (libc::CLONE_PARENT | libc::SIGCHLD).unsigned_abs();
        rules::when(&mut refused, libc::SYS_clone, &[Argument::Is(0, beside)]).unwrap();
    }
    let how = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    install(refused, how, SeccompAction::Allow).unwrap();
    panic!("{program}: {}", Command::new(program).exec())
}

fn numbers(name: &str) -> Vec<i64> {
    match name {
        "unshare" => vec![libc::SYS_unshare],
        "mount" => vec![libc::SYS_mount],
        "landlock" => vec![libc::SYS_landlock_create_ruleset, libc::SYS_landlock_restrict_self],
        "seccomp" => vec![libc::SYS_seccomp],
        "close_range" => vec![libc::SYS_close_range],
        "prlimit" => vec![libc::SYS_prlimit64],
        "capset" => vec![libc::SYS_capset],
        "prctl" => vec![libc::SYS_prctl],
        "setresuid" => vec![libc::SYS_setresuid],
        other => panic!("{other} is not in the list"),
    }
}
