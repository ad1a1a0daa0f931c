//! What is generated from the command line: `rcrt completions` and `rcrt man`.

use std::path::PathBuf;

use anyhow::Context;
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

/// Write the manual pages of all commands
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  rcrt man ~/.local/share/man/man1
  man rcrt-runner")]
pub struct Man {
    /// The folder to write to; created if it does not exist
    folder: PathBuf,
}

impl Man {
    pub fn run(&self) -> anyhow::Result<()> {
        let folder = &self.folder;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be created", folder.display()))?;
        clap_mangen::generate_to(Cli::command(), folder)
            .with_context(|| format!("the manual pages cannot be written to {}", folder.display()))
    }
}
