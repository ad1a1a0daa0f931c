//! The one binary, and the only place where the parts are put together. `main` dispatches; each subcommand has a file
//! under `commands`, and `assembly` builds the running system.

mod assembly;
mod cli;
mod commands;
mod config;
mod connection;
mod embedded;
mod exit;
mod input;
mod keys;
mod logging;
mod output;
mod progress;
mod seed;
mod signals;
mod templates;
mod tool_file;
mod wait;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // First of all: a worker locks itself down while it is one thread that has touched nothing.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == cli::SANDBOX_WORKER) {
        // In a session of its own: Ctrl-C at the terminal is for the parent, which lets running calls end.
        let _ = nix::unistd::setsid();
        return isolate::worker_main(sandbox::protocol::SOCKET_FD);
    }
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::report_usage(&error),
    };
    let format = cli.config.output;
    if let Err(error) = logging::start(&cli.config, cli.command.default_log()) {
        return exit::report(&error, format);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&anyhow::Error::new(error).context("the runtime cannot start"), format),
    };
    match runtime.block_on(commands::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error, format),
    }
}
