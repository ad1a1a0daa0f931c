//! Prevents that the process, or anything that it starts, gains privileges by exec.

pub fn apply() -> Result<(), String> {
    nix::sys::prctl::set_no_new_privs().map_err(|error| error.to_string())
}
