//! The tools as this runner has them: for each name one working version of one record, offered or waiting.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use breadcrumb::{Catalog, nearest_names};
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::lacks::Lacks;
use crate::tool::{Problem, Tool};

/// What was read of a tool's record at its newest version.
pub(crate) struct Reading {
    pub id: Uuid,
    pub version: i64,
    /// As the record says it, be it a good name or not.
    pub name: Option<String>,
    pub workspace: Option<String>,
    /// The version to offer: the newest that works, `None` to go on with the one that is there.
    pub working: Option<Working>,
    pub problem: Option<Problem>,
}

#[derive(Clone)]
pub(crate) struct Working {
    pub tool: Arc<Tool>,
    pub lacks: Lacks,
}

struct Record {
    reading: Reading,
    /// Its name belongs to another record.
    taken: Option<Problem>,
}

/// What is to be reported of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    pub name: Option<String>,
    pub workspace: Option<String>,
    pub version: i64,
    pub running_version: Option<i64>,
    pub errors: Vec<Value>,
}

pub(crate) enum Found {
    Tool(Arc<Tool>),
    Waiting(Arc<Tool>),
    /// The tool is there, and no version of it works.
    Broken(Problem),
    Unknown {
        nearest: Vec<String>,
    },
}

#[derive(Default)]
struct Inner {
    records: HashMap<Uuid, Record>,
    offered: BTreeMap<String, Arc<Tool>>,
    waiting: BTreeMap<String, Working>,
}

pub(crate) struct Registry {
    inner: RwLock<Inner>,
    /// Something is offered or waits that did not, or the other way round.
    pub changes: watch::Sender<()>,
}

/// What a change of the registry leads to.
#[derive(Default)]
pub(crate) struct Consequences {
    /// Records whose report is another now.
    pub reports: Vec<Uuid>,
    /// A version that is not offered any more.
    pub retired: Option<Arc<Tool>>,
}

impl Registry {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { inner: RwLock::default(), changes: watch::Sender::new(()) })
    }

    fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// `may_name`: which names the asker may be told of.
    pub fn find(&self, name: &str, may_name: impl Fn(&str) -> bool) -> Found {
        self.read(|inner| {
            if let Some(tool) = inner.offered.get(name) {
                return Found::Tool(tool.clone());
            }
            if let Some(waiting) = inner.waiting.get(name) {
                return Found::Waiting(waiting.tool.clone());
            }
            let mut broken = inner.records.values().filter(|record| record.reading.name.as_deref() == Some(name));
            match broken.find_map(|record| record.reading.problem.clone()) {
                Some(problem) => Found::Broken(problem),
                None => {
                    let known = inner.offered.keys().map(String::as_str).filter(|name| may_name(name));
                    Found::Unknown { nearest: nearest_names(name, known) }
                }
            }
        })
    }

    pub fn offered(&self, name: &str) -> Option<Arc<Tool>> {
        self.read(|inner| inner.offered.get(name).cloned())
    }

    /// All offered tools that pass, by name.
    pub fn select(&self, wanted: impl Fn(&Tool) -> bool) -> Vec<Arc<Tool>> {
        self.read(|inner| inner.offered.values().filter(|tool| wanted(tool)).cloned().collect())
    }

    pub fn any(&self, wanted: impl Fn(&Tool) -> bool) -> bool {
        self.read(|inner| inner.offered.values().any(|tool| wanted(tool)))
    }

    /// The working version of each record, also where the name is another's.
    pub fn working(&self) -> Vec<Arc<Tool>> {
        self.read(|inner| {
            inner.records.values().filter_map(|record| Some(record.reading.working.as_ref()?.tool.clone())).collect()
        })
    }

    /// The working versions of this name, where more than one record has it.
    pub fn rivals(&self, name: &str) -> Vec<Arc<Tool>> {
        let mut rivals = self.working();
        rivals.retain(|tool| tool.name() == name);
        if rivals.len() > 1 { rivals } else { Vec::new() }
    }

    /// Whether a record other than this one has the name.
    pub fn is_wanted_by_another(&self, name: &str, id: Uuid) -> bool {
        self.working().iter().any(|tool| tool.name() == name && tool.id != id)
    }

    pub fn catalog(&self) -> Catalog {
        self.read(|inner| {
            Catalog::new(
                inner.offered.values().map(|tool| tool.registration()).collect(),
                inner.waiting.values().map(|one| one.lacks.waiting(&one.tool)).collect(),
            )
        })
    }

    /// The newest version that was read of a record.
    pub fn version_of(&self, id: Uuid) -> Option<i64> {
        self.read(|inner| inner.records.get(&id).map(|record| record.reading.version))
    }

    /// The version of a record that works, and is offered unless its name is another's, or it waits.
    pub fn working_version(&self, id: Uuid) -> Option<i64> {
        self.read(|inner| inner.records.get(&id)?.reading.working.as_ref().map(|working| working.tool.version))
    }

    pub fn known(&self) -> HashSet<Uuid> {
        self.read(|inner| inner.records.keys().copied().collect())
    }

    pub fn report(&self, id: Uuid) -> Option<Report> {
        self.read(|inner| inner.records.get(&id)?.report())
    }

    pub fn put(&self, mut reading: Reading) -> Consequences {
        self.change(|inner| {
            let id = reading.id;
            let before = inner.records.remove(&id);
            let old = before.and_then(|record| record.reading.working);
            let retired = match (&reading.working, &old) {
                (None, _) => {
                    reading.working.clone_from(&old);
                    None
                }
                (Some(new), Some(old)) => {
                    new.tool.inherit_name(&old.tool);
                    Some(old.tool.clone())
                }
                (Some(_), None) => None,
            };
            inner.records.insert(id, Record { reading, taken: None });
            retired
        })
    }

    pub fn remove(&self, id: Uuid) -> Consequences {
        self.change(|inner| Some(inner.records.remove(&id)?.reading.working?.tool))
    }

    /// What these versions lack now.
    pub fn set_lacks(&self, lacks: Vec<(Arc<Tool>, Lacks)>) -> Consequences {
        let changed = self.read(|inner| {
            lacks.iter().any(|(tool, now)| inner.working(tool).is_some_and(|working| working.lacks != *now))
        });
        if !changed {
            return Consequences::default();
        }
        self.change(|inner| {
            for (tool, now) in lacks {
                if let Some(record) = inner.records.get_mut(&tool.id)
                    && let Some(working) = &mut record.reading.working
                    && working.tool.version == tool.version
                {
                    working.lacks = now;
                }
            }
            None
        })
    }

    /// Gives the names again: something was learned of who had them first.
    pub fn settle_names(&self) -> Consequences {
        self.change(|_| None)
    }

    fn change(&self, change: impl FnOnce(&mut Inner) -> Option<Arc<Tool>>) -> Consequences {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let before = inner.reports();
        let retired = change(&mut inner);
        inner.settle_names();
        let after = inner.reports();
        drop(inner);
        self.changes.send_replace(());
        let touched: HashSet<Uuid> = before.keys().chain(after.keys()).copied().collect();
        let reports = touched.into_iter().filter(|id| before.get(id) != after.get(id)).collect();
        Consequences { reports, retired }
    }
}

