//! Neither the process nor anything it might start gains privileges by exec.

pub fn apply() -> Result<(), String> {
    nix::sys::prctl::set_no_new_privs().map_err(|error| error.to_string())
}
