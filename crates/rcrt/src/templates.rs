//! Tools to begin with: the templates of `bootstrap-breadcrumbs/templates`, given a name.

use clap::ValueEnum;
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Template {
    HttpApi,
    Data,
    Transform,
    AsyncEvent,
}
pub fn instantiate(_: Template, _: &str) -> Result<Vec<(String, String)>, String> {
    Err("not yet".into())
}
