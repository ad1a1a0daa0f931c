//! System call filters for the worker: it can make only the calls that the engine, its threads and
//! one socket need. The first filter allows the listed calls and refuses all others as an old
//! kernel would (`ENOSYS`), which libraries handle. When the engine has started, and before any
//! tool code, two more filters are installed on all threads: no further thread can start, and calls
//! that only an attacker makes kill the process.

mod allowed;
mod forbidden;

use nix::libc;
use rcrt_jail::protections::ProtectionResult;
use rcrt_jail::protections::seccomp::{SeccompAction, install};

/// For the process that runs tool code, including threads that start later.
pub fn apply() -> ProtectionResult {
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    install(allowed::rules()?, SeccompAction::Allow, unknown)
}

/// For all threads of that process, after they have started.
pub fn seal() -> ProtectionResult {
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    install(allowed::rules_of_the_past()?, unknown, SeccompAction::Allow)?;
    // Last, because it forbids any further filter.
    install(forbidden::rules()?, SeccompAction::KillProcess, SeccompAction::Allow)
}

/// For the keeper, which only waits and exits.
pub fn apply_to_keeper() -> ProtectionResult {
    install(allowed::keeper_rules()?, SeccompAction::Allow, SeccompAction::KillProcess)
}
