//! The command line as clap reads it: one variant per subcommand, each with the options of its own file.

use clap::{Parser, Subcommand};

use crate::commands::{
    audit, backup, bench, bootstrap, call, completions, crumb, doctor, export, import, keys, restore, runner, secret,
    server, token, tool, up,
};
use crate::config::Config;
use crate::exit;

/// The subcommand by which the runner starts this binary again as a sandbox worker. Not for people: `main` takes it
/// before anything else is looked at.
pub const SANDBOX_WORKER: &str = "sandbox-worker";

/// The subcommand by which the runner starts this binary again to run a program in a jail. Not for people either.
pub const JAILED_COMMAND: &str = "jailed-command";

/// Tools for agents: written as records, run in a sandbox, answered as records
#[derive(Debug, Parser)]
#[command(name = "rcrt", version, after_help = exit::HELP, after_long_help = exit::HELP, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub config: Config,
    #[command(subcommand)]
    pub command: Command,
}

// Made once, at the start.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum Command {
    Up(up::Up),
    Server(server::Server),
    Runner(runner::Runner),
    Bootstrap(bootstrap::Bootstrap),
    Call(call::Call),
    #[command(subcommand)]
    Tool(tool::Tool),
    #[command(subcommand)]
    Crumb(crumb::Crumb),
    #[command(subcommand)]
    Secret(secret::Secret),
    Token(token::Token),
    #[command(subcommand)]
    Audit(audit::Audit),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Export(export::Export),
    Import(import::Import),
    #[command(subcommand)]
    Keys(keys::Keys),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
}

impl Command {
    /// Whether it works through a server that runs elsewhere.
    pub fn asks_a_server(&self) -> bool {
        !matches!(
            self,
            Self::Up(_)
                | Self::Server(_)
                | Self::Backup(_)
                | Self::Restore(_)
                | Self::Export(_)
                | Self::Import(_)
                | Self::Keys(_)
                | Self::Completions(_)
        )
    }

    /// Whether tools run in this process.
    pub fn runs_tools(&self) -> bool {
        matches!(self, Self::Up(_) | Self::Runner(_))
    }

    /// The long-running ones tell what they do; the others speak only when something is wrong.
    pub fn default_log(&self) -> &'static str {
        match self {
            // sqlx tells what Postgres remarks on, such as a table that is there already; egress each request of a tool.
            Self::Up(_) | Self::Server(_) | Self::Runner(_) => "info,sqlx=warn,egress=warn",
            _ => "warn",
        }
    }
}
