//! `rcrt bootstrap`: seeds a folder into a running server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use chrono::Utc;
use clap::Args;
use rcrt_breadcrumb::{Breadcrumbs, StoreError, ToolDefinition, ToolSource};
use rcrt_client::Client;
use rcrt_egress::PrivateHost;
use rcrt_sandbox::Level;
use rcrt_validate::Author;

use super::bootstrap_report::BootstrapReport;
use super::bootstrap_watch;
use super::example_check::ExampleCheck;
use super::required_secrets::KnownSecrets;
use super::runner_verdict::Verdicts;
use crate::assembly::sandbox_level;
use crate::config::Config;
use crate::exit::{Failure, fail};
use crate::host_options::PrivateHosts;
use crate::output::Output;
use crate::seed::{self, Seed, SeedCheck, SeedOutcome, SeedResult, SeedSet};
use crate::{connection, embedded};

/// Seed a folder of tools and other records: create what is new, update what changed
#[derive(Debug, Args)]
#[command(after_long_help = "\
Every JSON file below the folder is one record, except tsconfig.json. A tool's source can be in a file of the same name with .ts. All files \
are validated first. A file with errors is refused with all its errors, the others are written, and the exit status \
is 1. The examples of each tool that is new or changed run in a sandbox of this machine, as with `rcrt tool test`. A \
tool whose example fails is refused, so it does not replace a version that works. A curator's tool.code.v1 takes precedence over a tool.v1 of the same name: a record that another agent wrote is \
then written again, even if nothing else changes. A warning names each secret that a tool lacks or can read. Tools for \
hosts inside the operator's network need the same --allow-private-host here as for the runner.

A record belongs to the source that wrote it: the folder's full path, or the name in --source. The folder \
./bootstrap-breadcrumbs and the set in this program are one source, bootstrap-breadcrumbs. A record of another \
source needs --adopt. A record that somebody changed after the last bootstrap, for example by a rollback, is kept and \
the exit status is 1; --overwrite writes the file over it. The same holds for a retired tool. If a runner is connected, the command waits for it to load \
the tools, and exits with 1 if it refuses one or has not reported on it in the time of --wait.

Examples:
  rcrt bootstrap                  (the folder bootstrap-breadcrumbs here, else the set in this program)
  rcrt bootstrap my-tools --dry-run
  rcrt bootstrap my-tools --prune
  rcrt bootstrap my-tools --source billing-tools --watch")]
pub struct Bootstrap {
    /// The folder [default: ./bootstrap-breadcrumbs, else the set in the program]
    #[arg(env = "RCRT_BOOTSTRAP_DIR", value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Only show what would change
    #[arg(long)]
    dry_run: bool,
    /// Remove records that an earlier bootstrap of this source wrote and whose files no longer
    /// exist
    #[arg(long)]
    prune: bool,
    /// The name of the source, the same on every machine [default: the full path of the folder]
    #[arg(long, env = "RCRT_BOOTSTRAP_SOURCE", value_name = "NAME", value_parser = seed::source_name)]
    source: Option<String>,
    /// Take over records that another source or an agent wrote
    #[arg(long)]
    adopt: bool,
    /// Update, or with --prune remove, records that somebody changed after the last bootstrap, and
    /// bring back retired tools
    #[arg(long)]
    overwrite: bool,
    /// How long to wait for a runner to load the tools; 0 does not wait
    #[arg(long, default_value_t = 20, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=600))]
    wait: u64,
    /// Keep running, and apply each change of the files
    #[arg(long, conflicts_with = "dry_run")]
    watch: bool,
    /// Publish tools without running their examples
    #[arg(long)]
    no_examples: bool,
    /// The required protection for examples: strict, or minimal
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    sandbox: Level,
    #[command(flatten)]
    private_hosts: PrivateHosts,
}

impl Bootstrap {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        // The tests of this project run the examples of the included records.
        let is_tested = self.no_examples || (self.folder.is_none() && !Path::new(embedded::NAME).is_dir());
        let check = (!is_tested).then(|| ExampleCheck::new(self.sandbox));
        let ended = self.seed(config, output, check.as_ref()).await;
        if let Some(check) = check {
            check.close().await;
        }
        ended
    }

    async fn seed(&self, config: &Config, output: Output, check: Option<&ExampleCheck>) -> anyhow::Result<()> {
        if self.watch {
            let folder = self.folder.clone().unwrap_or_else(|| PathBuf::from(embedded::NAME));
            if !folder.is_dir() {
                fail!(Usage, "{} is not a folder, so --watch has nothing to watch", folder.display());
            }
            let client = connection::client(config)?;
            return bootstrap_watch::run(&folder, output, || self.read_files(), |set| self.apply(&client, set, check))
                .await;
        }
        let set = self.read_files().await?;
        let report = self.apply(&connection::client(config)?, set, check).await?;
        report.print(output)?;
        if report.has_failed() { Err(Failure::Shown.into()) } else { Ok(()) }
    }

    async fn read_files(&self) -> anyhow::Result<SeedSet> {
        let (folder, source, allowed) = (self.folder.clone(), self.source.clone(), self.private_hosts.allowed.clone());
        tokio::task::spawn_blocking(move || read(folder, source.as_deref(), &allowed))
            .await
            .context("reading the files failed")?
    }

    async fn apply(
        &self,
        client: &Client,
        set: SeedSet,
        check: Option<&ExampleCheck>,
    ) -> anyhow::Result<BootstrapReport> {
        let options = seed::Options {
            dry_run: self.dry_run,
            prune: self.prune,
            adopt: self.adopt,
            overwrite: self.overwrite,
            ..seed::Options::default()
        };
        let check = check.map(|check| check as &dyn SeedCheck);
        write(client, &set, options, check, Duration::from_secs(self.wait)).await
    }
}

