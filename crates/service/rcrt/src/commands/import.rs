//! `rcrt import`: records from lines that `rcrt export` or an archive of a server wrote.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use flate2::bufread::MultiGzDecoder;
use rcrt_store::{Imported, OnConflict};
use serde_json::json;

use crate::assembly::{DEFAULT_TENANT, DirectDatabase, check_url};
use crate::config::Config;
use crate::output::{Output, counted};
use crate::progress::ConsoleProgress;

/// Write the records of a file of `rcrt export`, or of an archive, into a tenant
#[derive(Debug, Args)]
#[command(after_long_help = "\
Writes to the database directly, with or without a running server. Records keep their ids, versions and times, so an \
interrupted import can be repeated. An invalid line stops the import with its line number; records before it may already \
be written. Imported requests are records only: no tool is called. A file compressed with gzip is decompressed. Of an \
archive (--archive of the servers), calls are imported and events are skipped; a server that deletes old calls deletes \
imported ones too.

Examples:
  rcrt import records.jsonl
  rcrt import records.jsonl --tenant acme --on-conflict replace
  rcrt import archive/acme/calls-2026-01-31.jsonl.gz --tenant acme")]
pub struct Import {
    /// The file; `-` for stdin
    file: PathBuf,
    /// The tenant; it must exist
    #[arg(long, env = "RCRT_TENANT", default_value = DEFAULT_TENANT, value_name = "NAME")]
    tenant: String,
    /// What to do with a record that already exists
    #[arg(long, value_enum, default_value = "skip")]
    on_conflict: Choice,
    /// Include records with the sensitivity `secret`
    #[arg(long)]
    with_secret: bool,
    /// The database, if it is not the embedded one of the data folder
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Choice {
    /// Keep the existing record
    Skip,
    /// Write the line as the record's next version
    Replace,
    /// Stop the import
    Fail,
}

impl Import {
    /// The file, decompressed if it is compressed.
    fn lines(&self) -> std::io::Result<Box<dyn BufRead + Send>> {
        let mut from: Box<dyn BufRead + Send> = if self.file.as_os_str() == "-" {
            Box::new(BufReader::new(std::io::stdin()))
        } else {
            Box::new(BufReader::new(File::open(&self.file)?))
        };
        // The first byte of gzip begins no line of JSON.
        Ok(if from.fill_buf()?.first() == Some(&0x1f) {
            Box::new(BufReader::new(MultiGzDecoder::new(from)))
        } else {
            from
        })
    }

    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        check_url(self.database_url.as_ref())?;
        let progress = ConsoleProgress::new();
        let mut from = self.lines().with_context(|| format!("{} cannot be read", self.file.display()))?;
        let on_conflict = match self.on_conflict {
            Choice::Skip => OnConflict::Skip,
            Choice::Replace => OnConflict::Replace,
            Choice::Fail => OnConflict::Fail,
        };
        let direct = DirectDatabase::open(config, self.database_url.as_ref(), &progress).await?;
        progress.step("Writing the records");
        let done =
            rcrt_store::import_lines(&direct.admin_url, &self.tenant, &mut *from, on_conflict, self.with_secret).await;
        direct.close().await;
        progress.done();
        let Imported { created, replaced, skipped, versions } =
            done.with_context(|| format!("{} cannot be imported", self.file.display()))?;
        if output.is_json() {
            return output
                .json(&json!({"created": created, "replaced": replaced, "skipped": skipped, "versions": versions}));
        }
        let versions = counted(versions, "old version", "old versions");
        output.line(&format!("{created} created, {replaced} replaced, {skipped} skipped; {versions}"))
    }
}
