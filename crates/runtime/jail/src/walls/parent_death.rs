//! The kernel kills the process when the thread that started it ends. Before this is set, the
//! process must detect its parent's end in another way.

use nix::sys::signal::Signal;

pub fn apply() -> Result<(), String> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| error.to_string())
}
