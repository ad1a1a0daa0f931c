//! The kernel kills the worker when the thread that started it ends. The socket's end, which the worker sees when
//! the parent is gone, covers the moment before this is set.

use nix::sys::signal::Signal;

pub fn apply() -> Result<(), String> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| error.to_string())
}
