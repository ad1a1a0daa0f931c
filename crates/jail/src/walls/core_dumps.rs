//! What the process holds in memory is written nowhere when it dies. A limit on a core's size does not bind where cores go to
//! a program; that a process is not dumpable does, and hides its insides in /proc from its own user besides.

pub fn apply() -> Result<(), String> {
    nix::sys::prctl::set_dumpable(false).map_err(|error| error.to_string())
}
