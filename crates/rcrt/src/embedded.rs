//! The `bootstrap-breadcrumbs/` folder as it was when this binary was built.

/// The name of the set, and of the folder it comes from.
pub const NAME: &str = "bootstrap-breadcrumbs";

/// Path below the folder, with `/`, and text; in the order of the paths.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded_files.rs"));

/// The names of the tools that are parts of the program: their files are named after them.
pub fn native_tools() -> Vec<&'static str> {
    FILES.iter().filter_map(|(path, _)| path.strip_prefix("tools-native/")?.strip_suffix(".json")).collect()
}
