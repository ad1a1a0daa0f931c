//! Which source wrote a record, and whether it was changed since. The tags of a record say it:
//! `seed:<source>` names the source, and `seed-version:<n>` the version that the source wrote last.

use rcrt_breadcrumb::{Breadcrumb, NewBreadcrumb};

use super::find::SEED_TAG;
use super::set::SeedSet;
use crate::embedded;

const VERSION_TAG: &str = "seed-version:";

pub fn is_version_tag(tag: &str) -> bool {
    tag.starts_with(VERSION_TAG)
}

/// The file's record, as the version that it will be.
pub fn as_version(file: &NewBreadcrumb, version: i64) -> NewBreadcrumb {
    let mut record = file.clone();
    record.tags.retain(|tag| !is_version_tag(tag));
    record.tags.push(format!("{VERSION_TAG}{version}"));
    record
}

/// Whether a version of this record was written by another author after the source wrote it. A
/// rollback that restores the tags too has a newer version than its tag.
pub fn is_changed_since(tags: &[String], version: i64) -> bool {
    !tags.contains(&format!("{VERSION_TAG}{version}"))
}

/// The origin of a record for people: `included`, a source, or `agent`.
pub fn source_of(tags: &[String]) -> String {
    match source(tags) {
        Some(embedded::NAME) => "included".to_owned(),
        Some(name) => name.to_owned(),
        None => "agent".to_owned(),
    }
}

/// The tag of the source is a prefix of the tag of the file.
fn source(tags: &[String]) -> Option<&str> {
    tags.iter().filter_map(|tag| tag.strip_prefix(SEED_TAG)).min_by_key(|source| source.len())
}

/// Another origin of the record than this set, as part of a sentence.
pub fn other(record: &Breadcrumb, set: &SeedSet) -> Option<String> {
    if record.tags.contains(&set.mark()) {
        return None;
    }
    Some(match source(&record.tags) {
        Some(source) => format!("comes from the source {source}"),
        None => "was not written by a bootstrap".to_owned(),
    })
}
