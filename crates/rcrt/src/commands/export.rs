//! `rcrt export`: a tenant's records as lines of JSON.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use store::Export as What;

use crate::assembly::{DEFAULT_TENANT, DirectDatabase, check_url};
use crate::config::Config;
use crate::output::Output;
use crate::progress::ConsoleProgress;

/// Write a tenant's records as lines of JSON
#[derive(Debug, Args)]
#[command(after_long_help = "\
Goes to the database itself, beside a server or without one, so it is for who owns the data folder (or has its database's \
URL). What it writes is of one moment. The lines: {\"export\": …} first, then one {\"record\": …} for each record with all \
its fields, with --versions one {\"version\": …} for each version before, and {\"end\": …} last. Secrets, agents, grants \
and selectors are not in it; `rcrt backup` has everything.

Examples:
  rcrt export > records.jsonl
  rcrt export --file tools.jsonl --schema tool.code.v1 --versions
  rcrt export --tenant acme | gzip > acme.jsonl.gz")]
pub struct Export {
    /// The file to write, readable by its owner alone; it must not be there yet [default: stdout]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The tenant
    #[arg(long, env = "RCRT_TENANT", default_value = DEFAULT_TENANT, value_name = "NAME")]
    tenant: String,
    /// Only records of this schema (again for more, or with commas)
    #[arg(long = "schema", value_name = "NAME", value_delimiter = ',')]
    schemas: Vec<String>,
    /// Also the versions before the present one
    #[arg(long)]
    versions: bool,
    /// Also records of the sensitivity `secret`
    #[arg(long)]
    with_secret: bool,
    /// The database, where it is not the data folder's own
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

impl Export {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        check_url(self.database_url.as_ref())?;
        let progress = ConsoleProgress::new();
        let mut to: Box<dyn Write + Send> = match &self.file {
            Some(file) => Box::new(BufWriter::new(fresh(file)?)),
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
        let exported = store::export_records(&direct.admin_url, &what, &mut *to).await;
        direct.close().await;
        progress.done();
        let (records, versions) = exported?;
        match &self.file {
            Some(_) if output.is_json() => output.json(&serde_json::json!({"records": records, "versions": versions})),
            Some(file) => output.line(&format!("{records} records, {versions} old versions in {}", file.display())),
            None => Ok(()),
        }
    }
}

fn fresh(file: &Path) -> anyhow::Result<std::fs::File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(|| format!("{} cannot be made", file.display()))
}
