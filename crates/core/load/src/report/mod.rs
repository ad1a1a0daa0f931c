//! The results of a run of measurements, for programs (JSON) and for people (a table).

mod machine;
mod number;
mod row;
mod show;

use std::collections::BTreeMap;

use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

pub use machine::Machine;
pub use number::{duration, number};
pub use row::{Ratio, Row};

/// The results of one run, with everything that is needed to assess and to repeat it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub title: String,
    /// When the run started, in RFC 3339 format, in UTC.
    pub taken_at: String,
    /// The command that repeats it.
    pub command: String,
    pub machine: Machine,
    /// What was measured, by name.
    pub versions: BTreeMap<String, String>,
    pub rows: Vec<Row>,
}

impl Report {
    /// An empty report of this machine that starts now.
    pub fn new(title: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            taken_at: Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true),
            command: command.into(),
            machine: Machine::here(),
            versions: BTreeMap::new(),
            rows: Vec::new(),
        }
    }

    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The first row with that section and name.
    pub fn find(&self, section: &str, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.section == section && row.name == name)
    }
}
