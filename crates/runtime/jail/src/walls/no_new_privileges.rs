//! Prevents the process and its descendants from gaining privileges by exec.

pub fn apply() -> Result<(), String> {
    nix::sys::prctl::set_no_new_privs().map_err(|error| error.to_string())
}
