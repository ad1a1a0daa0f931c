//! `--allow-private-host` and `--deny-host`, which several commands share.

use std::sync::Arc;

use clap::Args;
use rcrt_egress::{DeniedHost, PrivateHost};

/// For the runner, the validation of tools, and webhooks.
#[derive(Debug, Clone, Default, Args)]
pub struct PrivateHosts {
    /// A host with a non-public address that tools and webhooks can reach. With TOOL=, only the
    /// tool of that name (`webhooks` for webhooks). Can be repeated, or separated by commas in the
    /// environment. Only the name of a tool is checked, and anybody who can write tools can use a
    /// free name
    #[arg(
        id = "allow_private_hosts",
        long = "allow-private-host",
        env = "RCRT_ALLOW_PRIVATE_HOST",
        value_name = "[TOOL=]HOST[:PORT]",
        value_delimiter = ','
    )]
    pub allowed: Vec<PrivateHost>,
}

/// For the runner and webhooks.
#[derive(Debug, Clone, Default, Args)]
pub struct DeniedHosts {
    /// A host that no tool and no webhook can reach, whatever else is allowed: a name, *.NAME for
    /// all names below it, an address, or a block of addresses, which also denies every name that
    /// resolves into it. Can be repeated, or separated by commas in the environment
    #[arg(
        id = "denied_hosts",
        long = "deny-host",
        env = "RCRT_DENY_HOST",
        value_name = "HOST|ADDRESS/BITS",
        value_delimiter = ','
    )]
    denied: Vec<DeniedHost>,
}

impl DeniedHosts {
    pub fn shared(&self) -> Arc<[DeniedHost]> {
        self.denied.clone().into()
    }
}
