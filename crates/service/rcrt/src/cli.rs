//! The command line: one variant per subcommand, each with the options of its own file.

use clap::{Parser, Subcommand};

use crate::commands::{
    a2a, agent, audit, backup, bench, bootstrap, call, calls, cell, crumb, doctor, export, generated, health, import,
    keys, logs, mcp, migrate, open, restore, runner, runners, scripts_manager, secret, server, tenant, token, tool, up,
};
use crate::config::Config;
use crate::exit;

/// The internal subcommand that runs this binary as a sandbox worker. `main` handles it before
/// anything else.
pub const SANDBOX_WORKER: &str = "sandbox-worker";

/// The internal subcommand that runs a program in a jail.
pub const JAILED_COMMAND: &str = "jailed-command";

/// A tool runtime for agents: tools are records, run in a sandbox, and respond with records
#[derive(Debug, Parser)]
#[command(name = "rcrt", version, after_help = exit::HELP, after_long_help = exit::HELP, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub config: Config,
    #[command(subcommand)]
    pub command: Command,
}

// Created once, at the start.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Subcommand)]
pub enum Command {
    Up(up::Up),
    Open(open::Open),
    Server(server::Server),
    Runner(runner::Runner),
    ScriptsManager(scripts_manager::ScriptsManager),
    Runners(runners::Runners),
    Bootstrap(bootstrap::Bootstrap),
    Call(call::Call),
    Calls(calls::Calls),
    Logs(logs::Logs),
    #[command(subcommand)]
    Tool(tool::Tool),
    #[command(subcommand)]
    Crumb(crumb::Crumb),
    #[command(subcommand)]
    Mcp(mcp::Mcp),
    #[command(subcommand)]
    A2a(a2a::A2a),
    #[command(subcommand)]
    Secret(secret::Secret),
    #[command(subcommand)]
    Agent(agent::Agent),
    #[command(subcommand)]
    Tenant(tenant::Tenant),
    Token(token::Token),
    Audit(audit::Audit),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Export(export::Export),
    Import(import::Import),
    Migrate(migrate::Migrate),
    #[command(subcommand)]
    Cell(cell::Cell),
    #[command(subcommand)]
    Keys(keys::Keys),
    Bench(bench::Bench),
    Doctor(doctor::Doctor),
    Health(health::Health),
    Completions(generated::Completions),
    Man(generated::Man),
}

impl Command {
    /// Returns whether the command uses a running server.
    pub fn asks_a_server(&self) -> bool {
        !matches!(
            self,
            Self::Up(_)
                | Self::Server(_)
                | Self::Backup(_)
                | Self::Restore(_)
                | Self::Export(_)
                | Self::Import(_)
                | Self::Migrate(_)
                | Self::Cell(_)
                | Self::Keys(_)
                | Self::Health(_)
                | Self::Completions(_)
                | Self::Man(_)
        )
    }

    /// Returns whether tools run in this process.
    pub fn runs_tools(&self) -> bool {
        matches!(self, Self::Up(_) | Self::Runner(_) | Self::ScriptsManager(_))
    }

    /// The default log filter: long-running commands log what they do, the others only problems.
    pub fn default_log(&self) -> &'static str {
        match self {
            // sqlx logs the notices of Postgres, egress each request of a tool, rmcp each
            // connection.
            Self::Up(_) | Self::Server(_) | Self::Runner(_) | Self::ScriptsManager(_) => {
                "info,sqlx=warn,egress=warn,rmcp=warn"
            }
            // How long a move paused the tenant.
            Self::Cell(_) => "warn,rcrt_cells=info",
            _ => "warn",
        }
    }
}
