//! A set of seed files, parsed and validated before any of them is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rcrt_breadcrumb::NewBreadcrumb;
use rcrt_egress::PrivateHost;
use rcrt_validate::Author;

use super::find::SEED_TAG;
use crate::embedded;
use crate::exit::{Failure, fail};
use crate::tool_file::{self, ExpectedRecord, ToolFile};

/// The store's limit for a tag, in characters.
const MAX_TAG: usize = 200;
const MAX_NAME: usize = 60;

/// The record of one file, tagged with its origin.
#[derive(Debug, Clone)]
pub struct Seed {
    /// The path below the set's folder, with `/`.
    pub path: String,
    pub record: NewBreadcrumb,
}

/// A file without a valid record, and its errors.
#[derive(Debug, Clone)]
pub struct Refused {
    pub path: String,
    pub name: String,
    /// One line for each error: `file:line:column: message`.
    pub findings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct SeedSet {
    /// The source: an explicit name, or the full path of the folder, which starts with `/`.
    name: String,
    pub seeds: Vec<Seed>,
    pub refused: Vec<Refused>,
    /// Warnings about valid files, one line each.
    pub warnings: Vec<String>,
}

impl Seed {
    /// A tool's name, else the record's title.
    pub fn name(&self) -> &str {
        tool_file::name_of(&self.record)
    }
}

impl SeedSet {
    /// The set in this binary.
    pub fn embedded(author: Author, allowed: &[PrivateHost]) -> Self {
        let files = embedded::FILES.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        Self::validate(embedded::NAME, &files, author, allowed)
    }

    /// Reads every JSON file below a folder, with its source. Without a `name`, the set is
    /// identified by the full path of the folder. Tools are validated by the rules for `author`,
    /// with these private hosts allowed.
    pub fn read(folder: &Path, name: Option<&str>, author: Author, allowed: &[PrivateHost]) -> anyhow::Result<Self> {
        let absolute = folder
            .canonicalize()
            .map_err(|error| Failure::Usage(format!("{} is not a readable folder: {error}", folder.display())))?;
        let files = collect(&absolute)?;
        let path = absolute.to_string_lossy();
        let name = name.unwrap_or(&path);
        let set = Self::validate(name, &files, author, allowed);
        if files.keys().any(|path| set.tag(path).chars().count() > MAX_TAG) {
            fail!(Usage, "the path {name} is too long to identify the source; name it with --source NAME");
        }
        Ok(set)
    }

    fn validate(name: &str, files: &BTreeMap<String, String>, author: Author, allowed: &[PrivateHost]) -> Self {
        let mut set = Self { name: name.to_owned(), seeds: Vec::new(), refused: Vec::new(), warnings: Vec::new() };
        let mut taken = BTreeMap::new();
        for path in files.keys().filter(|path| tool_file::is_record(path)) {
            let file = ToolFile::read(path, files, ExpectedRecord::Any(author), allowed);
            set.warnings.extend(file.warnings.iter().map(ToString::to_string));
            match file.record {
                Some(mut record) if file.errors.is_empty() => {
                    // Each would be written over the other at every bootstrap.
                    if let Some(other) = tool_identity(&record).and_then(|tool| taken.insert(tool, path)) {
                        let finding = format!("{path}: {other} has the tool {:?} too; keep one of them", file.name);
                        set.refused.push(Refused { path: path.clone(), name: file.name, findings: vec![finding] });
                        continue;
                    }
                    for tag in [set.mark(), set.tag(path)] {
                        if !record.tags.contains(&tag) {
                            record.tags.push(tag);
                        }
                    }
                    set.seeds.push(Seed { path: path.clone(), record });
                }
                _ => set.refused.push(Refused {
                    path: path.clone(),
                    name: file.name,
                    findings: file.errors.iter().map(ToString::to_string).collect(),
                }),
            }
        }
        set
    }

    /// The tag of all records of this set.
    pub fn mark(&self) -> String {
        format!("{SEED_TAG}{}", self.name)
    }

    /// The tag of this file's record.
    pub fn tag(&self, path: &str) -> String {
        format!("{SEED_TAG}{}/{path}", self.name)
    }
}

/// What two tools of a set cannot share: schema, name and workspace. `None` for other records.
fn tool_identity(record: &NewBreadcrumb) -> Option<(Option<String>, String, Option<String>)> {
    let workspace = record.tags.iter().find(|tag| tag.starts_with("workspace:")).cloned();
    let name = tool_file::name_of(record).to_owned();
    tool_file::is_tool(record).then(|| (record.schema_name.clone(), name, workspace))
}

/// Parses the name of a source. It has no `/`, so it differs from every path.
pub fn source_name(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(is_allowed) {
        return Err(format!("expected 1 to {MAX_NAME} letters, digits, dots, underscores or hyphens"));
    }
    Ok(text.to_owned())
}

/// Reads the files below a folder. Their keys are their paths below it, with `/`.
fn collect(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let read = |path: PathBuf| {
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read as text", path.display()))?;
        let names = path.strip_prefix(folder)?.iter().map(|name| name.to_string_lossy());
        Ok((names.collect::<Vec<_>>().join("/"), text))
    };
    tool_file::files_below(folder)?.into_iter().map(read).collect()
}
