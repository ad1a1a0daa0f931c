//! Which source wrote a record, and whether it was changed since. The tags of a record say it:
//! `seed:<source>` names the source, and `seed-version:<n>` the version that the source wrote last,
//! or `seed-draft:<n>` if it wrote that as a draft.

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbVersion, DRAFT_TAG, NewBreadcrumb, Records, StoreError, is_draft, schema_names,
};
use uuid::Uuid;

use super::compare::{same_json, same_tags};
use super::find::SEED_TAG;
use super::set::SeedSet;
use crate::embedded;

const VERSION_TAG: &str = "seed-version:";
const DRAFT_VERSION_TAG: &str = "seed-draft:";

pub fn is_version_tag(tag: &str) -> bool {
    version_in(tag).is_some()
}

fn version_in(tag: &str) -> Option<&str> {
    tag.strip_prefix(VERSION_TAG).or_else(|| tag.strip_prefix(DRAFT_VERSION_TAG))
}

/// The file's record, as the version that it will be. `as_draft`: a tool is a draft.
pub fn as_version(file: &NewBreadcrumb, version: i64, as_draft: bool) -> NewBreadcrumb {
    let mut record = file.clone();
    record.tags.retain(|tag| !is_version_tag(tag));
    let as_draft = as_draft && schema_names::is_tool(record.schema_name.as_deref());
    if as_draft {
        record.tags.push(DRAFT_TAG.to_owned());
    }
    let prefix = if as_draft { DRAFT_VERSION_TAG } else { VERSION_TAG };
    record.tags.push(format!("{prefix}{version}"));
    record
}

/// Whether the source wrote this version as a draft, and it still is one.
pub fn is_own_draft(tags: &[String], version: i64) -> bool {
    is_draft(tags) && tags.contains(&format!("{DRAFT_VERSION_TAG}{version}"))
}

/// Whether somebody else changed this record after the source wrote it. A rollback that restores
/// the tags too has a newer version than its tag. The publication of a draft is not a change.
pub async fn is_changed_since(
    store: &dyn Records,
    id: Uuid,
    tags: &[String],
    version: i64,
) -> Result<bool, StoreError> {
    if is_written_as(tags, version) {
        return Ok(false);
    }
    if !tags.iter().any(|tag| is_version_tag(tag)) {
        return Ok(true);
    }
    let history = match store.history(id).await {
        Ok(history) => history,
        Err(StoreError::NotFound { .. }) => return Ok(true),
        Err(error) => return Err(error),
    };
    // The newest comes first.
    let written = history.iter().find(|one| is_written_as(&one.tags, one.version));
    let current = history.iter().find(|one| one.version == version);
    Ok(written.zip(current).is_none_or(|(old, new)| !publishes(old, new)))
}

/// Whether a source wrote this version.
fn is_written_as(tags: &[String], version: i64) -> bool {
    tags.iter().any(|tag| version_in(tag).and_then(|number| number.parse().ok()) == Some(version))
}

/// Whether the new version is the draft without its tag.
fn publishes(old: &BreadcrumbVersion, new: &BreadcrumbVersion) -> bool {
    let context = |one: &BreadcrumbVersion| one.context.clone().into();
    is_draft(&old.tags)
        && !is_draft(&new.tags)
        && old.title == new.title
        && old.schema_name == new.schema_name
        && same_tags(&old.tags, &new.tags)
        && same_json(&context(old), &context(new))
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
