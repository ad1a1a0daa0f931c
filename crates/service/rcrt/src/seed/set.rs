//! A set of seed files, parsed and validated before any of them is written.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use rcrt_breadcrumb::NewBreadcrumb;
use rcrt_egress::PrivateHost;
use rcrt_validate::Author;

use super::find::SEED_TAG;
use crate::embedded;
use crate::exit::Failure;
use crate::tool_file::{self, ExpectedRecord, ToolFile};

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

    /// Reads every JSON file below a folder, with its source. The set has the folder's name. Tools
    /// are validated by the rules for `author`, with these private hosts allowed.
    pub fn read(folder: &Path, author: Author, allowed: &[PrivateHost]) -> anyhow::Result<Self> {
        let absolute = folder
            .canonicalize()
            .map_err(|error| Failure::Usage(format!("{} is not a readable folder: {error}", folder.display())))?;
        let mut files = BTreeMap::new();
        collect(&absolute, "", &mut files)?;
        let name = absolute.file_name().map_or("root".into(), |name| name.to_string_lossy().into_owned());
        Ok(Self::validate(&name, &files, author, allowed))
    }

    fn validate(name: &str, files: &BTreeMap<String, String>, author: Author, allowed: &[PrivateHost]) -> Self {
        let mut set = Self {
            name: name.chars().take(60).collect(),
            seeds: Vec::new(),
            refused: Vec::new(),
            warnings: Vec::new(),
        };
        for path in files.keys().filter(|path| tool_file::is_record(path)) {
            let file = ToolFile::read(path, files, ExpectedRecord::Any(author), allowed);
            set.warnings.extend(file.warnings.iter().map(ToString::to_string));
            match file.record {
                Some(record) if file.errors.is_empty() => {
                    let mut record = record;
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

/// Reads the text files below a folder. Skips names that start with a dot.
fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let unreadable = || format!("the folder {} cannot be read", folder.display());
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let (path, place) = (entry.path(), format!("{prefix}{name}"));
        if path.is_dir() {
            collect(&path, &format!("{place}/"), files)?;
        } else if tool_file::is_read(&name) {
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read as text", path.display()))?;
            files.insert(place, text);
        }
    }
    Ok(())
}
