//! The tools that run programs: `bash` and `execute_python_script`. Each command runs in its own
//! jail. It can write to no place on this machine but the working folder. Another [`Isolation`] can
//! take the place of the jail.
//!
//! This crate knows no queue and no store. The crate `jail` has the restrictions themselves.
//!
//! Begin with `isolation.rs`, `bash.rs` and `python/mod.rs`, then `jailed.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod arguments;
mod bash;
mod deferred;
mod disk;
pub mod exit_status;
pub mod isolation;
mod jailed;
mod output_truncation;
mod program_runner;
mod python;
mod working_folder;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rcrt_executors::NativeTool;
use rcrt_jail::command::{Helper, Jail};

pub use bash::{NAME as BASH, OPTIONS as BASH_OPTIONS};
pub use deferred::deferred_tools;
pub use disk::DiskBounds;
pub use isolation::Isolation;
use jailed::Jailed;
pub use program_runner::FOLDER;
pub use python::environments::FOLDER as PACKAGES_FOLDER;
pub use python::installing::{PIP_OPTIONS, not_installed};
pub use python::packages::PackageSet;
pub use python::{INPUT, NAME as PYTHON, tell_version};

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How this program starts itself as the jail's helper.
    pub helper: Helper,
    /// The working folder. It is created when a tool first needs it.
    pub workdir: PathBuf,
    /// The folder of environments with Python packages, one for each set of packages. It is created
    /// when first needed. It can be deleted while no runner runs.
    pub environments: PathBuf,
    /// Names of tools whose programs use this machine's network, without the rules of the egress
    /// gate. None by default.
    pub network: BTreeSet<String>,
    /// The disk limits of programs and packages.
    pub disk: DiskBounds,
}

/// The tools of this crate: `bash` and `execute_python_script`. Runs a program that does nothing,
/// to find out whether this machine supports the jail. If it does not, the tools wait and say why.
pub async fn tools(settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    let jail = Arc::new(Jail::open(settings.helper.clone()).await);
    tools_in(jail, settings).await
}

/// Like [`tools`], in an existing jail.
pub async fn tools_in(jail: Arc<Jail>, settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    tools_with(Arc::new(Jailed::new(&jail, settings).await))
}

/// The tools, with their programs in this isolation.
pub fn tools_with(isolation: Arc<dyn Isolation>) -> Vec<Arc<dyn NativeTool>> {
    vec![Arc::new(bash::Bash(isolation.clone())), Arc::new(python::ExecutePythonScript(isolation))]
}
