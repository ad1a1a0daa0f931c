//! The records behind the registry, and which record owns each name. A change checks only the names
//! that it touches, however many tools there are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::registry::Report;
use crate::registry::missing_requirements::MissingRequirements;
use crate::registry::tool::{Candidate, NamedSince, Problem, Tool};

/// The version of a record that is offered, or waits.
#[derive(Clone)]
pub(crate) struct Working {
    pub candidate: Arc<Candidate>,
    /// `None` until it is validated here: another runner, or this one before its restart, found it
    /// valid.
    pub tool: Option<Arc<Tool>>,
    pub missing: MissingRequirements,
}

/// The newest version of a record, if it is a draft.
pub(crate) struct Draft {
    /// The only agent that can call it.
    pub author: Option<Uuid>,
    /// `None` if it is not validated yet, or not valid.
    pub working: Option<Working>,
}

/// What is known about a tool's record.
pub(crate) struct ToolRecord {
    pub id: Uuid,
    /// The newest version that was read.
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub created_by: Option<Uuid>,
    /// Whether it is a `tool.code.v1` and not a `tool.v1`.
    pub is_code: bool,
    /// The name in the record, valid or not.
    pub name: Option<String>,
    pub workspace: Option<String>,
    /// Whether the newest version was validated here.
    pub is_validated: bool,
    /// Names that validation may show to belong to this record.
    pub may_claim: Vec<String>,
    /// The newest version, if it can be parsed and is not validated.
    pub parsed: Option<Arc<Candidate>>,
    /// The newest version that works and is no draft.
    pub working: Option<Working>,
    pub draft: Option<Draft>,
    pub problem: Option<Problem>,
    /// Set if its name belongs to another record.
    pub taken: Option<Problem>,
}

impl ToolRecord {
    /// The names that this record reserves from younger records until it is validated, and its
    /// working version's name.
    fn claims(&self) -> BTreeSet<&str> {
        let working = self.working.as_ref().map(|working| working.candidate.name());
        let open = self.may_claim.iter().map(String::as_str).filter(|_| !self.is_validated);
        working.into_iter().chain(open).collect()
    }

    /// The versions that some call can run.
    pub fn versions(&self) -> impl Iterator<Item = &Working> {
        self.working.iter().chain(self.draft.iter().filter_map(|draft| draft.working.as_ref()))
    }

    fn versions_mut(&mut self) -> impl Iterator<Item = &mut Working> {
        self.working.iter_mut().chain(self.draft.iter_mut().filter_map(|draft| draft.working.as_mut()))
    }

    /// Whether calls of this agent may know the newest version.
    pub fn is_known_to(&self, agent: Option<Uuid>) -> bool {
        self.draft.as_ref().is_none_or(|draft| agent.is_some() && draft.author == agent)
    }

    fn active_version(&self, name: &str) -> Option<&Working> {
        self.working.as_ref().filter(|working| working.candidate.name() == name)
    }

    /// The version that has, or may have, this name.
    pub fn candidate_as(&self, name: &str) -> Option<&Arc<Candidate>> {
        let parsed = self.parsed.as_ref().filter(|_| !self.is_validated);
        let candidate = self.working.as_ref().map(|working| &working.candidate).or(parsed);
        candidate.filter(|candidate| candidate.name() == name)
    }

    fn named_since(&self, name: &str) -> NamedSince {
        self.candidate_as(name).map_or(NamedSince::both(self.created_at), |candidate| candidate.named_since())
    }

    /// Whether this record was the first of the two to have the name, whatever its schema was then.
    /// The id decides between equal dates, so that every runner decides the same.
    fn is_older_than(&self, other: &ToolRecord, name: &str) -> bool {
        (self.named_since(name).any_schema, self.id) < (other.named_since(name).any_schema, other.id)
    }

