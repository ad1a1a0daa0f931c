//! Workers yield the processor to the runner and the database, and are killed first when memory
//! runs out.

use nix::libc;

const NICE: libc::c_int = 5;

/// The maximum.
const FIRST_TO_GO: &str = "1000";

/// Call it while `/proc` is visible. Any process can raise this number; only the superuser can
/// lower it.
pub fn go_first() -> Result<(), String> {
    let path = "/proc/self/oom_score_adj";
    std::fs::write(path, FIRST_TO_GO).map_err(|error| format!("{path}: {error}"))
}

pub fn apply() -> Result<(), String> {
    // SAFETY: setpriority takes three integers and accesses no memory.
    #[allow(unsafe_code)]
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().to_string()) }
}
