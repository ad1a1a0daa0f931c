//! `rcrt tool`: existing tools, and files that become tools.

use std::collections::BTreeSet;

use chrono::Utc;
use clap::{Args, Subcommand};
use rcrt_breadcrumb::{
    Breadcrumb, Catalog, CatalogEntry, Deprecation, Profile, ToolDefinition, ToolFormat, ToolSource, is_draft,
};
use rcrt_client::Client;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    required_secrets::{KnownSecrets, RequiredSecret},
    tool_delete::{Delete, Retire},
    tool_deprecations::Deprecations,
    tool_dev::Dev,
    tool_diff::Diff,
    tool_find::Find,
    tool_history::History,
    tool_lookup::{ToolsOfName, no_tool, read, tools, whole_catalog},
    tool_migrate::Migrate,
    tool_new::New,
    tool_pin::Pin,
    tool_publish::Publish,
    tool_report::{Report, Reports},
    tool_rollback::Rollback,
    tool_run::Run,
    tool_same_name::Other,
    tool_show,
    tool_test::Test,
    tool_types::Types,
    tool_validate::Validate,
};
use crate::config::Config;
use crate::connection;
use crate::output::{Output, one_line};
use crate::seed;

/// List, show, check and create tools
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  rcrt tool list
  rcrt tool find refund a payment
  rcrt tool show calculator
  rcrt tool new weather --template http-api --dir my-tools
  rcrt tool validate my-tools/weather.json
  rcrt tool run my-tools/weather.ts --input '{\"query\": \"x\"}'
  rcrt tool test my-tools
  rcrt tool dev my-tools
  rcrt tool types > tools.d.ts
  rcrt tool publish weather
  rcrt bootstrap my-tools
  rcrt tool history weather
  rcrt tool rollback weather")]
pub enum Tool {
    List(List),
    Find(Find),
    /// Show the definition that a call of this name reaches
    Show {
        name: String,
    },
    Validate(Validate),
    Run(Run),
    Test(Test),
    Dev(Dev),
    Publish(Publish),
    New(New),
    Types(Types),
    History(History),
    Diff(Diff),
    Rollback(Rollback),
    Pin(Pin),
    Retire(Retire),
    Delete(Delete),
    Deprecations(Deprecations),
    Migrate(Migrate),
}

impl Tool {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        match self {
            Self::List(list) => list.run(config, output).await,
            Self::Find(find) => find.run(config, output).await,
            Self::Show { name } => show(config, output, &name).await,
            Self::Validate(validate) => validate.run(output),
            Self::Run(run) => run.run(config, output).await,
            Self::Test(test) => test.run(config, output).await,
            Self::Dev(dev) => dev.run(config, output).await,
            Self::Publish(publish) => publish.run(config, output).await,
            Self::New(new) => new.run(output),
            Self::Types(types) => types.run(config, output).await,
            Self::History(history) => history.run(config, output).await,
            Self::Diff(diff) => diff.run(config, output).await,
            Self::Rollback(rollback) => rollback.run(config, output).await,
            Self::Pin(pin) => pin.run(config, output).await,
            Self::Retire(retire) => retire.run(config, output).await,
            Self::Delete(delete) => delete.run(config, output).await,
            Self::Deprecations(deprecations) => deprecations.run(config, output).await,
            Self::Migrate(migrate) => migrate.run(config, output).await,
        }
    }
}

/// List the tools, and what the unavailable ones wait for
#[derive(Debug, Args)]
#[command(after_long_help = "\
With --format it prints the tools that can be called in the format of a model API: openai (Chat Completions), \
openai-responses, anthropic, or mcp (the result of tools/list). The format rcrt is the catalog itself, including the tools that wait for something.

Examples:
  rcrt tool list
  rcrt tool list --profile subagent
  rcrt tool list --format openai")]
