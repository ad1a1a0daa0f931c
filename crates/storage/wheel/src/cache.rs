use std::ffi::OsString;
use std::path::PathBuf;

use nix::unistd::Uid;

/// Returns `$RCRT_CACHE`, else `$XDG_CACHE_HOME/rcrt`, else `~/.cache/rcrt`, else a folder for this
/// user in the temporary folder.
pub fn default_cache_dir() -> PathBuf {
    cache_dir(|name| std::env::var_os(name), std::env::home_dir())
}

fn cache_dir(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> PathBuf {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("RCRT_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("rcrt")))
        .or_else(|| home.filter(|home| home.is_absolute()).map(|home| home.join(".cache/rcrt")))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("rcrt-cache-{}", Uid::effective())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_home_gets_a_separate_folder() {
        let own = std::env::temp_dir().join(format!("rcrt-cache-{}", Uid::effective()));
        for home in [None, Some("relative/home".into())] {
            assert_eq!(cache_dir(|_| None, home), own);
        }
        assert_eq!(cache_dir(|_| None, Some("/home/ada".into())), PathBuf::from("/home/ada/.cache/rcrt"));
        let variable = |name: &str| (name == "RCRT_CACHE").then(|| "/var/cache/rcrt".into());
        assert_eq!(cache_dir(variable, None), PathBuf::from("/var/cache/rcrt"));
    }
}
