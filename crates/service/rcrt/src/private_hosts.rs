//! `--allow-private-host`, shared by the runner, the validation of tools, and webhooks.

use clap::Args;
use rcrt_egress::PrivateHost;

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
