//! `rcrt bootstrap`: seeds a folder into a running server.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use validate::Author;

use crate::config::Config;
use crate::exit::Failure;
use crate::output::{Output, one_line};
use crate::seed::{self, Row, SeedSet, What};
use crate::{connection, embedded};

/// Seed a folder of tools and other records: create what is new, update what changed
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every JSON file below the folder is one record; a tool's source may stand beside its JSON, with the same name and .ts. \
All files are validated first; a broken one is refused with everything that is wrong with it, the others go on, and the \
exit status is 1.

Examples:
  rcrt bootstrap                  (the folder bootstrap-breadcrumbs here, else the set in this program)
  rcrt bootstrap my-tools --dry-run
  rcrt bootstrap my-tools --prune")]
pub struct Bootstrap {
    /// The folder [default: ./bootstrap-breadcrumbs, else the set that comes with the program]
    #[arg(env = "RCRT_BOOTSTRAP_DIR", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only tell what would be done
    #[arg(long)]
    dry_run: bool,
    /// Remove what an earlier bootstrap of this folder brought and is no longer there
    #[arg(long)]
    prune: bool,
}

impl Bootstrap {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let folder = self.folder.clone();
        let set = tokio::task::spawn_blocking(move || read(folder)).await.context("the files were not read")??;
        let store = connection::store(config)?;
        let options = seed::Options { dry_run: self.dry_run, prune: self.prune, only_own: None };
        let rows = seed::apply(&*store, &set, options).await?;
        self.print(output, &set, &rows)?;
        if rows.iter().any(|row| row.what == What::Refused) { Err(Failure::Shown.into()) } else { Ok(()) }
    }

    #[allow(clippy::print_stderr)]
    fn print(&self, output: Output, set: &SeedSet, rows: &[Row]) -> anyhow::Result<()> {
        if output.is_json() {
            return output.json(&json!({"dry_run": self.dry_run, "files": rows, "warnings": set.warnings}));
        }
        let table: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let version = row.version.map_or_else(|| "-".into(), |version| version.to_string());
                vec![row.what.word(self.dry_run).to_owned(), version, row.path.clone(), one_line(&row.title, 60)]
            })
            .collect();
        output.table(&["DONE", "VERSION", "FILE", "NAME"], &table)?;
        output.line(&totals(rows, self.dry_run))?;
        for warning in &set.warnings {
            eprintln!("warning: {warning}");
        }
        for finding in rows.iter().flat_map(|row| &row.findings) {
            eprintln!("error: {finding}");
        }
        Ok(())
    }
}

/// The rules are those for users' tools: by them a runner judges what this command's agent writes.
fn read(folder: Option<PathBuf>) -> anyhow::Result<SeedSet> {
    let author = Author::User;
    match folder {
        Some(folder) => SeedSet::read(&folder, author),
        None if Path::new(embedded::NAME).is_dir() => SeedSet::read(Path::new(embedded::NAME), author),
        None => Ok(SeedSet::embedded(author)),
    }
}

/// `2 created, 1 updated, 12 unchanged`
fn totals(rows: &[Row], dry_run: bool) -> String {
    let all = [What::Created, What::Updated, What::Unchanged, What::Kept, What::Removed, What::Refused];
    let parts: Vec<String> = all
        .into_iter()
        .filter_map(|what| {
            let count = rows.iter().filter(|row| row.what == what).count();
            (count > 0).then(|| format!("{count} {}", what.word(dry_run)))
        })
        .collect();
    if parts.is_empty() { "nothing to do: no JSON files".into() } else { parts.join(", ") }
}
