//! `--compat`, the same for the server and the runner.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Copy, Default, Args)]
pub struct CompatOption {
    /// Whose clients and tools are served as they are; docs/moving-from-rcrt.md describes what changes. Implies
    /// --rcrt-events
    #[arg(long, env = "RCRT_COMPAT", value_name = "SYSTEM")]
    compat: Option<Compat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Compat {
    Rcrt,
}

impl CompatOption {
    pub fn is_rcrt(self) -> bool {
        self.compat == Some(Compat::Rcrt)
    }
}
