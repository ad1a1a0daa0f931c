//! Why a sandbox is unavailable. A failure of a call is never one of these errors.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the worker {program} cannot be started: {source}")]
    Start { program: PathBuf, source: std::io::Error },
    #[error("the worker ended before it was ready: {0}")]
    Died(String),
    #[error("the worker was not ready after {0} seconds")]
    Slow(u64),
    #[error(
        "the worker uses protocol version {worker}, this program version {parent}; both must come from the same build"
    )]
    Version { worker: u32, parent: u32 },
    #[error("the worker broke the protocol: {0}")]
    Protocol(String),
    #[error("the socket to a worker: {0}")]
    Socket(std::io::Error),
    #[error("memory for the start-up snapshot: {0}")]
    Snapshot(std::io::Error),
    #[error("{}", unprotected(missing))]
    Unprotected {
        /// The name of each required protection that is not in force, and why.
        missing: Vec<(String, String)>,
    },
    #[error("the limits of a worker cannot be set: {0}")]
    Limits(String),
    #[error("the sandbox is closed")]
    Closed,
}

fn unprotected(missing: &[(String, String)]) -> String {
    let list: Vec<String> = missing.iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
    format!(
        "tools cannot run on this machine, because required protections are not available: {}. Enable them in the \
         kernel or the container (`rcrt doctor` lists all of them), or accept the risk with `--sandbox minimal`",
        list.join("; ")
    )
}
