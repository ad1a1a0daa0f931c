//! The tools that run programs: `bash` and `execute_python_script`. Each command runs in its own
//! jail. The working folder is the only place on this machine where it can write.
//!
//! It knows no queue and no store. The crate `jail` has the restrictions themselves.
//!
//! Begin with `program_runner.rs`, `bash.rs` and `python/mod.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod arguments;
mod bash;
mod deferred;
mod disk;
mod exit_status;
mod output_truncation;
mod program_runner;
mod python;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use executors::NativeTool;
use jail::command::{Helper, Jail};

pub use deferred::deferred_tools;
pub use disk::DiskBounds;
pub use program_runner::FOLDER;
use program_runner::ProgramRunner;

/// What the operator decides.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How this program starts itself as the jail's helper.
    pub helper: Helper,
    /// The working folder. It is made when a tool first needs it.
    pub workdir: PathBuf,
    /// Where environments with Python packages are kept, one for each set of packages. Made when first needed; all of it
    /// may be removed while no runner runs.
    pub environments: PathBuf,
    /// Names of tools whose programs are in this machine's network, past every rule of the gate. None by default.
    pub network: BTreeSet<String>,
    /// What programs and packages may take of the disk.
    pub disk: DiskBounds,
}

/// The tools of this family: `bash` and `execute_python_script`. Finds out, by running a program that does nothing,
/// whether this machine gives the walls; where it does not, the tools wait and say why.
pub async fn tools(settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    let jail = Arc::new(Jail::open(settings.helper.clone()).await);
    tools_in(jail, settings).await
}

/// The same in a jail that is there already.
pub async fn tools_in(jail: Arc<Jail>, settings: Settings) -> Vec<Arc<dyn NativeTool>> {
    let bash = ProgramRunner::new(&jail, &settings, bash::NAME);
    let python = ProgramRunner::new(&jail, &settings, python::NAME);
    vec![
        Arc::new(bash::Bash::new(bash)),
        Arc::new(python::ExecutePythonScript::new(python, settings.environments, settings.disk).await),
    ]
}
