//! `rcrt export`: a tenant's records as lines of JSON.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use rcrt_store::Export as What;

use crate::assembly::{DEFAULT_TENANT, DirectDatabase, check_url};
use crate::config::Config;
use crate::output::{Output, counted};
use crate::progress::ConsoleProgress;

/// Write a tenant's records as lines of JSON
#[derive(Debug, Args)]
#[command(after_long_help = "\
Reads the database directly, with or without a running server, so it needs the data folder or the URL of its database. \
The output is consistent. Its lines: first {\"export\": …}, then one {\"record\": …} for each record with all its fields, \
with --versions one {\"version\": …} for each older version, and last {\"end\": …}. Secrets, agents, grants and selectors \
are not included; `rcrt backup` has everything.

Examples:
  rcrt export > records.jsonl
  rcrt export --file tools.jsonl --schema tool.code.v1 --versions
  rcrt export --tenant acme | gzip > acme.jsonl.gz")]
pub struct Export {
    /// The file to write, readable only by its owner; it must not exist [default: stdout]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The tenant
    #[arg(long, env = "RCRT_TENANT", default_value = DEFAULT_TENANT, value_name = "NAME")]
    tenant: String,
    /// Only records with this schema name. Can be repeated, or separated by commas
    #[arg(long = "schema", value_name = "NAME", value_delimiter = ',')]
    schemas: Vec<String>,
    /// Include older versions
    #[arg(long)]
    versions: bool,
    /// Include records with the sensitivity `secret`
    #[arg(long)]
    with_secret: bool,
    /// The database, if it is not the embedded one of the data folder
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

impl Export {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        check_url(self.database_url.as_ref())?;
        let progress = ConsoleProgress::new();
        let mut to: Box<dyn Write + Send> = match &self.file {
            Some(file) => Box::new(BufWriter::new(create_new(file)?)),
            None => Box::new(BufWriter::new(std::io::stdout())),
        };
        let direct = DirectDatabase::open(config, self.database_url.as_ref(), &progress).await?;
        let what = What {
            tenant: self.tenant,
            schema_names: self.schemas,
            with_versions: self.versions,
            with_secret: self.with_secret,
            program: env!("CARGO_PKG_VERSION").to_owned(),
        };
        progress.step("Writing the records");
        let exported = rcrt_store::export_records(&direct.admin_url, &what, &mut *to).await;
        direct.close().await;
        progress.done();
        let (records, versions) = exported?;
        match &self.file {
            Some(_) if output.is_json() => output.json(&serde_json::json!({"records": records, "versions": versions})),
            Some(file) => {
                let records = counted(records, "record", "records");
                let versions = counted(versions, "old version", "old versions");
                output.line(&format!("{records}, {versions} in {}", file.display()))
            }
            None => Ok(()),
        }
    }
}

fn create_new(file: &Path) -> anyhow::Result<std::fs::File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(|| format!("{} cannot be created", file.display()))
}
