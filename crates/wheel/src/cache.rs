use std::ffi::OsString;
use std::path::PathBuf;

use nix::unistd::Uid;

/// `$RCRT_CACHE`, else `$XDG_CACHE_HOME/rcrt`, else `~/.cache/rcrt`, else a folder of this user's in the temporary folder.
pub fn default_cache_dir() -> PathBuf {
    chosen(|name| std::env::var_os(name), std::env::home_dir())
}

fn chosen(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> PathBuf {
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
    fn a_user_without_a_home_has_a_folder_of_its_own() {
        let own = std::env::temp_dir().join(format!("rcrt-cache-{}", Uid::effective()));
        for home in [None, Some("relative/home".into())] {
            assert_eq!(chosen(|_| None, home), own);
        }
        assert_eq!(chosen(|_| None, Some("/home/ada".into())), PathBuf::from("/home/ada/.cache/rcrt"));
        let variable = |name: &str| (name == "RCRT_CACHE").then(|| "/var/cache/rcrt".into());
        assert_eq!(chosen(variable, None), PathBuf::from("/var/cache/rcrt"));
    }
}
