//! `rcrt completions`: prints a shell's completion script.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;

/// Print a shell's completion script
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rcrt completions bash > ~/.local/share/bash-completion/completions/rcrt
  rcrt completions zsh > ~/.zfunc/_rcrt
  rcrt completions fish > ~/.config/fish/completions/rcrt.fish")]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    #[allow(clippy::unnecessary_wraps)]
    pub fn run(&self) -> anyhow::Result<()> {
        clap_complete::generate(self.shell, &mut Cli::command(), "rcrt", &mut std::io::stdout());
        Ok(())
    }
}
