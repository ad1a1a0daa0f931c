//! `rcrt tool dev`: tests the tools of a folder at each change, and writes those that pass as
//! drafts.

use std::path::PathBuf;

use clap::Args;
use rcrt_sandbox::Level;

use super::folder_publisher::Publisher;
use super::tool_watch;
use crate::assembly::sandbox_level;
use crate::config::Config;
use crate::connection;
use crate::exit::fail;
use crate::host_options::PrivateHosts;
use crate::output::Output;
use crate::seed;

/// Watch a folder: validate and test each tool that changes, and write it as a draft if no example
/// fails
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints one line for each tool that changed, with the time since the change was seen. A tool with an error, or with an \
example that fails, is not written, and the version before it stays. A draft is a version that only its author can \
call; all others use the version before it, until `rcrt bootstrap DIR` publishes the folder. With --publish, each \
version is published at once. The records belong to the same source as with \
`rcrt bootstrap DIR`, which also writes records that are no tools, and removes tools with --prune.

Examples:
  rcrt tool dev my-tools
  rcrt tool dev my-tools --source billing-tools")]
pub struct Dev {
    /// The folder with the tools
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The name of the source, as for bootstrap [default: the full path of the folder]
    #[arg(long, env = "RCRT_BOOTSTRAP_SOURCE", value_name = "NAME", value_parser = seed::source_name)]
    source: Option<String>,
    /// Take over records that another source or an agent wrote
    #[arg(long)]
    adopt: bool,
    /// Update records that somebody changed after they were last published
    #[arg(long)]
    overwrite: bool,
    /// Publish each version that passes, instead of writing drafts
    #[arg(long)]
    publish: bool,
    #[command(flatten)]
    private_hosts: PrivateHosts,
    /// The required protection: strict, or minimal
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    sandbox: Level,
}

impl Dev {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        if !self.folder.is_dir() {
            fail!(Usage, "{} is not a folder", self.folder.display());
        }
        let allowed = self.private_hosts.allowed;
        let publisher = Publisher {
            client: connection::client(config)?,
            folder: self.folder.clone(),
            source: self.source,
            adopt: self.adopt,
            overwrite: self.overwrite,
            as_draft: !self.publish,
            allowed: allowed.clone(),
            output,
        };
        tool_watch::run(&[self.folder], &allowed, self.sandbox, Some(&publisher), output).await
    }
}