impl Inner {
    fn working(&self, tool: &Tool) -> Option<&Working> {
        self.records.get(&tool.id)?.reading.working.as_ref().filter(|working| working.tool.version == tool.version)
    }

    fn reports(&self) -> HashMap<Uuid, Report> {
        self.records.iter().filter_map(|(id, record)| Some((*id, record.report()?))).collect()
    }

    /// Gives each name to the record that had it first, whatever runs it, and whether it waits or not: nobody gets a
    /// name by coming at a time when its owner cannot run. Who comes later is told whose it is.
    fn settle_names(&mut self) {
        let mut working: Vec<Working> =
            self.records.values().filter_map(|record| record.reading.working.clone()).collect();
        working.sort_by_key(|one| one.tool.claim_to_name());
        self.offered.clear();
        self.waiting.clear();
        for record in self.records.values_mut() {
            record.taken = None;
        }
        for one in working {
            let name = one.tool.name().to_owned();
            let waiting = self.waiting.get(&name).map(|first| &first.tool);
            if let Some(first) = self.offered.get(&name).or(waiting) {
                let message = format!(
                    "the name {name:?} is taken by a tool of the source {} (record {}); choose another",
                    first.source(),
                    first.id
                );
                if let Some(record) = self.records.get_mut(&one.tool.id) {
                    record.taken = Some(Problem::new("name", message));
                }
            } else if one.lacks.is_empty() {
                self.offered.insert(name, one.tool);
            } else {
                self.waiting.insert(name, one);
            }
        }
    }
}

impl Record {
    fn report(&self) -> Option<Report> {
        let reading = &self.reading;
        let errors: Vec<Value> = [&reading.problem, &self.taken]
            .into_iter()
            .flatten()
            .flat_map(|problem| problem.errors.iter().cloned())
            .collect();
        let serving = reading.working.as_ref().filter(|_| self.taken.is_none());
        (!errors.is_empty()).then(|| Report {
            name: reading.name.clone(),
            workspace: reading.workspace.clone(),
            version: reading.version,
            running_version: serving.map(|working| working.tool.version),
            errors,
        })
    }
}

impl Report {
    /// The context of the record that tells the author.
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
