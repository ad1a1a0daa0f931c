//! The kernel does for the worker only what an engine, its threads and one socket need. One filter lets through what is
//! listed and answers everything else as an old kernel would (`ENOSYS`), which libraries cope with. When the engine is
//! up, and before any tool code, two more come on all threads: no further thread starts, and the process is ended for
//! what only an attacker calls.

mod allowed;
mod forbidden;

use jail::walls::Outcome;
use jail::walls::seccomp::{SeccompAction, install};
use nix::libc;

/// For the process that runs tool code. Threads that start later are under it as well.
pub fn apply() -> Outcome {
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    install(allowed::rules()?, SeccompAction::Allow, unknown)
}

/// For all threads of that process, once they are there.
pub fn seal() -> Outcome {
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    install(allowed::rules_of_the_past()?, unknown, SeccompAction::Allow)?;
    // Last, because it forbids any further filter.
    install(forbidden::rules()?, SeccompAction::KillProcess, SeccompAction::Allow)
}

/// For the keeper, which waits and ends.
pub fn apply_to_keeper() -> Outcome {
    install(allowed::keepers_rules()?, SeccompAction::Allow, SeccompAction::KillProcess)
}