    /// Whether this is code that can take the name from the other record, an older `tool.v1`.
    fn may_replace(&self, other: &ToolRecord, name: &str) -> bool {
        let candidate = self.candidate_as(name).filter(|_| self.is_code);
        candidate.is_some_and(|candidate| candidate.may_replace_a_tool_of(other.created_by))
    }

    /// Whether this code precedes all these `tool.v1` records: it is older than each, or can
    /// replace it.
    fn precedes(&self, native: &[&ToolRecord], name: &str) -> bool {
        self.is_code && native.iter().all(|other| self.is_older_than(other, name) || self.may_replace(other, name))
    }

    /// The sort key among records of one schema: since when each has the name with this schema. An
    /// owner that changes its schema must not lose its name to a record that had no right to it
    /// until then, so that record counts from the change. `changed`: the records that already had
    /// the name under their previous schema.
    fn claim_among(&self, changed: &[&ToolRecord], name: &str) -> (DateTime<Utc>, DateTime<Utc>, Uuid) {
        let own = self.named_since(name);
        let had_it_before = |other: &&&ToolRecord| {
            other.is_code == self.is_code && other.is_older_than(self, name) && !self.may_replace(other, name)
        };
        let changes = changed.iter().filter(had_it_before).map(|other| other.named_since(name).own_schema);
        (changes.fold(own.own_schema, Ord::max), own.any_schema, self.id)
    }

    /// Whether this is a `tool.v1` that had the name before the code that owns it now.
    fn is_replaced_by(&self, owner: &ToolRecord, name: &str) -> bool {
        !self.is_code && owner.is_code && self.is_older_than(owner, name)
    }

    /// What is reported to the author if another record has the name.
    fn loses_to(&self, owner: &ToolRecord, name: &str) -> Option<Problem> {
        let first = &owner.active_version(name)?.candidate;
        if owner.id == self.id || self.is_replaced_by(owner, name) {
            return None;
        }
        let (source, id) = (first.source(), first.id);
        let advice = if self.is_code && !owner.is_code {
            "choose another, or have this record written by a curator (`rcrt bootstrap` does so with a curator's token) \
             or by the agent that created that record"
        } else {
            "choose another"
        };
        let message = format!("the name {name:?} is taken by a tool with the source {source} (record {id}); {advice}");
        Some(Problem::new("name", message))
    }

    pub fn report(&self) -> Option<Report> {
        let errors: Vec<Value> = [&self.problem, &self.taken]
            .into_iter()
            .flatten()
            .flat_map(|problem| problem.errors.iter().cloned())
            .collect();
        let serving = self.working.as_ref().filter(|_| self.taken.is_none());
        (!errors.is_empty()).then(|| Report {
            name: self.name.clone(),
            workspace: self.workspace.clone(),
            version: self.version,
            running_version: serving.map(|working| working.candidate.version),
            errors,
        })
    }
}

#[derive(Default)]
pub(crate) struct ToolRecords {
    records: HashMap<Uuid, ToolRecord>,
    /// The records that claim a name.
    claims: HashMap<String, BTreeSet<Uuid>>,
    /// The records that contain a name, whether or not they can claim it.
    said: HashMap<String, BTreeSet<Uuid>>,
    pub offered: BTreeMap<String, Arc<Candidate>>,
    pub waiting: BTreeMap<String, Working>,
    /// Names whose owner must be validated first.
    pub open: HashMap<String, Uuid>,
    /// Of the offered tools: those with subscriptions, and those with a bootstrap.
    pub subscribed: BTreeMap<String, Arc<Candidate>>,
    pub bootstrapped: BTreeMap<String, Arc<Candidate>>,
    /// The offered tools whose calls are I/O-bound.
    pub io_bound: HashSet<String>,
    /// The offered tools that can call others.
    pub callers: HashSet<String>,
    /// Names whose catalog entry may have changed.
    pub changed: HashSet<String>,
    /// The same since the last search of the tools. `None` if there are too many to remember.
    pub unindexed: Option<HashSet<String>>,
}

/// The most names in [`ToolRecords::unindexed`].
const MAX_UNINDEXED: usize = 50_000;

