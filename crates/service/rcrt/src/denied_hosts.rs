//! `--deny-host`, shared by the runner and webhooks.

use std::sync::Arc;

use clap::Args;
use rcrt_egress::DeniedHost;

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
