//! Writes a set into a store, file by file, and reports the outcome of each.

use std::collections::HashSet;

use async_trait::async_trait;
use rcrt_breadcrumb::{Breadcrumb, CURATORS_TOOL_TAG, Records, Selector, StoreError, schema_names};
use serde::Serialize;
use uuid::Uuid;

use super::compare::{changes, has_same_content};
use super::find::{every, existing, tools_named};
use super::origin;
use super::set::{Refused, Seed, SeedSet};

/// Attempts to update a record that is changed concurrently.
const ATTEMPTS: usize = 3;

#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Only report what would change.
    pub dry_run: bool,
    /// Remove records that this set created earlier and no longer has.
    pub prune: bool,
    /// Do not update records that another agent changed last.
    pub only_own: Option<Uuid>,
    /// Take over records that another source wrote.
    pub adopt: bool,
    /// Update or remove records that somebody changed after this source wrote them.
    pub overwrite: bool,
    /// This agent is a curator, so its code takes precedence over a `tool.v1` of the same name.
    pub as_curator: bool,
    /// Write tools as drafts.
    pub as_draft: bool,
}

/// What is required of a record beyond its validity before it is written.
#[async_trait]
pub trait SeedCheck: Sync {
    /// The errors, one line each.
    async fn findings(&self, seed: &Seed) -> Vec<String>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeedOutcome {
    Created,
    Updated,
    Unchanged,
    /// Differs from the file, or has none any more, because somebody changed the record.
    Kept,
    Removed,
    /// The file is not valid, or exceeds a quota; nothing was written.
    Refused,
}

/// The result for one file.
#[derive(Debug, Serialize)]
pub struct SeedResult {
    pub path: String,
    pub what: SeedOutcome,
    /// The record's title, or the tool's name.
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The errors, one line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl SeedOutcome {
    /// Whether the record is as its file says.
    pub fn is_in_effect(self) -> bool {
        matches!(self, Self::Created | Self::Updated | Self::Unchanged)
    }

    pub fn word(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Created, false) => "created",
            (Self::Created, true) => "would create",
            (Self::Updated, false) => "updated",
            (Self::Updated, true) => "would update",
            (Self::Unchanged, _) => "unchanged",
            (Self::Kept, _) => "kept",
            (Self::Removed, false) => "removed",
            (Self::Removed, true) => "would remove",
            (Self::Refused, _) => "refused",
        }
    }
}

/// Applies the whole set. An invalid file does not stop the others; an error of the store does.
/// `check` refuses records before they are created or updated.
pub async fn apply(
    store: &dyn Records,
    set: &SeedSet,
    options: Options,
    check: Option<&dyn SeedCheck>,
) -> Result<Vec<SeedResult>, StoreError> {
    let mut rows = Vec::new();
    for seed in &set.seeds {
        rows.push(apply_seed(store, set, seed, options, check).await?);
    }
    rows.extend(set.refused.iter().map(refused));
    if options.prune {
        rows.extend(prune(store, set, &rows, options).await?);
    }
    rows.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(rows)
}

