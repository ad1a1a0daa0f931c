//! The tools as this runner knows them: for each name one working version of one record, offered or
//! waiting.

pub(crate) mod bootstrap;
pub(crate) mod deprecated_use;
pub(crate) mod load_queue;
pub(crate) mod missing_requirements;
pub(crate) mod pinned_versions;
pub(crate) mod previous_catalog;
pub(crate) mod readiness;
pub(crate) mod reconciling;
pub(crate) mod tool;
pub(crate) mod tool_errors;
pub(crate) mod tool_loader;
pub(crate) mod tool_preparation;
pub(crate) mod tool_records;
pub(crate) mod tool_rights;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use parking_lot::RwLock;
use rcrt_breadcrumb::{CatalogEntry, Profile, ToolSource, nearest_names, shadow_share};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::registry::missing_requirements::MissingRequirements;
use crate::registry::tool::{Candidate, Problem, Tool};
use crate::registry::tool_records::{ToolRecord, ToolRecords, Working};
use crate::registry::tool_rights::Drafts;

/// What is reported to the author of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    pub name: Option<String>,
    pub workspace: Option<String>,
    pub version: i64,
    pub running_version: Option<i64>,
    pub errors: Vec<Value>,
}

pub(crate) enum Lookup {
    Tool(Arc<Tool>),
    Waiting(Arc<Candidate>),
    /// The name may belong to this record, which is not validated here yet.
    Unvalidated(Uuid),
    /// The tool exists, and no version of it works.
    Broken(Problem),
    Unknown {
        nearest: Vec<String>,
    },
}

/// How far a record was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub version: i64,
    pub is_validated: bool,
}

pub(crate) struct Registry {
    inner: RwLock<ToolRecords>,
    /// Notified when the set of offered or waiting tools may have changed.
    pub changes: watch::Sender<()>,
}

/// What must follow a change of the registry.
#[derive(Default)]
pub(crate) struct Consequences {
    /// Records whose report changed.
    pub reports: Vec<Uuid>,
    /// Versions that are no longer used.
    pub retired: Vec<Arc<Candidate>>,
}

