//! `rcrt tool migrate`: from a `tool.v1` to a `tool.code.v1`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use rcrt_breadcrumb::{Breadcrumb, NewBreadcrumb, ToolDefinition, schema_names};
use rcrt_client::Client;
use rcrt_egress::EgressOptions;
use rcrt_examples::{ExampleReport, ExampleStatus};
use rcrt_executors::rest;
use rcrt_sandbox::Level;
use rcrt_validate::Author;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::folder_publisher::Publisher;
use super::local_sandbox::LocalSandbox;
use super::local_secrets::LocalSecrets;
use super::tested_tool::{TestedTool, lines};
use super::tool_lookup::{read, tools};
use super::tool_migrate_list as list;
use super::tool_validate;
use crate::assembly::sandbox_level;
use crate::config::Config;
use crate::connection;
use crate::exit::{Failure, fail};
use crate::host_options::PrivateHosts;
use crate::output::Output;
use crate::tool_file::{ExpectedRecord, LocatedFinding};

/// Move a tool from the schema tool.v1 to tool.code.v1
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without a name it lists the tools of the schema tool.v1 with their calls and the next step. With the name of an http \
tool it writes the same tool as code into NAME.json and NAME.ts, unless they exist, and runs both tools with each \
example. It prints where requests or results differ; the exit status is 1 if they do, or if nothing could be compared. \
With the name of a tool that has a shadow it prints what came of the shadow's runs.

Examples:
  rcrt tool migrate
  rcrt tool migrate holidays --dir my-tools
  rcrt tool migrate holidays --dir my-tools --shadow 10%
  rcrt tool migrate holidays
  rcrt tool migrate holidays --promote
  rcrt tool migrate holidays --retire-legacy")]
pub struct Migrate {
    /// The name of a tool of the schema tool.v1
    pub(super) name: Option<String>,
    /// The folder of the tool's files
    #[arg(long, env = "RCRT_TOOLS_DIR", default_value = ".", value_name = "DIR")]
    dir: PathBuf,
    /// Run the examples on the real network, instead of with their `http`
    #[arg(long, requires = "name")]
    live: bool,
    /// With --live: a JSON file with the values of secrets, {"NAME": "value"}
    #[arg(long, value_name = "FILE", requires = "live")]
    secrets: Option<PathBuf>,
    /// Publish the files if both tools do the same, as `rcrt bootstrap` does
    #[arg(long, requires = "name", group = "step")]
    publish: bool,
    /// Make the code a draft that runners run beside the old tool, for N percent of its calls; 0
    /// ends that
    #[arg(long, value_name = "N%", requires = "name", group = "step", value_parser = percent)]
    pub(super) shadow: Option<u8>,
    /// Publish the draft: from now on it answers the calls
    #[arg(long, requires = "name", group = "step")]
    pub(super) promote: bool,
    /// Retire the old tool, after the code has taken its name
    #[arg(long, requires = "name", group = "step")]
    pub(super) retire_legacy: bool,
    #[command(flatten)]
    private_hosts: PrivateHosts,
    /// The required protection: strict, or minimal
    #[arg(long, env = "RCRT_SANDBOX", default_value_t, value_name = "LEVEL", value_parser = sandbox_level())]
    sandbox: Level,
}

fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|number| *number <= 100);
    number.ok_or_else(|| "must be from 0% to 100%".to_owned())
}

/// The records of one name.
pub(super) struct Records {
    pub legacy: Breadcrumb,
    /// The code that is no draft.
    pub code: Option<Breadcrumb>,
    pub draft: Option<Breadcrumb>,
}

impl Records {
    async fn read(client: &Client, name: &str) -> anyhow::Result<Self> {
        let mut all = tools(client, Some(name)).await?;
        all.sort_by_key(|record| (record.created_at, record.id));
        Self::of(all)
            .ok_or_else(|| Failure::NotFound(format!("there is no tool {name:?} of the schema tool.v1")).into())
    }

