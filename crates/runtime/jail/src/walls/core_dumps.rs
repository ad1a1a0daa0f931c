//! Prevents core dumps. A limit on a core's size has no effect where cores are piped to a program;
//! a process that is not dumpable has no core, and its memory in /proc is hidden from its own user
//! as well.

pub fn apply() -> Result<(), String> {
    nix::sys::prctl::set_dumpable(false).map_err(|error| error.to_string())
}