impl ToolRecords {
    /// The catalog entry of this name may have changed.
    pub fn mark_changed(&mut self, name: String) {
        self.unindexed = self.unindexed.take().filter(|names| names.len() < MAX_UNINDEXED);
        if let Some(unindexed) = &mut self.unindexed {
            unindexed.insert(name.clone());
        }
        self.changed.insert(name);
    }

    pub fn get(&self, id: Uuid) -> Option<&ToolRecord> {
        self.records.get(&id)
    }

    pub fn all(&self) -> impl Iterator<Item = &ToolRecord> {
        self.records.values()
    }

    pub fn claiming(&self, name: &str) -> impl Iterator<Item = &ToolRecord> {
        self.claims.get(name).into_iter().flatten().filter_map(|id| self.records.get(id))
    }

    pub fn named(&self, name: &str) -> impl Iterator<Item = &ToolRecord> {
        self.said.get(name).into_iter().flatten().filter_map(|id| self.records.get(id))
    }

    /// The agent's draft with this name, if there is one that is valid or not validated yet.
    pub fn draft(&self, name: &str, author: Uuid) -> Option<(&ToolRecord, Option<&Working>)> {
        let is_own = |record: &&ToolRecord| record.draft.is_some() && record.is_known_to(Some(author));
        let drafts = self.named(name).filter(is_own).map(|record| {
            let working = record.draft.as_ref().and_then(|draft| draft.working.as_ref());
            (record, working)
        });
        drafts.filter(|(record, working)| working.is_some() || !record.is_validated).min_by_key(|(record, _)| record.id)
    }

    /// Replaces the record of the same id, or removes it. Returns the records whose report changed.
    pub fn replace(&mut self, id: Uuid, new: Option<ToolRecord>) -> Vec<Uuid> {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for record in self.records.get(&id).into_iter().chain(&new) {
            names.extend(record.claims().into_iter().map(str::to_owned));
        }
        self.comparing(&names, id, |records| {
            if let Some(old) = records.records.remove(&id) {
                for name in old.claims() {
                    forget(&mut records.claims, name, id);
                }
                if let Some(name) = &old.name {
                    forget(&mut records.said, name, id);
                }
            }
            if let Some(new) = new {
                for name in new.claims() {
                    records.claims.entry(name.to_owned()).or_default().insert(id);
                }
                if let Some(name) = &new.name {
                    records.said.entry(name.clone()).or_default().insert(id);
                }
                records.records.insert(id, new);
            }
        })
    }

    /// Assigns a name again: something new is known about its first claimant.
    pub fn resolve_name_again(&mut self, name: &str) -> Vec<Uuid> {
        let names = BTreeSet::from([name.to_owned()]);
        self.comparing(&names, Uuid::nil(), |_| {})
    }

    /// Sets what this version lacks now. True if that changed.
    pub fn set_missing(&mut self, tool: &Candidate, now: MissingRequirements) -> bool {
        let name = {
            let Some(record) = self.records.get_mut(&tool.id) else { return false };
            let mut versions = record.versions_mut();
            let Some(working) = versions.find(|working| working.candidate.version == tool.version) else {
                return false;
            };
            if working.missing == now {
                return false;
            }
            working.missing = now;
            working.candidate.name().to_owned()
        };
        self.resolve_owner(&name);
        true
    }

    fn comparing(&mut self, names: &BTreeSet<String>, id: Uuid, change: impl FnOnce(&mut Self)) -> Vec<Uuid> {
        let touched: BTreeSet<Uuid> =
            names.iter().filter_map(|name| self.claims.get(name)).flatten().copied().chain([id]).collect();
        let reports = |records: &Self| -> Vec<Option<Report>> {
            touched.iter().map(|id| records.records.get(id)?.report()).collect()
        };
        let before = reports(self);
        change(self);
        for name in names {
            self.resolve_owner(name);
        }
        let after = reports(self);
        let pairs = touched.iter().zip(before.iter().zip(&after));
        pairs.filter(|(_, (before, after))| before != after).map(|(id, _)| *id).collect()
    }

