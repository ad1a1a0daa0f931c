//! The binary `rcrt`, and the only place where the parts are put together.
//!
//! `main` only dispatches. Each subcommand has a file in `commands`; `assembly` builds the running
//! system. Begin with `cli.rs`, `commands/up.rs` and `assembly/system.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
// The comments of options are their help texts, with plain addresses and placeholders.
#![allow(rustdoc::bare_urls, rustdoc::invalid_html_tags)]
// Notes for people go to stderr. What a command prints goes through `output.rs`.
#![allow(clippy::print_stderr)]

mod assembly;
mod cli;
mod commands;
mod compat;
mod config;
mod connection;
mod embedded;
mod exit;
mod file_watch;
mod host_options;
mod input;
mod keys;
mod logging;
mod output;
mod progress;
mod progress_bar;
mod seed;
mod settings;
mod shell;
mod signals;
mod telemetry;
mod templates;
mod tool_file;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // First of all: both restrict themselves while the process has one thread and has opened
    // nothing.
    let first = std::env::args_os().nth(1);
    if first.as_ref().is_some_and(|first| first == cli::JAILED_COMMAND) {
        return rcrt_jail::command::jailed_command();
    }
    if first.is_some_and(|first| first == cli::SANDBOX_WORKER) {
        // In a separate session: Ctrl-C at the terminal is for the parent, which lets running calls
        // finish.
        let _ = nix::unistd::setsid();
        return rcrt_isolate::worker_main(rcrt_sandbox::protocol::SOCKET_FD);
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
    let telemetry = if cli.command.runs_tools() {
        telemetry::Telemetry::start(runtime.handle())
    } else {
        telemetry::Telemetry::default()
    };
    let ended = runtime.block_on(commands::run(cli));
    telemetry.close();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error, format),
    }
}
