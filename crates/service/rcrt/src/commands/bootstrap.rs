//! `rcrt bootstrap`: seeds a folder into a running server.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::{Breadcrumbs, StoreError, ToolDefinition, ToolSource};
use rcrt_egress::PrivateHost;
use rcrt_validate::Author;
use serde_json::json;

use super::required_secrets::KnownSecrets;
use crate::config::Config;
use crate::exit::Failure;
use crate::output::{Output, one_line};
use crate::private_hosts::PrivateHosts;
use crate::seed::{self, Seed, SeedOutcome, SeedResult, SeedSet};
use crate::{connection, embedded};

/// Seed a folder of tools and other records: create what is new, update what changed
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every JSON file below the folder is one record. A tool's source can be in a file of the same name with .ts. All files \
are validated first. A file with errors is refused with all its errors, the others are written, and the exit status \
is 1. A curator's tool.code.v1 takes precedence over a tool.v1 of the same name: a record that another agent wrote is \
then written again, even if nothing else changes. A warning names each secret that a tool lacks or can read. Tools for \
hosts inside the operator's network need the same --allow-private-host here as for the runner.

Examples:
  rcrt bootstrap                  (the folder bootstrap-breadcrumbs here, else the set in this program)
  rcrt bootstrap my-tools --dry-run
  rcrt bootstrap my-tools --prune")]
pub struct Bootstrap {
    /// The folder [default: ./bootstrap-breadcrumbs, else the set in the program]
    #[arg(env = "RCRT_BOOTSTRAP_DIR", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Remove records that an earlier bootstrap of this folder wrote and whose files are gone
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    private_hosts: PrivateHosts,
}

impl Bootstrap {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let (folder, allowed) = (self.folder.clone(), self.private_hosts.allowed.clone());
        let set =
            tokio::task::spawn_blocking(move || read(folder, &allowed)).await.context("reading the files failed")??;
        let client = connection::client(config)?;
        // Only curators see the agents of their tenant.
        let as_curator = match client.agents().await {
            Ok(_) => true,
            Err(StoreError::Forbidden(_)) => false,
            Err(error) => return Err(error.into()),
        };
        let options = seed::Options { dry_run: self.dry_run, prune: self.prune, only_own: None, as_curator };
        let rows = seed::apply(&client, &set, options).await?;
        let mut warnings = set.warnings.clone();
        warnings.extend(about_secrets(&client, &set, &rows).await?);
        self.print(output, &rows, &warnings)?;
        if rows.iter().any(|row| row.what == SeedOutcome::Refused) { Err(Failure::Shown.into()) } else { Ok(()) }
    }

    #[allow(clippy::print_stderr)]
    fn print(&self, output: Output, rows: &[SeedResult], warnings: &[String]) -> anyhow::Result<()> {
        if output.is_json() {
            return output.json(&json!({"dry_run": self.dry_run, "files": rows, "warnings": warnings}));
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
        for warning in warnings {
            eprintln!("warning: {warning}");
        }
        for finding in rows.iter().flat_map(|row| &row.findings) {
            eprintln!("error: {finding}");
        }
        Ok(())
    }
}

/// Validates with the rules for users' tools, as a runner does for records of this command's agent.
fn read(folder: Option<PathBuf>, allowed: &[PrivateHost]) -> anyhow::Result<SeedSet> {
    let author = Author::User;
    match folder {
        Some(folder) => SeedSet::read(&folder, author, allowed),
        None if Path::new(embedded::NAME).is_dir() => SeedSet::read(Path::new(embedded::NAME), author, allowed),
        None => Ok(SeedSet::embedded(author, allowed)),
    }
}

/// Warns of secrets that the set's tools need and lack, and of secrets that their code can read.
async fn about_secrets(store: &dyn Breadcrumbs, set: &SeedSet, rows: &[SeedResult]) -> anyhow::Result<Vec<String>> {
    let asking: Vec<(&Seed, Vec<String>)> =
        set.seeds.iter().map(|seed| (seed, required_secrets(seed))).filter(|(_, names)| !names.is_empty()).collect();
    if asking.is_empty() {
        return Ok(Vec::new());
    }
    let known = KnownSecrets::read(store).await?;
    let mut warnings = Vec::new();
    for (seed, names) in &asking {
        let path = &seed.path;
        let row = rows.iter().find(|row| row.path == *path && row.what != SeedOutcome::Refused);
        let Some(row) = row else { continue };
        let tool = row.id.map_or_else(|| seed.name().to_owned(), |id| id.to_string());
        let Some(needs) = known.needs(row.id.zip(row.version), names) else {
            let names = names.join(", ");
            warnings.push(format!("{path}: needs secrets ({names}); this token cannot check them"));
            continue;
        };
        for need in needs {
            if let Some(lack) = need.lack {
                let (sentence, fix) = (lack.sentence(need.name), lack.fix_command(need.name, &tool));
                warnings.push(format!("{path}: {sentence}; fix it with `{fix}`"));
            }
            if need.is_readable() {
                let name = need.name;
                warnings
                    .push(format!("{path}: the secret {name:?} is readable: the tool's code gets the value itself"));
            }
        }
    }
    Ok(warnings)
}

fn required_secrets(seed: &Seed) -> Vec<String> {
    let record = &seed.record;
    let schema = record.schema_name.as_deref().unwrap_or_default();
    ToolDefinition::read(schema, &record.context, record.description.as_deref(), record.semantic_version.as_deref())
        // The needs of native tools depend on the settings; `rcrt doctor` shows them.
        .ok()
        .filter(|tool| tool.implementation.source() != ToolSource::Native)
        .map(|tool| tool.required_secrets)
        .unwrap_or_default()
}

/// `2 created, 1 updated, 12 unchanged`
fn totals(rows: &[SeedResult], dry_run: bool) -> String {
    let all = [
        SeedOutcome::Created,
        SeedOutcome::Updated,
        SeedOutcome::Unchanged,
        SeedOutcome::Kept,
        SeedOutcome::Removed,
        SeedOutcome::Refused,
    ];
    let parts: Vec<String> = all
        .into_iter()
        .filter_map(|what| {
            let count = rows.iter().filter(|row| row.what == what).count();
            (count > 0).then(|| format!("{count} {}", what.word(dry_run)))
        })
        .collect();
    if parts.is_empty() { "nothing to do: no JSON files".into() } else { parts.join(", ") }
}
