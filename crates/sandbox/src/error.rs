//! Why a sandbox is unavailable. A failure within a call is its outcome, and never one of these.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the worker {program} cannot be started: {source}")]
    Start { program: PathBuf, source: std::io::Error },
    #[error("the worker ended before it was ready: {0}")]
    Died(String),
    #[error("the worker was not ready after {0} seconds")]
    Slow(u64),
    #[error("the worker speaks protocol {worker}, this program {parent}; both must be of one version")]
    Version { worker: u32, parent: u32 },
    #[error("the worker broke the protocol: {0}")]
    Protocol(String),
    #[error("memory for the start-up snapshot: {0}")]
    Snapshot(std::io::Error),
    #[error("{}", unprotected(missing))]
    Unprotected {
        /// The name of each required protection that does not stand, and why.
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
        "tools are not run here, because this machine does not give the protection that they call for: {}. Let the \
         kernel or the container give what is missing (`rcrt doctor` shows all of it), or accept the risk by name, \
         with `--sandbox minimal`",
        list.join("; ")
    )
}