async fn apply_seed(
    store: &dyn Records,
    set: &SeedSet,
    seed: &Seed,
    options: Options,
    check: Option<&dyn SeedCheck>,
) -> Result<SeedResult, StoreError> {
    let row = |what, record: Option<(Uuid, i64)>| SeedResult {
        path: seed.path.clone(),
        what,
        title: seed.name().to_owned(),
        id: record.map(|(id, _)| id),
        version: record.map(|(_, version)| version),
        findings: Vec::new(),
    };
    // What passed is not checked again after a conflict: examples take long.
    let refusal = async |attempt: usize| match check.filter(|_| attempt == 1) {
        Some(check) => Some(check.findings(seed).await).filter(|findings| !findings.is_empty()),
        None => None,
    };
    let mut attempt = 1;
    loop {
        let Some(record) = existing(store, &seed.record, &set.tag(&seed.path)).await? else {
            if let Some(findings) = refusal(attempt).await {
                return Ok(SeedResult { findings, ..row(SeedOutcome::Refused, None) });
            }
            if options.dry_run {
                return Ok(row(SeedOutcome::Created, None));
            }
            return match store.create(origin::as_version(&seed.record, 1, options.as_draft), None).await {
                Ok(created) => Ok(row(SeedOutcome::Created, Some((created.id, created.version)))),
                Err(error) => refused_by_store(seed, error),
            };
        };
        let at = Some((record.id, record.version));
        let is_retired = record.schema_name.as_deref() == Some(schema_names::TOOL_RETIRED);
        if is_retired && !options.overwrite {
            let finding = retired(set, seed, &record, options);
            let findings = if options.only_own.is_none() { vec![finding] } else { Vec::new() };
            return Ok(SeedResult { findings, ..row(SeedOutcome::Kept, at) });
        }
        if options.only_own.is_none()
            && !options.adopt
            && let Some(origin) = origin::other(&record, set)
        {
            let finding = format!("{}: the record {} {origin}; take it over with --adopt", seed.path, record.id);
            return Ok(SeedResult { findings: vec![finding], ..row(SeedOutcome::Refused, at) });
        }
        let lacks_mark = options.as_curator && lacks_curators_tag(store, set, seed, &record).await?;
        let is_changed_since = options.only_own.is_none()
            && origin::is_changed_since(store, record.id, &record.tags, record.version).await?;
        let is_same = has_same_content(&seed.record, &record);
        let is_unpublished = !options.as_draft && origin::is_own_draft(&record.tags, record.version);
        // If a file follows a change of its record, it is written again, so that later changes of
        // the file are not refused.
        if is_same && !lacks_mark && !is_changed_since && !is_unpublished {
            return Ok(row(SeedOutcome::Unchanged, at));
        }
        if options.only_own.is_some_and(|agent| !is_last_changed_by(&record, agent)) {
            return Ok(row(SeedOutcome::Kept, at));
        }
        let is_own = origin::other(&record, set).is_none();
        if is_own && is_changed_since && !is_same && !options.overwrite {
            let finding = format!(
                "{}: version {} of the record {} was not written by a bootstrap; write the file over it with --overwrite",
                seed.path, record.version, record.id
            );
            return Ok(SeedResult { findings: vec![finding], ..row(SeedOutcome::Kept, at) });
        }
        if let Some(findings) = refusal(attempt).await {
            return Ok(SeedResult { findings, ..row(SeedOutcome::Refused, at) });
        }
        if options.dry_run {
            return Ok(row(SeedOutcome::Updated, at));
        }
        let next = origin::as_version(&seed.record, record.version + 1, options.as_draft);
        match store.update(record.id, record.version, changes(&next)).await {
            Ok(updated) => return Ok(row(SeedOutcome::Updated, Some((updated.id, updated.version)))),
            // The record was changed concurrently: read it again.
            Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) if attempt < ATTEMPTS => attempt += 1,
            // The tool uses secrets, so only a curator can change.
            Err(StoreError::Forbidden(_)) if options.only_own.is_some() => return Ok(row(SeedOutcome::Kept, at)),
            Err(StoreError::Forbidden(why)) => {
                let findings = vec![why];
                return Ok(SeedResult { findings, ..row(SeedOutcome::Refused, at) });
            }
            Err(error) => return refused_by_store(seed, error),
        }
    }
}

fn retired(set: &SeedSet, seed: &Seed, record: &Breadcrumb, options: Options) -> String {
    let (path, name) = (&seed.path, seed.name());
    let needs_adopt = !options.adopt && origin::other(record, set).is_some();
    let flags = if needs_adopt { "--overwrite --adopt" } else { "--overwrite" };
    format!(
        "{path}: the tool {name} was retired (record {}); bring it back with `rcrt tool rollback {name}`, or write the \
         file over it with {flags}",
        record.id
    )
}

