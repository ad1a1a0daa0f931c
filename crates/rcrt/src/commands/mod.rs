//! One file per subcommand: its options, and what it does.

pub mod bootstrap;
pub mod call;
pub mod completions;
pub mod crumb;
pub mod doctor;
pub mod runner;
pub mod secret;
pub mod server;
pub mod token;
pub mod tool;
mod tool_new;
mod tool_show;
mod tool_validate;
pub mod up;

use crate::cli::{Cli, Command};
use crate::output::Output;

pub async fn run(cli: Cli) -> anyhow::Result<()> {
    let config = cli.config;
    let output = Output::new(config.output);
    match cli.command {
        Command::Up(up) => up.run(&config, output).await,
        Command::Server(server) => server.run(&config, output).await,
        Command::Runner(runner) => runner.run(&config, output).await,
        Command::Bootstrap(bootstrap) => bootstrap.run(&config, output).await,
        Command::Call(call) => call.run(&config, output).await,
        Command::Tool(tool) => tool.run(&config, output).await,
        Command::Crumb(crumb) => crumb.run(&config, output).await,
        Command::Secret(secret) => secret.run(&config, output).await,
        Command::Token(token) => token.run(&config, output).await,
        Command::Doctor(doctor) => doctor.run(&config, output).await,
        Command::Completions(completions) => completions.run(),
    }
}
