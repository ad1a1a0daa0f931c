//! `rcrt import`: records from lines that `rcrt export` wrote.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::json;
use store::{Imported, OnConflict};

use crate::assembly::{DEFAULT_TENANT, DirectDatabase, check_url};
use crate::config::Config;
use crate::output::Output;
use crate::progress::ConsoleProgress;

/// Write the records of a file that `rcrt export` wrote into a tenant
#[derive(Debug, Args)]
#[command(after_long_help = "\
Goes to the database itself, beside a server or without one. Records keep their ids, versions and times, so an import that \
was cut off may simply be repeated. A line that is wrong ends it and is named by its number; what stood before it may be \
written already. Imported requests are records only: no tool is called.

Examples:
  rcrt import records.jsonl
  rcrt import records.jsonl --tenant acme --on-conflict replace
  gunzip < acme.jsonl.gz | rcrt import -")]
pub struct Import {
    /// The file; `-` for stdin
    file: PathBuf,
    /// The tenant; it must be there
    #[arg(long, env = "RCRT_TENANT", default_value = DEFAULT_TENANT, value_name = "NAME")]
    tenant: String,
    /// What happens to a record that is there already
    #[arg(long, value_enum, default_value = "skip")]
    on_conflict: Choice,
    /// Also records of the sensitivity `secret`
    #[arg(long)]
    with_secret: bool,
    /// The database, where it is not the data folder's own
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Choice {
    /// What is there stays
    Skip,
    /// The line becomes the record's next version
    Replace,
    /// The import ends
    Fail,
}

impl Import {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        check_url(self.database_url.as_ref())?;
        let progress = ConsoleProgress::new();
        let mut from: Box<dyn BufRead + Send> = if self.file.as_os_str() == "-" {
            Box::new(BufReader::new(std::io::stdin()))
        } else {
            let file = File::open(&self.file).with_context(|| format!("{} cannot be read", self.file.display()))?;
            Box::new(BufReader::new(file))
        };
        let on_conflict = match self.on_conflict {
            Choice::Skip => OnConflict::Skip,
            Choice::Replace => OnConflict::Replace,
            Choice::Fail => OnConflict::Fail,
        };
        let direct = DirectDatabase::open(config, self.database_url.as_ref(), &progress).await?;
        progress.step("Writing the records");
        let done =
            store::import_lines(&direct.admin_url, &self.tenant, &mut *from, on_conflict, self.with_secret).await;
        direct.close().await;
        progress.done();
        let Imported { created, replaced, skipped, versions } =
            done.with_context(|| format!("{} is not imported", self.file.display()))?;
        if output.is_json() {
            return output
                .json(&json!({"created": created, "replaced": replaced, "skipped": skipped, "versions": versions}));
        }
        output.line(&format!("{created} created, {replaced} replaced, {skipped} skipped; {versions} old versions"))
    }
}
