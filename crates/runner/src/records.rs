//! The records behind the registry, and whose each name is. A change looks at the names that it touches and at no
//! others, however many tools there are.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::lacks::Lacks;
use crate::registry::Report;
use crate::tool::{Candidate, Problem, Tool};

/// The version of a record that is offered, or waits.
#[derive(Clone)]
pub(crate) struct Working {
    pub candidate: Arc<Candidate>,
    /// `None` until it is judged here: another runner, or this one before it was started anew, found it good.
    pub tool: Option<Arc<Tool>>,
    pub lacks: Lacks,
}

/// What is known of a tool's record.
pub(crate) struct Record {
    pub id: Uuid,
    /// The newest that was read.
    pub version: i64,
    pub created_at: DateTime<Utc>,
    /// The name as the record says it, be it a good one or not.
    pub name: Option<String>,
    pub workspace: Option<String>,
    /// Whether the newest version was judged here.
    pub is_judged: bool,
    /// Names that may turn out to be this record's when it is judged.
    pub may_claim: Vec<String>,
    /// The newest version, where that is not judged and can be read.
    pub sketch: Option<Arc<Candidate>>,
    pub working: Option<Working>,
    pub problem: Option<Problem>,
    /// Its name belongs to another record.
    pub taken: Option<Problem>,
}

impl Record {
    /// The names that no younger record may have, as long as it is not known better.
    fn claims(&self) -> BTreeSet<&str> {
        let working = self.working.as_ref().map(|working| working.candidate.name());
        let open = self.may_claim.iter().map(String::as_str).filter(|_| !self.is_judged);
        working.into_iter().chain(open).collect()
    }

    fn working_as(&self, name: &str) -> Option<&Working> {
        self.working.as_ref().filter(|working| working.candidate.name() == name)
    }

    /// The version that has, or may have, this name.
    pub fn candidate_as(&self, name: &str) -> Option<&Arc<Candidate>> {
        let sketch = self.sketch.as_ref().filter(|_| !self.is_judged);
        let candidate = self.working.as_ref().map(|working| &working.candidate).or(sketch);
        candidate.filter(|candidate| candidate.name() == name)
    }

    fn claim_to(&self, name: &str) -> (DateTime<Utc>, Uuid) {
        self.candidate_as(name).map_or((self.created_at, self.id), |candidate| candidate.claim_to_name())
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
pub(crate) struct Records {
    records: HashMap<Uuid, Record>,
    /// Who claims a name.
    claims: HashMap<String, BTreeSet<Uuid>>,
    /// Who says a name, be it able to claim it or not.
    said: HashMap<String, BTreeSet<Uuid>>,
    pub offered: BTreeMap<String, Arc<Candidate>>,
    pub waiting: BTreeMap<String, Working>,
    /// Names whose owner has to be judged first.
    pub open: HashMap<String, Uuid>,
    /// Of what is offered: what runs because of events, and what runs by itself.
    pub subscribed: BTreeMap<String, Arc<Candidate>>,
    pub bootstrapped: BTreeMap<String, Arc<Candidate>>,
    /// And what only waits for others when it runs.
    pub idling: HashSet<String>,
    /// Names of which something else is to be said in the catalog.
    pub changed: HashSet<String>,
}

impl Records {
    pub fn get(&self, id: Uuid) -> Option<&Record> {
        self.records.get(&id)
    }

    pub fn all(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    pub fn claiming(&self, name: &str) -> impl Iterator<Item = &Record> {
        self.claims.get(name).into_iter().flatten().filter_map(|id| self.records.get(id))
    }

    pub fn saying(&self, name: &str) -> impl Iterator<Item = &Record> {
        self.said.get(name).into_iter().flatten().filter_map(|id| self.records.get(id))
    }

    /// Puts a record in place of the one of its id, or takes that away. Gives the records whose report is another now.
    pub fn replace(&mut self, id: Uuid, new: Option<Record>) -> Vec<Uuid> {
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

    /// Gives a name again: something was learned of who had it first.
    pub fn settle_again(&mut self, name: &str) -> Vec<Uuid> {
        let names = BTreeSet::from([name.to_owned()]);
        self.comparing(&names, Uuid::nil(), |_| {})
    }

    /// What this version lacks now. True when that is news.
    pub fn set_lacks(&mut self, tool: &Candidate, now: Lacks) -> bool {
        let working = self.records.get_mut(&tool.id).and_then(|record| record.working.as_mut());
        let Some(working) = working.filter(|working| working.candidate.version == tool.version) else { return false };
        if working.lacks == now {
            return false;
        }
        working.lacks = now;
        let name = working.candidate.name().to_owned();
        self.settle(&name);
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
            self.settle(name);
        }
        let after = reports(self);
        let pairs = touched.iter().zip(before.iter().zip(&after));
        pairs.filter(|(_, (before, after))| before != after).map(|(id, _)| *id).collect()
    }

    /// Gives the name to the record that had it first, whatever runs it, and whether it waits or not: nobody gets a
    /// name by coming at a time when its owner cannot run, or is not judged yet. Who comes later is told whose it is.
    fn settle(&mut self, name: &str) {
        let mut claimants: Vec<Uuid> = self.claims.get(name).into_iter().flatten().copied().collect();
        claimants.sort_by_cached_key(|id| self.records.get(id).map(|record| record.claim_to(name)));
        let owner = claimants.first().and_then(|id| self.records.get(id));
        let (owner_id, working) =
            (owner.map(|owner| owner.id), owner.and_then(|owner| owner.working_as(name).cloned()));
        let taken = working.as_ref().map(|first| {
            let message = format!(
                "the name {name:?} is taken by a tool of the source {} (record {}); choose another",
                first.candidate.source(),
                first.candidate.id
            );
            Problem::new("name", message)
        });
        for id in claimants {
            if let Some(record) = self.records.get_mut(&id)
                && record.is_judged
                && record.working_as(name).is_some()
            {
                record.taken = taken.clone().filter(|_| Some(id) != owner_id);
            }
        }
        self.clear(name);
        match (working, owner_id) {
            (Some(one), _) if one.lacks.is_empty() => {
                let tool = one.candidate;
                if !tool.definition.subscriptions.is_empty() {
                    self.subscribed.insert(name.to_owned(), tool.clone());
                }
                if tool.bootstrap().is_some() {
                    self.bootstrapped.insert(name.to_owned(), tool.clone());
                }
                if tool.executor.only_waits(&tool.definition) {
                    self.idling.insert(name.to_owned());
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
        self.changed.insert(name.to_owned());
    }

    fn clear(&mut self, name: &str) {
        self.offered.remove(name);
        self.waiting.remove(name);
        self.open.remove(name);
        self.subscribed.remove(name);
        self.bootstrapped.remove(name);
        self.idling.remove(name);
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
