//! Workers yield the processor to the runner and the database, and are killed first when memory
//! runs out.

use nix::libc;

const NICE: libc::c_int = 5;

/// The most there is.
const FIRST_TO_GO: &str = "1000";

/// While there are files: anybody may raise this number, and only the superuser lower it.
pub fn go_first() -> Result<(), String> {
    let path = "/proc/self/oom_score_adj";
    std::fs::write(path, FIRST_TO_GO).map_err(|error| format!("{path}: {error}"))
}

pub fn apply() -> Result<(), String> {
    // SAFETY: setpriority takes three integers and touches no memory of ours.
    #[allow(unsafe_code)]
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
}
