//! The subcommands, one file each.

pub mod a2a;
mod a2a_state;
pub mod agent;
pub mod audit;
pub mod backup;
pub mod bench;
mod bench_methods;
mod bench_report;
pub mod bootstrap;
mod bootstrap_report;
mod bootstrap_watch;
pub mod call;
pub mod calls;
mod catalog_wait;
pub mod cell;
pub mod crumb;
mod debug_lines;
pub mod doctor;
mod doctor_runbooks;
mod doctor_stored;
mod doctor_tools;
mod editor_files;
mod example_check;
mod example_file;
pub mod export;
mod failure_lines;
mod folder_publisher;
pub mod generated;
pub mod health;
pub mod import;
mod junit;
pub mod keys;
mod local_sandbox;
mod local_secrets;
pub mod logs;
pub mod mcp;
mod mcp_add;
mod mcp_changes;
mod mcp_install;
mod mcp_login;
mod mcp_serve;
mod mcp_state;
pub mod migrate;
pub mod open;
mod required_secrets;
pub mod restore;
pub mod runner;
mod runner_verdict;
pub mod runners;
pub mod scripts_manager;
pub mod secret;
pub mod server;
mod start_retry;
pub mod tenant;
mod tested_tool;
pub mod token;
pub mod tool;
mod tool_delete;
mod tool_deprecations;
mod tool_dev;
mod tool_diff;
mod tool_find;
mod tool_history;
mod tool_lookup;
mod tool_migrate;
mod tool_migrate_list;
mod tool_migrate_shadow;
mod tool_new;
mod tool_output;
mod tool_pin;
mod tool_publish;
mod tool_record;
mod tool_report;
mod tool_rollback;
mod tool_run;
mod tool_same_name;
mod tool_show;
mod tool_test;
mod tool_types;
mod tool_validate;
mod tool_versions;
mod tool_watch;
pub mod up;

use std::error::Error;

use rcrt_breadcrumb::StoreError;
use url::Url;

use crate::cli::{Cli, Command};
use crate::config::Config;
use crate::exit::Failure;
use crate::output::Output;

pub async fn run(cli: Cli) -> anyhow::Result<()> {
    let config = cli.config;
    let asks_a_server = cli.command.asks_a_server();
    let ended = Box::pin(dispatch(cli.command, &config)).await;
    if asks_a_server { ended.map_err(|error| name_the_server(error, &config)) } else { ended }
}

/// Adds what the store's error does not have: the server's URL, and how to get another token.
fn name_the_server(error: anyhow::Error, config: &Config) -> anyhow::Error {
    let Ok(url) = config.server_url() else { return error };
    let named = |cause: &(dyn Error + 'static)| match cause.downcast_ref::<StoreError>()? {
        StoreError::Unavailable(why) => {
            let hint = if rcrt_client::refused_for_now(why).is_some() { "" } else { IS_IT_RUNNING };
            Some(Failure::Unreachable(unavailable(&url, why) + hint).into())
        }
        StoreError::Internal(why) => Some(anyhow::anyhow!("{url}: {why}")),
        StoreError::Unauthorized(why) => Some(Failure::Refused(format!("{why}; {}", config.new_token_hint()?)).into()),
        _ => None,
    };
    let found = error.chain().find_map(named);
    found.unwrap_or(error)
}

const IS_IT_RUNNING: &str = "; is the server running? (`rcrt up` starts one)";

/// Why the server at `url` did not process a request, from [`StoreError::Unavailable`].
fn unavailable(url: &Url, why: &str) -> String {
    match rcrt_client::refused_for_now(why) {
        Some(refusal) => format!("{url} refuses the request for now: {refusal}"),
        None => format!("{url} cannot be reached: {why}"),
    }
}

async fn dispatch(command: Command, config: &Config) -> anyhow::Result<()> {
    let output = Output::new(config.output);
    match command {
        Command::Up(up) => Box::pin(up.run(config, output)).await,
        Command::Server(server) => server.run(config, output).await,
        Command::Runner(runner) => runner.run(config, output).await,
        Command::ScriptsManager(scripts_manager) => Box::pin(scripts_manager.run(config, output)).await,
        Command::Bootstrap(bootstrap) => bootstrap.run(config, output).await,
        Command::Bench(bench) => bench.run(config, output).await,
        Command::Call(call) => call.run(config, output).await,
        Command::Calls(calls) => calls.run(config, output).await,
        Command::Logs(logs) => logs.run(config, output).await,
        Command::Open(open) => open.run(config, output).await,
        Command::Runners(runners) => runners.run(config, output).await,
        Command::Tool(tool) => tool.run(config, output).await,
        Command::Crumb(crumb) => crumb.run(config, output).await,
        Command::A2a(a2a) => a2a.run(config, output).await,
        Command::Mcp(mcp) => mcp.run(config, output).await,
        Command::Secret(secret) => secret.run(config, output).await,
        Command::Agent(agent) => agent.run(config, output).await,
        Command::Tenant(tenant) => tenant.run(config, output).await,
        Command::Audit(audit) => audit.run(config, output).await,
        Command::Backup(backup) => backup.run(config, output).await,
        Command::Restore(restore) => restore.run(config, output).await,
        Command::Export(export) => export.run(config, output).await,
        Command::Import(import) => import.run(config, output).await,
        Command::Migrate(migrate) => migrate.run(config, output).await,
        Command::Cell(cell) => cell.run(config, output).await,
        Command::Keys(keys) => keys.run(config, output).await,
        Command::Token(token) => token.run(config, output).await,
        Command::Doctor(doctor) => Box::pin(doctor.run(config, output)).await,
        Command::Health(health) => health.run(config, output).await,
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}
