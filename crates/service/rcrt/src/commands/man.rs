//! `rcrt man`: writes the manual pages of all commands.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, CommandFactory};

use crate::cli::Cli;

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