/// Returns whether a curator has to write this code record again to get the tag of curators,
/// because a `tool.v1` of the same name exists or is in the set. Without one, a new version would
/// only change the record's author.
async fn lacks_curators_tag(
    store: &dyn Records,
    set: &SeedSet,
    seed: &Seed,
    record: &Breadcrumb,
) -> Result<bool, StoreError> {
    let is_code = seed.record.schema_name.as_deref() == Some(schema_names::TOOL_CODE);
    if !is_code || record.tags.iter().any(|tag| tag == CURATORS_TOOL_TAG) {
        return Ok(false);
    }
    let is_rival = |other: &Seed| {
        other.record.schema_name.as_deref() == Some(schema_names::TOOL_V1) && other.name() == seed.name()
    };
    Ok(set.seeds.iter().any(is_rival) || !tools_named(store, schema_names::TOOL_V1, seed.name()).await?.is_empty())
}

fn is_last_changed_by(record: &Breadcrumb, agent: Uuid) -> bool {
    record.updated_by.or(record.created_by) == Some(agent)
}

/// If the store rejects a record, or a quota is used up, only that file fails. Other errors stop
/// the seeding.
fn refused_by_store(seed: &Seed, error: StoreError) -> Result<SeedResult, StoreError> {
    let findings = match error {
        StoreError::Invalid(violations) => violations.0.iter().map(ToString::to_string).collect(),
        error @ StoreError::TooLarge { .. } => vec![error.to_string()],
        // Files after this one may need less, or another quota.
        error @ StoreError::QuotaExceeded { .. } => vec![format!("{}: not written: {error}", seed.path)],
        error => return Err(error),
    };
    Ok(refused(&Refused { path: seed.path.clone(), name: seed.name().to_owned(), findings }))
}

fn refused(file: &Refused) -> SeedResult {
    SeedResult {
        path: file.path.clone(),
        what: SeedOutcome::Refused,
        title: file.name.clone(),
        id: None,
        version: None,
        findings: file.findings.clone(),
    }
}

/// Removes the records of this set that belong to none of its files. An invalid file keeps its
/// record.
async fn prune(
    store: &dyn Records,
    set: &SeedSet,
    done: &[SeedResult],
    options: Options,
) -> Result<Vec<SeedResult>, StoreError> {
    let present: HashSet<String> = done.iter().map(|row| set.tag(&row.path)).collect();
    let ids: HashSet<Uuid> = done.iter().filter_map(|row| row.id).collect();
    let selector = Selector { all_tags: vec![set.mark()], ..Selector::default() };
    let prefix = set.tag("");
    let mut rows = Vec::new();
    for item in every(store, selector).await? {
        let Some(tag) = item.tags.iter().find(|tag| tag.starts_with(&prefix)) else { continue };
        if ids.contains(&item.id) || present.contains(tag) {
            continue;
        }
        let mut row = SeedResult {
            path: tag.strip_prefix(&prefix).unwrap_or(tag).to_owned(),
            what: SeedOutcome::Removed,
            title: item.title,
            id: Some(item.id),
            version: None,
            findings: Vec::new(),
        };
        if !options.overwrite && origin::is_changed_since(store, item.id, &item.tags, item.version).await? {
            row.what = SeedOutcome::Kept;
            row.version = Some(item.version);
            row.findings.push(format!(
                "{}: the file is gone, but version {} of the record {} was not written by a bootstrap; remove it with \
                 --overwrite",
                row.path, item.version, item.id
            ));
        } else if !options.dry_run {
            match store.delete(item.id, Some(item.version)).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => {}
                // The tool uses secrets, so only a curator can take away.
                Err(StoreError::Forbidden(why)) => {
                    row.what = SeedOutcome::Refused;
                    row.findings.push(why);
                }
                Err(error) => return Err(error),
            }
        }
        rows.push(row);
    }
    Ok(rows)
}