pub struct List {
    /// Print the catalog in this format: rcrt, openai, openai-responses, anthropic or mcp
    #[arg(long, value_name = "FORMAT")]
    format: Option<ToolFormat>,
    /// Only tools that this profile allows: main, subagent, scheduled or a2asynthesis
    #[arg(long, value_name = "PROFILE")]
    profile: Option<Profile>,
}

/// One tool of the list.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    version: String,
    schema_name: String,
    /// What runs it: `native`, `sandbox`, `rest`.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<ToolSource>,
    /// The origin: `included`, the source of a bootstrap, or `agent`.
    from: String,
    /// What it waits for before it can be called: sentences that say what to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_requirements: Vec<String>,
    description: String,
    id: Uuid,
    record_version: i64,
    /// Whether only its author can call the newest version.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    draft: bool,
    /// Of a draft: the version that the others call.
    #[serde(skip_serializing_if = "Option::is_none")]
    published_version: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<Deprecation>,
    /// The secrets that it needs and cannot use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lacks: Vec<MissingSecret>,
    /// The record that runs under this name instead, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_instead: Option<Other>,
    /// Why its newest version does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The runner's report, if it does not run this version.
    #[serde(flatten)]
    report: Option<Report>,
}

impl Row {
    fn of(
        record: &Breadcrumb,
        all: &[Breadcrumb],
        catalog: &Catalog,
        reports: &Reports,
        secrets: &KnownSecrets,
    ) -> Self {
        let schema = record.schema_name.clone().unwrap_or_default();
        let read = read(record);
        let text = |key: &str| record.context.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            name: text("name"),
            version: read.as_ref().map(|tool| tool.version.clone()).unwrap_or_default(),
            schema_name: schema,
            source: read.as_ref().ok().map(|tool| tool.implementation.source()),
            missing_requirements: catalog
                .waiting
                .iter()
                .find(|waiting| waiting.tool_id == record.id)
                .map(|waiting| waiting.missing_requirements.clone())
                .unwrap_or_default(),
            from: seed::source_of(&record.tags),
            description: read.as_ref().map_or_else(|_| text("description"), |tool| tool.description.clone()),
            id: record.id,
            record_version: record.version,
            draft: is_draft(&record.tags),
            published_version: is_draft(&record.tags).then(|| published_version(record, catalog)).flatten(),
            deprecated: read.as_ref().ok().and_then(|tool| tool.deprecated.clone()),
            lacks: read.as_ref().map(|tool| missing_secrets(record, tool, secrets)).unwrap_or_default(),
            runs_instead: Other::served_instead(record, all, catalog),
            problem: reports.on(record).map(Report::sentence).or(read.err()),
            report: reports.on(record).cloned(),
        }
    }

    /// The description, or a problem.
    fn about(&self) -> String {
        match (&self.problem, self.report.as_ref().map(|report| report.running_version)) {
            (None, _) if !self.lacks.is_empty() => {
                let lacks: Vec<String> =
                    self.lacks.iter().map(|lack| format!("{} ({})", lack.secret, lack.problem)).collect();
                format!("LACKS SECRETS: {}", lacks.join(", "))
            }
            (None, _) if self.draft => match self.published_version {
                Some(version) => format!("DRAFT of its author; others call version {version}: {}", self.description),
                None => format!("DRAFT of its author: {}", self.description),
            },
            (None, _) if !self.missing_requirements.is_empty() => {
                format!("WAITS: {}", self.missing_requirements.join(" "))
            }
            (None, _) => match (&self.runs_instead, &self.deprecated) {
                (Some(other), _) => other.runs_instead(),
                (None, Some(deprecated)) => deprecated_text(deprecated),
                (None, None) => self.description.clone(),
            },
            (Some(why), Some(Some(version))) => format!("BROKEN, its version {version} runs: {why}"),
            (Some(why), Some(None)) => format!("NOT RUN: {why}"),
            (Some(why), None) => format!("BROKEN: {why}"),
        }
    }
}

