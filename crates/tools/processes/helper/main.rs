//! The jail's helper as a separate program, for this crate's tests. `rcrt` calls the same entry
//! from its hidden subcommand.
//!
//! `jail-helper behind CALLS` is the helper on a kernel that refuses the system calls CALLS, as
//! some machines do.
#![allow(clippy::unwrap_used, clippy::panic)]

fn main() -> std::process::ExitCode {
    #[cfg(target_os = "linux")]
    if let Some("behind") = std::env::args().nth(1).as_deref() {
        refuse(&std::env::args().nth(2).unwrap());
    }
    rcrt_jail::command::jailed_command()
}

#[cfg(target_os = "linux")]
fn refuse(calls: &str) {
    use nix::libc;
    use rcrt_jail::protections::seccomp::{SeccompAction, install, rules};
    let numbers: Vec<i64> = calls
        .split(',')
        .map(|name| match name {
            "unshare" => libc::SYS_unshare,
            "mount" => libc::SYS_mount,
            "open_tree" => libc::SYS_open_tree,
            "mount_setattr" => libc::SYS_mount_setattr,
            "pivot_root" => libc::SYS_pivot_root,
            "chroot" => libc::SYS_chroot,
            "seccomp" => libc::SYS_seccomp,
            "capset" => libc::SYS_capset,
            "close_range" => libc::SYS_close_range,
            "setresuid" => libc::SYS_setresuid,
            "prlimit" => libc::SYS_prlimit64,
            "landlock" => libc::SYS_landlock_create_ruleset,
            other => panic!("{other} is not in the list"),
        })
        .collect();
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    install(rules::always(&numbers), refused, SeccompAction::Allow).unwrap();
}
