//! The tools as this runner offers them: for each name one working version of one record.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use breadcrumb::{Bootstrap, BootstrapMode, ToolDefinition};
use chrono::{DateTime, Utc};
use executors::Executor;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use uuid::Uuid;
use validate::Schema;

use crate::nearest::nearest;

/// One version of a tool that was checked and can be run.
pub(crate) struct Tool {
    pub id: Uuid,
    pub version: i64,
    /// The record's, not the version's.
    pub created_at: DateTime<Utc>,
    pub workspace: Option<String>,
    pub definition: Arc<ToolDefinition>,
    pub input: Schema,
    pub output: Schema,
    pub executor: Arc<dyn Executor>,
}

impl Tool {
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// The tool's wish to be run by itself, unless it is switched off.
    pub fn bootstrap(&self) -> Option<&Bootstrap> {
        self.definition.bootstrap.as_ref().filter(|wish| wish.enabled && wish.mode != BootstrapMode::Disabled)
    }
}

/// Why a record's newest version is not offered. The same on every runner, so that they agree on what they report.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    /// `{field, message, line?, column?, rule?}` each.
    pub errors: Vec<Value>,
}

impl Problem {
    pub fn new(field: &str, message: impl Into<String>) -> Self {
        Self { errors: vec![json!({"field": field, "message": message.into()})] }
    }

    /// The first error as a sentence.
    pub fn sentence(&self) -> String {
        let text = |key: &str| self.errors.first().and_then(|error| error.get(key)?.as_str()).unwrap_or_default();
        match (text("field"), text("message")) {
            ("", message) => message.to_owned(),
            (field, message) => format!("{field}: {message}"),
        }
    }
}

/// What was read of a tool's record at its newest version.
pub(crate) struct Reading {
    pub id: Uuid,
    pub version: i64,
    /// As the record says it, be it a good name or not.
    pub name: Option<String>,
    pub workspace: Option<String>,
    /// The version to offer: the newest that works, `None` to go on with the one that is offered.
    pub working: Option<Arc<Tool>>,
    pub problem: Option<Problem>,
}

struct Record {
    reading: Reading,
    /// Its name belongs to another record.
    shadowed: Option<Problem>,
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
}

#[derive(Default)]
pub(crate) struct Registry {
    inner: RwLock<Inner>,
    /// Something is offered that was not, or the other way round.
    pub changed: Notify,
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
    fn read<T>(&self, look: impl FnOnce(&Inner) -> T) -> T {
        look(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn find(&self, name: &str) -> Found {
        self.read(|inner| {
            if let Some(tool) = inner.offered.get(name) {
                return Found::Tool(tool.clone());
            }
            let mut broken = inner.records.values().filter(|record| record.reading.name.as_deref() == Some(name));
            match broken.find_map(|record| record.reading.problem.clone()) {
                Some(problem) => Found::Broken(problem),
                None => Found::Unknown { nearest: nearest(name, inner.offered.keys().map(String::as_str)) },
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

    /// The newest version that was read of a record.
    pub fn version_of(&self, id: Uuid) -> Option<i64> {
        self.read(|inner| inner.records.get(&id).map(|record| record.reading.version))
    }

    /// The version of a record that works, and is offered unless its name is another's.
    pub fn working_version(&self, id: Uuid) -> Option<i64> {
        self.read(|inner| inner.records.get(&id)?.reading.working.as_ref().map(|tool| tool.version))
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
            let is_new = reading.working.is_some();
            if reading.working.is_none() {
                reading.working.clone_from(&old);
            }
            inner.records.insert(id, Record { reading, shadowed: None });
            old.filter(|_| is_new)
        })
    }

    pub fn remove(&self, id: Uuid) -> Consequences {
        self.change(|inner| inner.records.remove(&id).and_then(|record| record.reading.working))
    }

    fn change(&self, change: impl FnOnce(&mut Inner) -> Option<Arc<Tool>>) -> Consequences {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        let before = inner.reports();
        let retired = change(&mut inner);
        inner.settle_names();
        let after = inner.reports();
        drop(inner);
        self.changed.notify_one();
        let touched: HashSet<Uuid> = before.keys().chain(after.keys()).copied().collect();
        let reports = touched.into_iter().filter(|id| before.get(id) != after.get(id)).collect();
        Consequences { reports, retired }
    }
}

impl Inner {
    fn reports(&self) -> HashMap<Uuid, Report> {
        self.records.iter().filter_map(|(id, record)| Some((*id, record.report()?))).collect()
    }

    /// Gives each name to one record: code before native, then the oldest record. Every runner decides the same. Who
    /// comes later with the same name and kind is told so; a native tool behind a code tool is as it should be.
    fn settle_names(&mut self) {
        let mut order: Vec<(bool, DateTime<Utc>, Uuid, Arc<Tool>)> = self
            .records
            .values()
            .filter_map(|record| {
                let tool = record.reading.working.clone()?;
                Some((!tool.definition.is_code(), tool.created_at, tool.id, tool))
            })
            .collect();
        order.sort_by_key(|(is_native, created_at, id, _)| (*is_native, *created_at, *id));
        self.offered.clear();
        for record in self.records.values_mut() {
            record.shadowed = None;
        }
        for (_, _, id, tool) in order {
            match self.offered.get(tool.name()) {
                None => {
                    self.offered.insert(tool.name().to_owned(), tool);
                }
                Some(first) if first.definition.is_code() == tool.definition.is_code() => {
                    let message =
                        format!("{:?} is the name of the older record {}; choose another", tool.name(), first.id);
                    if let Some(record) = self.records.get_mut(&id) {
                        record.shadowed = Some(Problem::new("name", message));
                    }
                }
                Some(_) => {}
            }
        }
    }
}

impl Record {
    fn report(&self) -> Option<Report> {
        let reading = &self.reading;
        let errors: Vec<Value> = [&reading.problem, &self.shadowed]
            .into_iter()
            .flatten()
            .flat_map(|problem| problem.errors.iter().cloned())
            .collect();
        let offered = reading.working.as_ref().filter(|_| self.shadowed.is_none());
        (!errors.is_empty()).then(|| Report {
            name: reading.name.clone(),
            workspace: reading.workspace.clone(),
            version: reading.version,
            running_version: offered.map(|tool| tool.version),
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