    /// `None` if there is no `tool.v1` among these records of one name, the oldest first.
    pub fn of(all: Vec<Breadcrumb>) -> Option<Self> {
        let (mut legacy, mut code, mut draft) = (None, None, None);
        for record in all {
            let is_legacy = record.schema_name.as_deref() == Some(schema_names::TOOL_V1);
            let place = match (is_legacy, rcrt_breadcrumb::is_draft(&record.tags)) {
                (true, _) => &mut legacy,
                (false, false) => &mut code,
                (false, true) => &mut draft,
            };
            place.get_or_insert(record);
        }
        Some(Self { legacy: legacy?, code, draft })
    }
}

/// What both tools did with the examples.
struct Proof {
    files: Vec<PathBuf>,
    examples: Vec<ExampleReport>,
    /// The code as a record.
    record: NewBreadcrumb,
}

impl Migrate {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        let Some(name) = self.name.as_deref() else { return list::run(&client, output).await };
        let records = Records::read(&client, name).await?;
        match self.shadow {
            _ if self.promote => return self.promote(&client, &records, output).await,
            _ if self.retire_legacy => return self.retire(&client, &records, output).await,
            Some(share) if share == 0 || records.draft.is_some() => {
                return self.set_share(&client, &records, share, output).await;
            }
            Some(share) => {
                check_repeatable(&records.legacy)?;
                let proof = self.prove(&records.legacy, output).await?;
                if proof.has(ExampleStatus::Failed) {
                    return proof.show(name, output);
                }
                return self.create_shadow(&client, &records, proof.record, share, output).await;
            }
            None => {}
        }
        if self.publish
            && let Some(draft) = &records.draft
        {
            fail!(Usage, "{name} has a draft (record {}); publish it with --promote, or delete it", draft.id);
        }
        if let Some(draft) = records.draft.as_ref().filter(|draft| list::share(draft).is_some()) {
            return self.show_shadow(&client, draft, output).await;
        }
        let proof = self.prove(&records.legacy, output).await?;
        if self.publish && proof.is_same() {
            return self.publish_files(client, name, output).await;
        }
        proof.show(name, output)
    }

    /// Writes the files, unless they exist, and runs both tools.
    async fn prove(&self, legacy: &Breadcrumb, output: Output) -> anyhow::Result<Proof> {
        let definition = read(legacy).map_err(|error| Failure::Usage(format!("the tool.v1 is not valid: {error}")))?;
        let name = definition.name.clone();
        if self.live {
            check_repeatable(legacy)?;
        }
        let files = self.write_files(legacy, &name, output)?;
        let allowed = &self.private_hosts.allowed;
        let file = tool_validate::read(&files[0], ExpectedRecord::Tool(Author::User), allowed)?;
        let code = file.record.as_ref().filter(|_| file.errors.is_empty()).and_then(rcrt_validate::seed::definition);
        let (Some(record), Some(Ok(code))) = (file.record.clone(), code) else {
            let errors: Vec<String> = file.errors.iter().map(LocatedFinding::to_string).collect();
            anyhow::bail!("the code is not a valid tool: {}", errors.join("; "));
        };
        let examples = self.compare(&definition, code).await?;
        Ok(Proof { files, examples, record })
    }

    fn write_files(&self, legacy: &Breadcrumb, name: &str, output: Output) -> anyhow::Result<Vec<PathBuf>> {
        let files = vec![self.dir.join(format!("{name}.json")), self.dir.join(format!("{name}.ts"))];
        if files[0].exists() {
            output.note(&format!("{} exists and is used as it is", files[0].display()));
            return Ok(files);
        }
        let converted = rest::convert(&legacy.context, legacy.description.as_deref());
        let converted = converted.map_err(|problems| anyhow::anyhow!("{name} cannot be converted: {problems}"))?;
        let is_own = |tag: &String| *tag == "tool" || *tag == format!("tool:{name}");
        let is_kept = |tag: &&String| is_own(tag) || ["workspace:", "category:"].iter().any(|one| tag.starts_with(one));
        let tags: Vec<&String> = legacy.tags.iter().filter(is_kept).collect();
        let record = json!({
            "schema_name": schema_names::TOOL_CODE,
            "title": legacy.title,
            "description": converted.context["description"],
            "tags": tags,
            "context": converted.context,
        });
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("the folder {} cannot be created", self.dir.display()))?;
        write(&files[1], &converted.source)?;
        write(&files[0], &(serde_json::to_string_pretty(&record)? + "\n"))?;
        Ok(files)
    }

    async fn compare(&self, legacy: &ToolDefinition, code: ToolDefinition) -> anyhow::Result<Vec<ExampleReport>> {
        let live = if self.live {
            let secrets = self.secrets.as_deref().map(LocalSecrets::read).transpose()?.unwrap_or_default();
            Some(secrets.vault(&code)?)
        } else {
            None
        };
        let egress = EgressOptions { allowed_private: self.private_hosts.allowed.clone(), ..EgressOptions::default() };
        let sandbox = LocalSandbox::start(self.sandbox, egress).await?;
        let compared = sandbox.runner.compare(legacy, &Arc::new(code), live, &CancellationToken::new()).await;
        sandbox.close().await;
        compared.map_err(|failure| anyhow::anyhow!("the code cannot run: {failure}"))
    }

    async fn publish_files(&self, client: Client, name: &str, output: Output) -> anyhow::Result<()> {
        let publisher = Publisher {
            client,
            folder: self.dir.clone(),
            source: None,
            adopt: false,
            overwrite: false,
            as_draft: false,
            allowed: self.private_hosts.allowed.clone(),
            output,
        };
        let file = self.dir.join(format!("{name}.json"));
        let published = publisher.publish(&publisher.read(&[&file]).await?).await?;
        let published = published.get(&file).context("the file was not published")?;
        output.either(&json!({"name": name, "published": published}), &format!("{name}: {}", published.text))?;
        if published.is_in_effect { Ok(()) } else { Err(Failure::Shown.into()) }
    }
}

