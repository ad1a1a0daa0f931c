//! What a worker inherits, and the restrictions of its processes as the kernel shows them.

use std::path::Path;

use rcrt_sandbox::ProtectionState;
use rcrt_sandbox::level::names;

use super::{inner, status, while_it_waits};

/// Whether details of the process are visible. For a process that is not dumpable only the
/// superuser sees them. `takeover` tests what native code sees from within.
fn is_transparent(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok()
}

#[test]
fn a_worker_has_one_socket_no_environment_and_no_files() {
    // A stray descriptor that is not closed on exec.
    let _stray = nix::unistd::dup(std::fs::File::open("/etc/hostname").unwrap()).unwrap();
    while_it_waits(|_, worker| {
        let pid = inner(worker);
        if !is_transparent(pid) {
            return;
        }
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        assert!(environ.is_empty(), "{}", String::from_utf8_lossy(&environ));
        assert_eq!(std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
        assert_eq!(std::fs::read_dir(format!("/proc/{pid}/root")).unwrap().count(), 0);
        let mut sockets = 0;
        for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
            let link = std::fs::read_link(entry.unwrap().path()).unwrap();
            let link = link.to_string_lossy().into_owned();
            let is_own = link == "/dev/null" || link.starts_with("pipe:") || link.ends_with("/statm");
            if link.starts_with("socket:") {
                sockets += 1;
            } else {
                assert!(is_own, "{link}");
            }
        }
        // One socket descriptor for each direction.
        assert_eq!(sockets, 2);
    });
}

#[test]
fn the_keeper_has_no_descriptors_and_is_restricted_too() {
    while_it_waits(|_, worker| {
        if inner(worker) == worker {
            return;
        }
        if is_transparent(worker) {
            assert_eq!(std::fs::read_dir(format!("/proc/{worker}/fd")).unwrap().count(), 0);
        }
        let keeper = status(worker);
        assert_eq!((&*keeper["Seccomp"], &*keeper["NoNewPrivs"], &*keeper["CapEff"]), ("2", "1", "0000000000000000"));
        assert_eq!(keeper["Threads"], "1");
    });
}

#[test]
fn the_report_matches_the_state_in_the_kernel() {
    while_it_waits(|sandbox, worker| {
        let report = sandbox.report();
        let is_in_force = |name: &str| {
            report.protections.iter().any(|found| found.name == name && found.state == ProtectionState::Applied)
        };
        let inner = inner(worker);
        let found = status(inner);
        assert_eq!(found["Seccomp"], "2");
        assert_eq!(found["NoNewPrivs"], "1");
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(found[set], "0000000000000000", "{set}");
        }
        let mine = |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
        let theirs = |kind: &str| std::fs::read_link(format!("/proc/{inner}/ns/{kind}")).unwrap();
        for (name, kind) in [
            (names::USER_NAMESPACE, "user"),
            (names::MOUNT_NAMESPACE, "mnt"),
            (names::PROCESS_NAMESPACE, "pid"),
            (names::IPC_NAMESPACE, "ipc"),
            (names::HOST_NAME_NAMESPACE, "uts"),
            (names::NETWORK_NAMESPACE, "net"),
            (names::CGROUP_NAMESPACE, "cgroup"),
        ] {
            if is_transparent(inner) {
                assert_eq!(mine(kind) != theirs(kind), is_in_force(name), "{name}");
            }
        }
        assert_eq!(inner != worker, is_in_force(names::PROCESS_NAMESPACE));
        if is_in_force(names::USER_NAMESPACE) {
            assert_eq!(found["CapBnd"], "0000000000000000");
        }
        if is_in_force(names::ORDINARY_USER) {
            assert!(!found["Uid"].split('\t').any(|id| id == "0"), "{}", found["Uid"]);
        }
        let limits = std::fs::read_to_string(format!("/proc/{inner}/limits")).unwrap();
        let limit = |name: &str| {
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
        };
        for name in ["Max core file size", "Max file size", "Max locked memory", "Max msgqueue size"] {
            assert_eq!(limit(name), ["0", "0"], "{name}");
        }
        assert_eq!(limit("Max open files"), ["32", "32"]);
        assert_eq!(limit("Max pending signals"), ["64", "64"]);
        let stack = limit("Max stack size");
        assert!(stack.iter().all(|bytes| bytes.parse::<u64>().is_ok_and(|bytes| bytes <= 8 << 20)), "{stack:?}");
        let goes_first = std::fs::read_to_string(format!("/proc/{inner}/oom_score_adj")).unwrap();
        assert_eq!(goes_first.trim(), "1000");
    });
}