/// Writes the set, and waits for the runners' verdicts on its tools.
pub(super) async fn write(
    client: &Client,
    set: &SeedSet,
    options: seed::Options,
    check: Option<&dyn SeedCheck>,
    patience: Duration,
) -> anyhow::Result<BootstrapReport> {
    // Only curators see the agents of their tenant.
    let as_curator = match client.agents().await {
        Ok(_) => true,
        Err(StoreError::Forbidden(_)) => false,
        Err(error) => return Err(error.into()),
    };
    let options = seed::Options { as_curator, ..options };
    let rows = seed::apply(client, set, options, check).await?;
    let mut warnings = set.warnings.clone();
    warnings.extend(set.seeds.iter().filter_map(about_removal));
    warnings.extend(about_secrets(client, set, &rows).await?);
    let verdicts =
        if options.dry_run { Verdicts::default() } else { Verdicts::wait(client, set, &rows, patience).await? };
    warnings.extend(verdicts.warnings());
    Ok(BootstrapReport { dry_run: options.dry_run, rows, verdicts, warnings })
}

/// Validates with the rules for users' tools, as a runner does for records of this command's agent.
/// Included tools can have private hosts, for which they wait.
pub(super) fn read(folder: Option<PathBuf>, source: Option<&str>, allowed: &[PrivateHost]) -> anyhow::Result<SeedSet> {
    let default = Path::new(embedded::NAME);
    let Some(folder) = folder.or_else(|| default.is_dir().then(|| default.to_owned())) else {
        if source.is_some_and(|name| name != embedded::NAME) {
            fail!(Usage, "--source must name a folder, and {} does not exist here; name one", embedded::NAME);
        }
        return Ok(SeedSet::embedded(Author::System, allowed));
    };
    // The default folder has the source of the included records, which `rcrt up` wrote from it.
    let is_default = default.canonicalize().is_ok_and(|path| folder.canonicalize().is_ok_and(|folder| folder == path));
    if source == Some(embedded::NAME) && !is_default {
        fail!(
            Usage,
            "the source {0} has the included records, and only the folder ./{0} can have it; choose another --source",
            embedded::NAME
        );
    }
    let author = if is_default { Author::System } else { Author::User };
    SeedSet::read(&folder, source.or(is_default.then_some(embedded::NAME)), author, allowed)
}

/// Warns of a tool that no call reaches, because the last day in its file is over.
fn about_removal(seed: &Seed) -> Option<String> {
    let tool = definition(seed)?;
    let why = tool.deprecated?.removal(seed.name(), Utc::now())?;
    Some(format!("{}: {why}; change deprecated.remove_after, or delete the file", seed.path))
}

/// Warns of secrets that the set's tools need and lack, and of secrets that their code can read.
async fn about_secrets(store: &dyn Breadcrumbs, set: &SeedSet, rows: &[SeedResult]) -> anyhow::Result<Vec<String>> {
    let asking: Vec<(&Seed, ToolDefinition)> =
        set.seeds.iter().filter_map(|seed| Some((seed, with_secrets(seed)?))).collect();
    if asking.is_empty() {
        return Ok(Vec::new());
    }
    let known = KnownSecrets::read(store).await?;
    let mut warnings = Vec::new();
    for (seed, definition) in &asking {
        let names = &definition.required_secrets;
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
                let (sentence, fix) = (lack.sentence(need.name), lack.fix(need.name, &tool, definition));
                warnings.push(format!("{path}: {sentence}; fix it with {fix}"));
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

/// The definition of a tool; `None` for another record.
fn definition(seed: &Seed) -> Option<ToolDefinition> {
    let record = &seed.record;
    let schema = record.schema_name.as_deref().unwrap_or_default();
    ToolDefinition::read(schema, &record.context, record.description.as_deref(), record.semantic_version.as_deref())
        .ok()
}

/// The definition of a tool that needs secrets.
fn with_secrets(seed: &Seed) -> Option<ToolDefinition> {
    // The needs of native tools depend on the settings; `rcrt doctor` shows them.
    definition(seed)
        .filter(|tool| tool.implementation.source() != ToolSource::Native)
        .filter(|tool| !tool.required_secrets.is_empty())
}