/// A secret that a tool needs and cannot use.
#[derive(Debug, Serialize)]
struct MissingSecret {
    secret: String,
    /// `missing`, `not_granted` or `unbound`.
    problem: &'static str,
    /// The command that fixes it.
    fix: String,
}

fn missing_secrets(record: &Breadcrumb, tool: &ToolDefinition, secrets: &KnownSecrets) -> Vec<MissingSecret> {
    // The secrets of a native tool depend on the settings. The catalog lists them.
    if tool.implementation.source() == ToolSource::Native {
        return Vec::new();
    }
    let needs = secrets.needs(Some((record.id, record.version)), &tool.required_secrets).unwrap_or_default();
    let lack = |need: &RequiredSecret<'_>| {
        let lack = need.lack?;
        let fix = lack.fix_command(need.name, &record.id.to_string(), tool);
        Some(MissingSecret { secret: need.name.to_owned(), problem: lack.as_str(), fix })
    };
    needs.iter().filter_map(lack).collect()
}

impl List {
    async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        match self.format {
            Some(format) => output.json(&client.tools_in(format, self.profile).await?),
            None => list(&client, self.profile.unwrap_or_default(), output).await,
        }
    }
}

async fn list(client: &Client, profile: Profile, output: Output) -> anyhow::Result<()> {
    let reading = (tools(client, None), whole_catalog(client), Reports::read(client), KnownSecrets::read(client));
    let (tools, catalog, reports, secrets) = tokio::try_join!(reading.0, reading.1, reading.2, reading.3)?;
    if tools.is_empty() {
        return list_offered(&catalog.for_profile(profile), output);
    }
    let mut rows: Vec<Row> = tools
        .iter()
        .map(|record| Row::of(record, &tools, &catalog, &reports, &secrets))
        .filter(|row| row.source.as_ref().is_none_or(|source| profile.allows(&row.name, source)))
        .filter(|row| !profile.denies_name(&row.name))
        .collect();
    rows.sort_by(|one, other| (&one.name, &one.schema_name).cmp(&(&other.name, &other.schema_name)));
    if output.is_json() {
        return output.json(&rows);
    }
    let sources: BTreeSet<&str> = rows.iter().map(|row| row.from.as_str()).collect();
    let table: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let version = if row.version.is_empty() { "-" } else { &row.version };
            vec![
                one_line(&row.name, 40),
                one_line(version, 20),
                row.source.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
                one_line(short_source(&row.from, &sources), 40),
                one_line(&row.about(), 70),
            ]
        })
        .collect();
    output.table(&["NAME", "VERSION", "SOURCE", "FROM", "DESCRIPTION"], &table)
}

/// Tools as the catalog has them, for an agent that cannot read their records: a caller.
fn list_offered(catalog: &Catalog, output: Output) -> anyhow::Result<()> {
    if output.is_json() {
        let waiting = catalog.waiting.iter().cloned().map(CatalogEntry::Waiting);
        let entries: Vec<CatalogEntry> =
            catalog.tools.iter().cloned().map(CatalogEntry::Offered).chain(waiting).collect();
        return output.json(&entries);
    }
    let offered = catalog.tools.iter().map(|tool| {
        let about = tool.deprecated.as_ref().map_or_else(|| tool.description.clone(), deprecated_text);
        (&tool.name, tool.source.to_string(), one_line(&about, 70))
    });
    let waiting = catalog.waiting.iter().map(|tool| {
        (&tool.name, tool.source.to_string(), one_line(&format!("WAITS: {}", tool.missing_requirements.join(" ")), 70))
    });
    let rows: Vec<Vec<String>> =
        offered.chain(waiting).map(|(name, source, about)| vec![one_line(name, 40), source, about]).collect();
    output.table(&["NAME", "SOURCE", "DESCRIPTION"], &rows)
}

