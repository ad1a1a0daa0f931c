//! `--allow-private-host`, the same for the runner, for the validation of tools before they run,
//! and for webhooks.

use clap::Args;
use executors::egress::PrivateHost;

#[derive(Debug, Clone, Default, Args)]
pub struct PrivateHosts {
    /// A host with a non-public address that tools and webhooks, or only those of the name (`webhooks` is theirs), may
    /// reach all the same; again for more, or with commas in the environment. A name is all that is looked at: whoever may write tools may take one that is
    /// free
    #[arg(
        id = "allow_private_hosts",
        long = "allow-private-host",
        env = "RCRT_ALLOW_PRIVATE_HOST",
        value_name = "[TOOL=]HOST[:PORT]",
        value_delimiter = ','
    )]
    pub allowed: Vec<PrivateHost>,
}
