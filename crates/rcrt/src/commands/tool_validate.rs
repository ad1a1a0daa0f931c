//! `rcrt tool validate`: everything that is wrong with a tool's file, without a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use validate::Author;

use crate::exit::Failure;
use crate::output::{Output, Style};
use crate::tool_file::{Judge, ToolFile};

/// Check tool files, without a server
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints every finding with its file, line and column. The exit status is 1 when there are errors; warnings alone are fine.

Examples:
  rcrt tool validate my-tools/weather.json
  rcrt tool validate my-tools/*.json --output json")]
pub struct Validate {
    /// JSON files of tools, or the .ts file beside one
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Judge by the rules for tools that come with an installation, instead of those for users' tools
    #[arg(long)]
    system: bool,
}

impl Validate {
    pub fn run(self, output: Output) -> anyhow::Result<()> {
        let author = if self.system { Author::System } else { Author::User };
        let mut judged = Vec::new();
        for path in &self.files {
            judged.push(read(path, author)?);
        }
        let errors: usize = judged.iter().map(|file| file.errors.len()).sum();
        let warnings: usize = judged.iter().map(|file| file.warnings.len()).sum();
        if output.is_json() {
            let files: Vec<_> = judged
                .iter()
                .map(|file| json!({"name": file.name, "errors": file.errors, "warnings": file.warnings}))
                .collect();
            output.json(&json!({"valid": errors == 0, "files": files}))?;
        } else {
            for file in &judged {
                for finding in &file.errors {
                    output.line(&format!("{} {finding}", output.paint(Style::Bad, "error:")))?;
                }
                for finding in &file.warnings {
                    output.line(&format!("{} {finding}", output.paint(Style::Warning, "warning:")))?;
                }
                if file.errors.is_empty() {
                    output.line(&format!("{} is {}", file.name, output.paint(Style::Good, "good")))?;
                }
            }
            output.line(&format!("{errors} errors, {warnings} warnings"))?;
        }
        if errors > 0 { Err(Failure::Shown.into()) } else { Ok(()) }
    }
}

/// Reads a JSON file with the source beside it, whichever of the two was named.
fn read(path: &Path, author: Author) -> anyhow::Result<ToolFile> {
    let json = path.with_extension("json");
    let mut files = BTreeMap::new();
    for extension in ["json", "ts", "js"] {
        let file = path.with_extension(extension);
        match std::fs::read_to_string(&file) {
            Ok(text) => {
                files.insert(file.display().to_string(), text);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && extension != "json" => {}
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be read as text", file.display()));
            }
        }
    }
    Ok(ToolFile::read(&json.display().to_string(), &files, Judge::Tool(author)))
}