/// The last folders of a path, as many as no other source ends with.
fn short_source<'s>(source: &'s str, all: &BTreeSet<&str>) -> &'s str {
    let ends = source.rmatch_indices('/').map(|(at, _)| source.split_at(at + 1).1);
    let is_unique = |end: &&str| !all.iter().any(|other| *other != source && has_end(other, end));
    ends.filter(|end| !end.is_empty()).find(is_unique).unwrap_or(source)
}

fn has_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

async fn show(config: &Config, output: Output, name: &str) -> anyhow::Result<()> {
    let store = connection::client(config)?;
    let ToolsOfName { record, others, holder, catalog, reports, .. } = ToolsOfName::read(&store, name).await?;
    let Some(record) = record else {
        let Some(entry) = catalog.entry(name) else { return Err(no_tool(name, &catalog).into()) };
        return if output.is_json() { output.json(&entry) } else { tool_show::print_entry(output, &entry) };
    };
    if output.is_json() {
        let mut shown = serde_json::to_value(&record)?;
        if let Value::Object(fields) = &mut shown
            && !others.is_empty()
        {
            let others: Vec<Other> = others.iter().map(Other::from).collect();
            fields.insert("same_name".into(), serde_json::to_value(others)?);
        }
        output.json(&shown)
    } else {
        // Without a report of a runner, it is unknown which of them runs.
        let same_name: Vec<String> = others
            .iter()
            .filter(|_| holder == Some(record.id))
            .map(|other| Other::from(other).beside(&record, &reports, other))
            .collect();
        let secrets = KnownSecrets::read(&store).await?;
        let (tool, report) = (read(&record), reports.on(&record));
        let warnings = warnings(&record, tool.as_ref().ok(), &catalog);
        tool_show::print(output, &record, tool, report, &warnings, &same_name, &secrets)
    }
}

/// What a caller has to know before the definition.
fn warnings(record: &Breadcrumb, tool: Option<&ToolDefinition>, catalog: &Catalog) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_draft(&record.tags) {
        let others = published_version(record, catalog);
        let others = others.map_or_else(String::new, |version| format!(", and others call version {version}"));
        warnings.push(format!(
            "This version is a draft: only its author can call it{others}. A curator publishes it with `rcrt tool \
             publish`"
        ));
    }
    if let Some(deprecated) = tool.and_then(|tool| tool.deprecated.as_ref()) {
        warnings.push(deprecated_text(deprecated));
    }
    let ignored = ToolDefinition::ignored_in(record.schema_name.as_deref(), &record.context);
    warnings.extend(ignored.into_iter().map(|found| format!("{} {}", found.field, found.message)));
    let waiting = catalog.waiting.iter().filter(|waiting| waiting.tool_id == record.id);
    let missing = waiting.flat_map(|waiting| &waiting.missing_requirements);
    warnings.extend(missing.map(|what| format!("It cannot be called yet: {what}")));
    warnings
}

/// The version of the record that everybody can call.
fn published_version(record: &Breadcrumb, catalog: &Catalog) -> Option<i64> {
    catalog.tools.iter().find(|tool| tool.tool_id == record.id).map(|tool| tool.tool_version)
}

fn deprecated_text(deprecated: &Deprecation) -> String {
    let advice = deprecated.advice();
    match deprecated.remove_after {
        Some(last) if deprecated.is_over(Utc::now()) => format!("REMOVED after {last}{advice}"),
        Some(last) => format!("Deprecated since {}, and not called after {last}{advice}", deprecated.since),
        None => format!("Deprecated since {}{advice}", deprecated.since),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_shown_with_as_many_folders_as_needed() {
        let all = BTreeSet::from(["included", "agent", "/srv/a/tools", "/srv/b/tools", "/srv/my-tools", "/x"]);
        for (source, shown) in [
            ("included", "included"),
            ("/srv/a/tools", "a/tools"),
            ("/srv/b/tools", "b/tools"),
            ("/srv/my-tools", "my-tools"),
            ("/x", "x"),
        ] {
            assert_eq!(short_source(source, &all), shown);
        }
    }
}
