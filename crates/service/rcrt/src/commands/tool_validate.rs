//! `rcrt tool validate`: all errors of tool files, without a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use rcrt_egress::PrivateHost;
use rcrt_validate::Author;
use serde_json::json;

use crate::exit::Failure;
use crate::host_options::PrivateHosts;
use crate::output::{Output, Style, counted};
use crate::tool_file::{self, ExpectedRecord, ToolFile};

/// Check tool files, without a server
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints every finding with its file, line and column. The exit status is 1 if there are errors. Warnings do not change it.

Examples:
  rcrt tool validate my-tools/weather.json
  rcrt tool validate my-tools --output json")]
pub struct Validate {
    /// JSON files of tools, the .ts files beside them, or folders of both
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Apply the rules for the tools of an installation instead of those for users' tools
    #[arg(long)]
    system: bool,
    #[command(flatten)]
    private_hosts: PrivateHosts,
}

impl Validate {
    pub fn run(self, output: Output) -> anyhow::Result<()> {
        let author = if self.system { Author::System } else { Author::User };
        let mut checked = Vec::new();
        for path in &self.files {
            // A folder can contain other records too.
            let expected = if path.is_dir() { ExpectedRecord::Any(author) } else { ExpectedRecord::Tool(author) };
            for file in definitions(path)? {
                checked.push(read(&file, expected, &self.private_hosts.allowed)?);
            }
        }
        let errors: usize = checked.iter().map(|file| file.errors.len()).sum();
        let warnings: usize = checked.iter().map(|file| file.warnings.len()).sum();
        if output.is_json() {
            let files: Vec<_> = checked
                .iter()
                .map(|file| json!({"name": file.name, "errors": file.errors, "warnings": file.warnings}))
                .collect();
            output.json(&json!({"valid": errors == 0, "files": files}))?;
        } else {
            for file in &checked {
                for finding in &file.errors {
                    output.line(&format!("{} {finding}", output.paint(Style::Bad, "error:")))?;
                }
                for finding in &file.warnings {
                    output.line(&format!("{} {finding}", output.paint(Style::Warning, "warning:")))?;
                }
                if file.errors.is_empty() {
                    output.line(&format!("{} is {}", file.name, output.paint(Style::Good, "valid")))?;
                }
            }
            let (errors, warnings) =
                (counted(errors as u64, "error", "errors"), counted(warnings as u64, "warning", "warnings"));
            output.line(&format!("{errors}, {warnings}"))?;
        }
        if errors > 0 { Err(Failure::Shown.into()) } else { Ok(()) }
    }
}

/// The JSON files to check: all in a folder, or the one next to a tool's source.
pub(super) fn definitions(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = path.display();
    if path.is_dir() {
        let is_record = |path: &PathBuf| tool_file::is_record(&path.to_string_lossy());
        let mut found: Vec<PathBuf> = tool_file::files_below(path)?.into_iter().filter(is_record).collect();
        found.sort();
        return if found.is_empty() {
            Err(Failure::Usage(format!("there is no JSON file in the folder {name}")).into())
        } else {
            Ok(found)
        };
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("json" | "ts" | "js") => Ok(vec![path.with_extension("json")]),
        _ if path.exists() => {
            Err(Failure::Usage(format!("{name} is neither a folder nor a .json, .ts or .js file")).into())
        }
        _ => Err(Failure::Usage(format!("there is no file or folder {name}")).into()),
    }
}

/// Reads a JSON file and the source next to it.
pub(super) fn read(path: &Path, expected: ExpectedRecord, allowed: &[PrivateHost]) -> anyhow::Result<ToolFile> {
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
    Ok(ToolFile::read(&json.display().to_string(), &files, expected, allowed))
}
