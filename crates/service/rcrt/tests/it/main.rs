//! Tests of the program from outside, as a person or a script uses it: real processes, a real
//! database, real calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, clippy::return_self_not_must_use)]

mod a2a;
mod access;
mod agent_tools;
mod authoring;
mod bench;
mod bootstrap;
mod calls;
mod cells;
mod constant_tool;
mod database;
mod editor_globals;
mod egress;
mod examples;
mod included_examples;
mod json_server;
mod killed;
mod logs;
mod mcp;
mod mcp_clients;
mod mcp_login;
mod messages;
mod migrated;
mod missing_keys;
mod model_server;
mod model_tools;
mod native;
mod native_examples;
mod offline;
mod operations;
mod pages;
mod program;
mod protections;
mod proxy;
mod rcrt_compat;
mod replaced;
mod retention;
mod runners;
#[cfg(target_os = "linux")]
mod scripts_manager;
mod secrets;
mod server_and_runner;
mod settings;
mod shutdown;
mod templates;
mod tenant;
mod tool_migrate;
mod tool_versions;
mod troubleshooting;
mod unresponsive;
mod up;
mod usage;
