//! `rcrt tool types`: the TypeScript types of tools, from their schemas.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use rcrt_breadcrumb::{Breadcrumb, ToolDefinition, nearest_names};
use rcrt_client::Client;
use rcrt_egress::PrivateHost;
use rcrt_typescript::{TypedTool, types_of_tools};
use serde_json::{Value, json};
use uuid::Uuid;

use super::tested_tool::{candidates, is_file};
use super::tool_lookup::{read, tools};
use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::host_options::PrivateHosts;
use crate::output::Output;

/// Print the TypeScript types of tools, from their schemas
#[derive(Debug, Args)]
#[command(after_long_help = "\
Declares the global namespace `tools`, so a tool needs no import to use it. A tool's types are in a namespace of its \
own, such as tools.ReadFile for read_file: Input, Output and Context. tools.Catalog has all of them by name, with \
tools.Input<\"read_file\"> and tools.Output<\"read_file\">. context.api.callTool has these types too. Without a target it has the tools of the server's catalog; \
files and folders need no server. Context is declared in rcrt.d.ts, which `rcrt tool new` writes.

Examples:
  rcrt tool types > my-tools/tools.d.ts
  rcrt tool types my-tools/weather.json > my-tools/weather.types.d.ts
  rcrt tool types read_file")]
pub struct Types {
    /// Files of tools, folders of them, or names of tools on the server
    #[arg(value_name = "FILE|DIR|NAME")]
    targets: Vec<String>,
    #[command(flatten)]
    private_hosts: PrivateHosts,
}

impl Types {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let mut found: BTreeMap<String, TypedTool> = BTreeMap::new();
        let (files, names): (Vec<&String>, Vec<&String>) =
            self.targets.iter().partition(|target| is_file(Path::new(target)));
        for file in files {
            let tools = of_files(Path::new(file), &self.private_hosts.allowed)?;
            found.extend(tools.into_iter().map(|tool| (tool.name.clone(), tool)));
        }
        if !names.is_empty() || self.targets.is_empty() {
            let offered = of_catalog(&connection::client(config)?).await?;
            if let Some(unknown) = names.iter().find(|name| !offered.contains_key(name.as_str())) {
                return Err(not_found(unknown, &offered).into());
            }
            let is_wanted = |name: &String| names.is_empty() || names.contains(&name);
            found.extend(offered.into_iter().filter(|(name, _)| is_wanted(name)));
        }
        let declared = types_of_tools(found.values());
        let declared =
            format!("// The types of tools, from their schemas. Written by `rcrt tool types`.\n\n{declared}");
        output.either(&json!({"types": declared}), declared.trim_end())
    }
}

fn not_found(name: &str, offered: &BTreeMap<String, TypedTool>) -> Failure {
    let nearest = nearest_names(name, offered.keys().map(String::as_str));
    let fix = match nearest.as_slice() {
        [] => "see the tools with `rcrt tool list`".to_owned(),
        names => format!("did you mean {}?", names.join(" or ")),
    };
    Failure::NotFound(format!("there is no file, folder or tool {name:?} that can be called; {fix}"))
}

fn of_files(path: &Path, allowed: &[PrivateHost]) -> anyhow::Result<Vec<TypedTool>> {
    let mut found = Vec::new();
    for candidate in candidates(path, allowed, &[])? {
        let definition = candidate
            .definition
            .map_err(|errors| Failure::Usage(format!("{} is not valid:\n  {}", candidate.name, errors.join("\n  "))))?;
        found.push(of_definition(definition));
    }
    Ok(found)
}

/// The tools that can be called. An agent that cannot read their records gets the types of their
/// inputs.
async fn of_catalog(client: &Client) -> anyhow::Result<BTreeMap<String, TypedTool>> {
    let (catalog, records) = tokio::try_join!(client.tools(), tools(client, None))?;
    let by_id: BTreeMap<Uuid, &Breadcrumb> = records.iter().map(|record| (record.id, record)).collect();
    let typed = |tool: rcrt_breadcrumb::Registration| {
        let definition = by_id.get(&tool.tool_id).and_then(|record| read(record).ok());
        let typed = definition.map_or_else(
            || TypedTool {
                name: tool.name.clone(),
                description: tool.description,
                input: tool.parameters,
                output: Value::Bool(true),
                secrets: None,
            },
            of_definition,
        );
        (tool.name, typed)
    };
    Ok(catalog.tools.into_iter().map(typed).collect())
}

fn of_definition(tool: ToolDefinition) -> TypedTool {
    TypedTool {
        name: tool.name,
        description: tool.description,
        input: tool.input_schema,
        output: tool.output_schema,
        secrets: Some(tool.required_secrets),
    }
}
