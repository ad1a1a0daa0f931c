//! The `bootstrap-breadcrumbs/` folder at the time of the build.

/// The name of the set and of its folder.
pub const NAME: &str = "bootstrap-breadcrumbs";

/// Path below the folder, with `/`, and text, sorted by path.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded_files.rs"));

/// The names of the native tools. Their files are named after them.
pub fn native_tools() -> Vec<&'static str> {
    FILES.iter().filter_map(|(path, _)| path.strip_prefix("tools-native/")?.strip_suffix(".json")).collect()
}
