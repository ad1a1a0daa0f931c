//! The `bootstrap-breadcrumbs/` folder as it was when this binary was built.

/// The name of the set, and of the folder it comes from.
pub const NAME: &str = "bootstrap-breadcrumbs";

/// Path below the folder, with `/`, and text; in the order of the paths.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded_files.rs"));
