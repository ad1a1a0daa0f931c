//! `rcrt tool new`: creates a tool's files from a template.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};

use super::editor_files;
use crate::exit::Failure;
use crate::output::Output;
use crate::shell::quoted;
use crate::templates::{self, TemplateKind};
use crate::tool_file;

/// Create a tool from a template
#[derive(Debug, Args)]
#[command(after_long_help = "\
Writes NAME.json and NAME.ts, ready for `rcrt tool validate` and `rcrt bootstrap DIR`. For editors it also writes \
tsconfig.json, unless there is one, and rcrt.d.ts with the types of the sandbox's globals.

Examples:
  rcrt tool new weather --template http-api --dir my-tools
  rcrt tool new totals --template data --set schema=order.v1")]
pub struct New {
    /// The tool's name: a letter or _, then any of letters, digits, `.`, `_` and `-`
    name: String,
    /// The template
    #[arg(long, env = "RCRT_TEMPLATE", default_value = "transform")]
    template: TemplateKind,
    /// What the tool does, in a sentence: agents choose tools by it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A value for another placeholder of the template. Can be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = assignment)]
    values: Vec<(String, String)>,
    /// The folder to write to
    #[arg(long, env = "RCRT_TOOLS_DIR", default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

impl New {
    pub fn run(self, output: Output) -> anyhow::Result<()> {
        let mut values: BTreeMap<String, String> = self.values.into_iter().collect();
        values.extend(self.description.map(|text| ("description".to_owned(), text)));
        let files = templates::instantiate(self.template, &self.name, values)
            .map_err(|problems| Failure::Usage(format!("{:?}: {problems}", self.name)))?;
        std::fs::create_dir_all(&self.dir)
            .with_context(|| format!("the folder {} cannot be created", self.dir.display()))?;
        let mut written = Vec::new();
        let call = example(&files).map_or_else(|| "'{}'".to_owned(), |input| quoted(&input.to_string()));
        for (file_name, text) in files {
            let path = self.dir.join(file_name);
            write_new(&path, &text)?;
            written.push(path);
        }
        written.extend(editor_files::write(&self.dir)?);
        if output.is_json() {
            return output.json(&json!({"files": written}));
        }
        for path in &written {
            output.line(&format!("wrote {}", path.display()))?;
        }
        let name = &self.name;
        let shown = |path: &Path| quoted(&path.display().to_string());
        let (file, dir) = (shown(&self.dir.join(format!("{name}.json"))), shown(&self.dir));
        output.line(&format!(
            "\nNext:\n  rcrt tool validate {file}\n  rcrt tool run {file} --input {call}\n  rcrt bootstrap {dir}\n  \
             rcrt call {name} {call}"
        ))
    }
}

/// The input of the first example of the new tool.
fn example(files: &[templates::File]) -> Option<Value> {
    let (_, text) = files.iter().find(|(name, _)| tool_file::is_record(name))?;
    let record: Value = serde_json::from_str(text).ok()?;
    record.pointer("/context/examples/0/input").cloned()
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Writes a new file. Never overwrites an existing one.
fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .with_context(|| format!("{} cannot be written (existing files are not overwritten)", path.display()))?;
    file.write_all(text.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))
}