/// A second run of each call must change nothing further.
pub(super) fn check_repeatable(record: &Breadcrumb) -> Result<(), Failure> {
    let definition = read(record).map_err(Failure::Usage)?;
    if definition.annotations.may_be_repeated() {
        return Ok(());
    }
    let message = format!(
        "the calls of {} cannot be run twice: its annotations say neither read_only nor idempotent; set one of them in \
         record {} if that is true",
        definition.name, record.id
    );
    Err(Failure::Usage(message))
}

impl Proof {
    fn has(&self, status: ExampleStatus) -> bool {
        self.examples.iter().any(|example| example.status == status)
    }

    /// Whether an example was compared, and none differs.
    fn is_same(&self) -> bool {
        self.has(ExampleStatus::Passed) && !self.has(ExampleStatus::Failed)
    }

    fn show(self, name: &str, output: Output) -> anyhow::Result<()> {
        let is_same = self.is_same();
        let count = |status| self.examples.iter().filter(|example| example.status == status).count();
        let (same, different, not_run) =
            (count(ExampleStatus::Passed), count(ExampleStatus::Failed), count(ExampleStatus::NotRun));
        if output.is_json() {
            let files: Vec<Value> = self.files.iter().map(|file| json!(file)).collect();
            output.json(&json!({"name": name, "same": is_same, "files": files, "examples": self.examples}))?;
        } else {
            for file in &self.files {
                output.line(&file.display().to_string())?;
            }
            let tested = TestedTool { name: name.to_owned(), path: None, errors: Vec::new(), examples: self.examples };
            for line in lines(output, &tested, |_| true) {
                output.line(&line)?;
            }
            output.line(&format!("{same} the same, {different} different, {not_run} not run"))?;
        }
        if is_same { Ok(()) } else { Err(Failure::Shown.into()) }
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}
