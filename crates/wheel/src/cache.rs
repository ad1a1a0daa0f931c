use std::path::PathBuf;

/// `$RCRT_CACHE`, else `$XDG_CACHE_HOME/rcrt`, else `~/.cache/rcrt`, else a folder in the temporary folder.
pub fn default_cache_dir() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("RCRT_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("rcrt")))
        .or_else(|| std::env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".cache/rcrt")))
        .unwrap_or_else(|| std::env::temp_dir().join("rcrt-cache"))
}