    /// The claimants of the name, by precedence: code that precedes the `tool.v1` records, then
    /// those, then other code. Within each group the oldest claim comes first.
    fn in_order(&self, name: &str) -> Vec<&ToolRecord> {
        let mut claimants: Vec<&ToolRecord> = self.claiming(name).collect();
        let native: Vec<&ToolRecord> = claimants.iter().copied().filter(|record| !record.is_code).collect();
        let is_changed = |record: &&ToolRecord| {
            let since = record.named_since(name);
            since.own_schema != since.any_schema
        };
        let changed: Vec<&ToolRecord> = claimants.iter().copied().filter(is_changed).collect();
        claimants.sort_by_cached_key(|record| {
            let precedes = record.precedes(&native, name);
            (!precedes, record.is_code, record.claim_among(&changed, name))
        });
        claimants
    }

    /// Assigns the name to the first claimant, even if that one waits: a name stays with its owner
    /// while the owner cannot run or is not validated yet. The other claimants' reports name the
    /// owner. A `tool.v1` that code replaces gets no report. It serves while the code cannot,
    /// because the code was never valid, is deleted, or still waits.
    fn resolve_owner(&mut self, name: &str) {
        let claimants = self.in_order(name);
        let serving = claimants.first().map(|owner| {
            let owner_waits = owner.active_version(name).is_some_and(|working| !working.missing.is_empty());
            let can_serve = |record: &&&ToolRecord| match record.active_version(name) {
                Some(working) => working.missing.is_empty(),
                None => !record.is_validated,
            };
            let replaced = claimants.iter().find(|record| record.is_replaced_by(owner, name));
            replaced.filter(|_| owner_waits).filter(can_serve).unwrap_or(owner)
        });
        let (owner_id, working) =
            (serving.map(|serving| serving.id), serving.and_then(|serving| serving.active_version(name).cloned()));
        let reports: Vec<(Uuid, Option<Problem>)> = claimants
            .iter()
            .filter(|record| record.is_validated && record.active_version(name).is_some())
            .map(|record| (record.id, claimants.first().and_then(|owner| record.loses_to(owner, name))))
            .collect();
        for (id, problem) in reports {
            if let Some(record) = self.records.get_mut(&id) {
                record.taken = problem;
            }
        }
        self.clear(name);
        match (working, owner_id) {
            (Some(one), _) if one.missing.is_empty() => {
                let tool = one.candidate;
                if !tool.definition.subscriptions.is_empty() {
                    self.subscribed.insert(name.to_owned(), tool.clone());
                }
                if tool.bootstrap().is_some() {
                    self.bootstrapped.insert(name.to_owned(), tool.clone());
                }
                if tool.executor.is_io_bound(&tool.definition) {
                    self.io_bound.insert(name.to_owned());
                }
                if tool.definition.permissions.tools.is_granted() {
                    self.callers.insert(name.to_owned());
                }
                self.offered.insert(name.to_owned(), tool);
            }
            (Some(one), _) => {
                self.waiting.insert(name.to_owned(), one);
            }
            (None, Some(owner)) => {
                self.open.insert(name.to_owned(), owner);
            }
            (None, None) => {}
        }
        self.mark_changed(name.to_owned());
    }

    fn clear(&mut self, name: &str) {
        self.offered.remove(name);
        self.waiting.remove(name);
        self.open.remove(name);
        self.subscribed.remove(name);
        self.bootstrapped.remove(name);
        self.io_bound.remove(name);
        self.callers.remove(name);
    }
}

fn forget(index: &mut HashMap<String, BTreeSet<Uuid>>, name: &str, id: Uuid) {
    if let Some(ids) = index.get_mut(name) {
        ids.remove(&id);
        if ids.is_empty() {
            index.remove(name);
        }
    }
}
