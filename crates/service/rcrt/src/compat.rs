//! `--compat`, shared by the server and the runner.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Copy, Default, Args)]
pub struct CompatOption {
    /// The other system whose clients and tools work unchanged; see docs/moving-from-rcrt.md.
    /// Implies --rcrt-events
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
