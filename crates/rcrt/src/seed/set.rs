//! A set of seed files, parsed and validated before any of them is written.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use breadcrumb::NewBreadcrumb;
use executors::egress::PrivateHost;
use validate::Author;

use super::find::SEED_TAG;
use crate::embedded;
use crate::exit::Failure;
use crate::tool_file::{self, ExpectedRecord, ToolFile};

/// One file's record, marked with where it came from.
#[derive(Debug, Clone)]
pub struct Seed {
    /// Below the set's folder, with `/`.
    pub path: String,
    pub record: NewBreadcrumb,
}

/// A file that is no good record, and why.
#[derive(Debug, Clone)]
pub struct Refused {
    pub path: String,
    pub name: String,
    /// A line for each finding: `file:line:column: what`.
    pub findings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct SeedSet {
    name: String,
    pub seeds: Vec<Seed>,
    pub refused: Vec<Refused>,
    /// What is worth mending in files that are good enough, a line for each.
    pub warnings: Vec<String>,
}

impl Seed {
    /// A tool's name, else the record's title.
    pub fn name(&self) -> &str {
        tool_file::name_of(&self.record)
    }
}

impl SeedSet {
    /// The set that this binary carries.
    pub fn embedded(author: Author, allowed: &[PrivateHost]) -> Self {
        let files = embedded::FILES.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        Self::validate(embedded::NAME, &files, author, allowed)
    }

    /// Every JSON file below a folder, with the sources beside them. The folder's name is the set's. The tools are
    /// judged by the rules for the author that they are written as, and as by a runner to which these private hosts are
    /// allowed.
    pub fn read(folder: &Path, author: Author, allowed: &[PrivateHost]) -> anyhow::Result<Self> {
        let absolute = folder
            .canonicalize()
            .map_err(|error| Failure::Usage(format!("{} is no folder that can be read: {error}", folder.display())))?;
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

    /// The tag that every record of this set carries.
    pub fn mark(&self) -> String {
        format!("{SEED_TAG}{}", self.name)
    }

    /// The tag of the record that this file brought.
    pub fn tag(&self, path: &str) -> String {
        format!("{SEED_TAG}{}/{path}", self.name)
    }
}

/// Reads the text files below a folder; what begins with a dot is not looked at.
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