impl Registry {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { inner: RwLock::default(), changes: watch::Sender::new(()) })
    }

    fn read<T>(&self, look: impl FnOnce(&ToolRecords) -> T) -> T {
        look(&self.inner.read())
    }

    fn write<T>(&self, change: impl FnOnce(&mut ToolRecords) -> T) -> T {
        let changed = change(&mut self.inner.write());
        self.changes.send_replace(());
        changed
    }

    /// `may_name`: whether the caller can see a name, given the source of its tool if it is known.
    pub fn find(&self, name: &str, drafts: Drafts, may_name: impl Fn(&str, Option<&Candidate>) -> bool) -> Lookup {
        self.read(|records| {
            if let Drafts::Of(author) = drafts
                && let Some(found) = draft(records, name, author)
            {
                return found;
            }
            if let Some(tool) = records.offered.get(name) {
                return match working(records, tool.id) {
                    Some(tool) => Lookup::Tool(tool),
                    None => Lookup::Unvalidated(tool.id),
                };
            }
            if let Some(waiting) = records.waiting.get(name) {
                return Lookup::Waiting(waiting.candidate.clone());
            }
            if let Some(owner) = records.open.get(name) {
                return Lookup::Unvalidated(*owner);
            }
            if let Drafts::OfUnpublished(author) = drafts
                && let Some(found) = draft(records, name, author)
            {
                return found;
            }
            let known = || records.named(name).filter(|record| record.is_known_to(drafts.author()));
            match known().find_map(|record| record.problem.clone()) {
                Some(problem) => Lookup::Broken(problem),
                None => {
                    let offered = records.offered.iter().filter(|(name, tool)| may_name(name, Some(tool)));
                    let open = records.open.keys().filter(|name| may_name(name, None));
                    let known = offered.map(|(name, _)| name).chain(open).map(String::as_str);
                    Lookup::Unknown { nearest: nearest_names(name, known) }
                }
            }
        })
    }

    /// The tool that a call of this name runs, if that is known without reading or checking more.
    pub fn active_version(&self, name: &str, drafts: Drafts) -> Option<Arc<Tool>> {
        match self.find(name, drafts, |_, _| false) {
            Lookup::Tool(tool) => Some(tool),
            _ => None,
        }
    }

    /// The draft that runs beside this tool, if there is one: code by an agent that can take the
    /// name, of which a second run changes nothing further.
    pub fn shadow_of(&self, tool: &Tool) -> Option<Arc<Tool>> {
        if tool.definition.is_code() || !tool.definition.annotations.may_be_repeated() {
            return None;
        }
        self.read(|records| {
            let maker = records.get(tool.id)?.created_by;
            let is_shadow = |draft: &Arc<Tool>| {
                draft.name() == tool.name()
                    && draft.definition.is_code()
                    && draft.definition.annotations.may_be_repeated()
                    && shadow_share(&draft.tags).is_some()
                    && draft.may_replace_a_tool_of(maker)
            };
            let drafts =
                records.named(tool.name()).filter_map(|one| one.draft.as_ref()?.working.as_ref()?.tool.clone());
            drafts.filter(is_shadow).min_by_key(|draft| draft.id)
        })
    }

    /// The version that is offered under this name, validated or not.
    pub fn offered(&self, name: &str) -> Option<Arc<Candidate>> {
        self.read(|records| records.offered.get(name).cloned())
    }

    /// The offered tools with subscriptions that pass the filter, by name.
    pub fn subscribed(&self, wanted: impl Fn(&Candidate) -> bool) -> Vec<Arc<Candidate>> {
        self.read(|records| records.subscribed.values().filter(|tool| wanted(tool)).cloned().collect())
    }

    /// Records with subscriptions that pass the filter and are not validated yet.
    pub fn unvalidated_subscribers(&self, wanted: impl Fn(&Candidate) -> bool) -> Vec<Arc<Candidate>> {
        let is_wanted = |tool: &&Arc<Candidate>| !tool.subscriptions.is_empty() && wanted(tool);
        self.read(|records| unvalidated(records).filter(is_wanted).cloned().collect())
    }

    pub fn may_have_subscribed(&self) -> bool {
        self.read(|records| {
            !records.subscribed.is_empty() || unvalidated(records).any(|tool| !tool.definition.subscriptions.is_empty())
        })
    }

    /// Whether a tool with I/O-bound calls is offered.
    pub fn has_io_bound(&self) -> bool {
        self.read(|records| !records.io_bound.is_empty())
    }

    pub fn is_io_bound(&self, name: &str) -> bool {
        self.read(|records| records.io_bound.contains(name))
    }

    /// The offered tools that can call others.
    pub fn callers(&self) -> Vec<String> {
        self.read(|records| records.callers.iter().cloned().collect())
    }

    pub fn is_caller(&self, name: &str) -> bool {
        self.read(|records| records.callers.contains(name))
    }

    /// The offered tools with a bootstrap, by name.
    pub fn bootstrapped(&self) -> Vec<Arc<Candidate>> {
        self.read(|records| records.bootstrapped.values().cloned().collect())
    }

    /// The versions of each record that some call can run, even if another record has the name.
    pub fn working(&self) -> Vec<Arc<Candidate>> {
        self.read(|records| records.all().flat_map(ToolRecord::versions).map(|one| one.candidate.clone()).collect())
    }

    /// Whether the tool waits for a setting or a program that another runner may have.
    pub fn lacks_settings(&self, name: &str) -> bool {
        self.read(|records| records.waiting.get(name).is_some_and(|one| one.missing.is_of_this_runner()))
    }

    /// The native tools whose settings and programs this runner has.
    pub fn served_by_settings(&self) -> BTreeSet<String> {
        let is_native = |tool: &Candidate| tool.source() == ToolSource::Native;
        let is_set_up = |tool: &Candidate| tool.executor.missing_requirements(&tool.definition).is_empty();
        self.read(|records| {
            let waiting = records.waiting.values().map(|one| &one.candidate);
            let all = records.offered.values().chain(waiting).filter(|tool| is_native(tool) && is_set_up(tool));
            all.map(|tool| tool.name().to_owned()).collect()
        })
    }

    /// The catalog entry of a tool that lacks settings of this runner and nothing else, as if it
    /// had them.
    pub fn as_if_offered(&self, name: &str) -> Option<CatalogEntry> {
        self.read(|records| {
            let waiting = records.waiting.get(name).filter(|waiting| waiting.missing.is_only_of_this_runner())?;
            Some(CatalogEntry::Offered(waiting.candidate.registration()))
        })
    }

    /// Marks the catalog entries of these names as changed, after a change outside of the registry.
    pub fn touch(&self, names: impl IntoIterator<Item = String>) {
        self.write(|records| names.into_iter().for_each(|name| records.mark_changed(name)));
    }

    /// The versions that have or may have this name, if more than one record does.
    pub fn same_name(&self, name: &str) -> Vec<Arc<Candidate>> {
        self.read(|records| {
            let rivals: Vec<_> = records.claiming(name).filter_map(|one| one.candidate_as(name).cloned()).collect();
            if rivals.len() > 1 { rivals } else { Vec::new() }
        })
    }

    /// Whether a record other than this one has the name, or may have it.
    pub fn is_claimed_by_another(&self, name: &str, id: Uuid) -> bool {
        self.read(|records| records.claiming(name).any(|record| record.id != id))
    }

    /// The catalog entry of a name.
    pub fn entry(&self, name: &str) -> Option<CatalogEntry> {
        self.read(|records| {
            let offered = || records.offered.get(name).map(|tool| CatalogEntry::Offered(tool.registration()));
            let waits =
                || records.waiting.get(name).map(|one| CatalogEntry::Waiting(one.missing.waiting(&one.candidate)));
            offered().or_else(waits)
        })
    }

    /// All tools that are offered by this runner, or by the other runners that serve these names.
    /// Sorted by name.
    pub fn all_offered(&self, served_elsewhere: &BTreeSet<String>) -> Vec<Arc<Candidate>> {
        self.read(|records| {
            let waiting = served_elsewhere.iter().filter_map(|name| records.waiting.get(name));
            let elsewhere = waiting.filter(|one| one.missing.is_only_of_this_runner()).map(|one| &one.candidate);
            let all: BTreeMap<&str, _> =
                records.offered.values().chain(elsewhere).map(|tool| (tool.name(), tool)).collect();
            all.into_values().cloned().collect()
        })
    }

    /// For each profile, how many of the offered tools it allows and how many it denies.
    pub fn counts_by_profile(&self) -> Vec<(Profile, usize, usize)> {
        self.read(|records| {
            let count = |profile: Profile| {
                let is_open = |(name, tool): &(&String, &Arc<Candidate>)| profile.allows(name, &tool.source());
                let open = records.offered.iter().filter(is_open).count();
                (profile, open, records.offered.len() - open)
            };
            Profile::ALL.into_iter().map(count).collect()
        })
    }

    /// Every name with a catalog entry.
    pub fn names(&self) -> Vec<String> {
        self.read(|records| records.offered.keys().chain(records.waiting.keys()).cloned().collect())
    }

    /// The names whose catalog entry may have changed since the last call of this function.
    pub fn take_changed(&self) -> HashSet<String> {
        std::mem::take(&mut self.inner.write().changed)
    }

    /// The names whose catalog entry may have changed since the last call of this function. `None`
    /// if that may be any.
    pub fn take_unindexed(&self) -> Option<HashSet<String>> {
        self.inner.write().unindexed.replace(HashSet::new())
    }

    /// How far a record was read.
    pub fn known(&self, id: Uuid) -> Option<Known> {
        self.read(|records| {
            let record = records.get(id)?;
            Some(Known { version: record.version, is_validated: record.is_validated })
        })
    }

    /// The newest version that was read of a record.
    pub fn version_of(&self, id: Uuid) -> Option<i64> {
        self.known(id).map(|known| known.version)
    }

    /// The validated working version of a record, if the record is code (`is_code`) or a `tool.v1`.
    /// It is offered unless another record has its name, or it waits.
    pub fn validated_version(&self, id: Uuid, is_code: bool) -> Option<i64> {
        self.read(|records| {
            let record = records.get(id).filter(|record| record.is_code == is_code)?;
            Some(record.working.as_ref()?.tool.as_ref()?.version)
        })
    }

    /// The version of a record that calls get.
    pub fn version_in_use(&self, id: Uuid) -> Option<i64> {
        self.read(|records| Some(records.get(id)?.working.as_ref()?.candidate.version))
    }

    pub fn ids(&self) -> HashSet<Uuid> {
        self.read(|records| records.all().map(|record| record.id).collect())
    }

    pub fn report(&self, id: Uuid) -> Option<Report> {
        self.read(|records| records.get(id)?.report())
    }

    /// Replaces what is known about a record. If the new state has no working version, the previous
    /// one stays in use, provided that it has the same schema.
    pub fn put(&self, mut record: ToolRecord) -> Consequences {
        self.write(|records| {
            let id = record.id;
            let old = records.get(id).and_then(|old| Some((old.is_code, old.working.clone()?)));
            let old_draft = records.get(id).and_then(|old| old.draft.as_ref()?.working.as_ref());
            let old_draft = old_draft.map(|old| old.candidate.clone());
            let retired = match (&record.working, old) {
                // Precedence depends on the record's schema, which the author may have changed to
                // gain precedence.
                (None, Some((was_code, old))) if was_code != record.is_code => Some(old.candidate),
                // The catalog listed this version as valid, but validation has now failed.
                (None, Some((_, old))) if old.tool.is_none() && record.is_validated => Some(old.candidate),
                (None, old) => {
                    record.working = old.map(|(_, old)| old);
                    None
                }
                (Some(new), Some((_, old))) => {
                    new.candidate.inherit_name(&old.candidate);
                    Some(old.candidate).filter(|old| old.version != new.candidate.version)
                }
                (Some(_), None) => None,
            };
            let is_used = |old: &Arc<Candidate>| record.versions().any(|now| now.candidate.version == old.version);
            let retired = retired.into_iter().chain(old_draft).filter(|old| !is_used(old)).collect();
            Consequences { reports: records.replace(id, Some(record)), retired }
        })
    }

    pub fn remove(&self, id: Uuid) -> Consequences {
        self.write(|records| {
            let versions = records.get(id).into_iter().flat_map(ToolRecord::versions);
            let retired = versions.map(|one| one.candidate.clone()).collect();
            Consequences { reports: records.replace(id, None), retired }
        })
    }

    /// Sets what these versions lack now.
    pub fn set_missing(&self, missing: Vec<(Arc<Candidate>, MissingRequirements)>) {
        let is_news = |records: &ToolRecords, tool: &Candidate, now: &MissingRequirements| {
            let mut versions = records.get(tool.id).into_iter().flat_map(ToolRecord::versions);
            versions.any(|working| working.candidate.version == tool.version && working.missing != *now)
        };
        let news: Vec<(Arc<Candidate>, MissingRequirements)> =
            self.read(|records| missing.into_iter().filter(|(tool, now)| is_news(records, tool, now)).collect());
        if !news.is_empty() {
            self.write(|records| {
                for (tool, now) in news {
                    records.set_missing(&tool, now);
                }
            });
        }
    }

    /// Assigns a name again: something new is known about its first claimant.
    pub fn resolve_name(&self, name: &str) -> Consequences {
        self.write(|records| Consequences { reports: records.resolve_name_again(name), retired: Vec::new() })
    }
}

fn unvalidated(records: &ToolRecords) -> impl Iterator<Item = &Arc<Candidate>> {
    records.open.values().filter_map(|id| records.get(*id)?.parsed.as_ref())
}

/// The agent's draft of this name, unless it is not valid.
fn draft(records: &ToolRecords, name: &str, author: Uuid) -> Option<Lookup> {
    let (record, working) = records.draft(name, author)?;
    Some(match working {
        Some(Working { tool: Some(tool), missing, .. }) if missing.is_empty() => Lookup::Tool(tool.clone()),
        Some(waiting) => Lookup::Waiting(waiting.candidate.clone()),
        None => Lookup::Unvalidated(record.id),
    })
}

fn working(records: &ToolRecords, id: Uuid) -> Option<Arc<Tool>> {
    records.get(id)?.working.as_ref()?.tool.clone()
}

impl Report {
    /// The context of the record that reports to the author.
    pub fn context(&self, tool_id: Uuid) -> Map<String, Value> {
        let context = json!({
            "tool": self.name,
            "tool_id": tool_id,
            "version": self.version,
            "running_version": self.running_version,
            "errors": self.errors,
        });
        match context {
            Value::Object(context) => context,
            _ => Map::new(),
        }
    }
}
