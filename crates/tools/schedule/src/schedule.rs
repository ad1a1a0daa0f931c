//! The context of a `schedule.v1`: a scheduled task and its state.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Profile, Profiles};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{Cron, Recurrence, Settings, zone};

/// The tag of every schedule.
pub const TAG: &str = "schedule";
/// The longest name, in characters.
pub const MAX_NAME: usize = 100;

/// The tag of the schedule with this name, and of its fires.
pub fn name_tag(name: &str) -> String {
    format!("schedule:{name}")
}

/// The content of the record. Only the name and the cron expression are required, so that people
/// can write schedules too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub name: String,
    pub cron: String,
    /// An IANA name. Without one, the operator's zone applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(default)]
    pub description: String,
    /// The task ends with its first fire.
    #[serde(default)]
    pub run_once: bool,
    #[serde(default)]
    pub missed: Missed,
    /// The tool that a fire calls. Without it a fire writes a `schedule.fired.v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The session in which the task was created. Calls of its fires belong to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The profiles of its creator; `scheduled` is added to each fire.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<Uuid>,
    /// The request that created it, to detect a repeat of the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Uuid>,
    /// That request replaced an active task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    #[serde(default)]
    pub status: Status,
    #[serde(default)]
    pub state: State,
}

/// How missed times are handled, when no scheduler was running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// One fire, with the number of missed times.
    #[default]
    Once,
    /// No fire until the next time.
    Skip,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Active,
    /// Does not fire until it is active again.
    Paused,
    /// A task with `run_once` that has run.
    Done,
    Cancelled,
}

impl Status {
    /// Whether it never fires again.
    pub fn is_ended(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The state of the task. Schedulers write it, each change based on the version that it was read
/// at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The cron expression and the zone that `next_fire` was computed from. If they change, it is
    /// computed again.
    pub basis: Option<Basis>,
    pub next_fire: Option<DateTime<Utc>>,
    pub last_fire: Option<DateTime<Utc>>,
    /// The number of fires.
    pub fires: u64,
    /// The number of missed times.
    pub missed: u64,
    /// A fire that has begun. Any scheduler writes its record next and then removes this field.
    pub firing: Option<Firing>,
    /// Why the last fire failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    pub cron: String,
    pub timezone: String,
}

/// With the schedule, all inputs of a fire's record, so that every scheduler writes the same
/// record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    /// The scheduled time.
    pub at: DateTime<Utc>,
    pub begun_at: DateTime<Utc>,
    /// The number of missed times before it.
    #[serde(default)]
    pub missed: u64,
    /// Whether `missed` reached the maximum of the count.
    #[serde(default)]
    pub missed_more: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_since: Option<DateTime<Utc>>,
    /// Whether the fire replaces a missed time.
    #[serde(default)]
    pub catch_up: bool,
}

impl Schedule {
    /// Parses the context. The error is a sentence.
    pub fn read(context: &Map<String, Value>) -> Result<Self, String> {
        let schedule = Self::deserialize(Value::Object(context.clone()))
            .map_err(|error| format!("the record is not a valid schedule: {error}"))?;
        match check_name(&schedule.name) {
            Ok(()) => Ok(schedule),
            Err(why) => Err(format!("name: {why}")),
        }
    }

    /// Adds the profiles in the record's tags: the store puts the author's profile there.
    #[must_use]
    pub fn held_to(mut self, tags: &[String]) -> Self {
        let mut profiles = Profiles::default();
        profiles.add_tags(tags);
        self.profiles.iter().for_each(|profile| profiles.add(*profile));
        self.profiles = profiles.iter().collect();
        self
    }

    /// Replaces a task that has not ended. If it is active and the times are the same, its state is
    /// kept, so that a fire that is due or in progress is not lost.
    #[must_use]
    pub(crate) fn replacing(mut self, there: &Self) -> Self {
        self.replaced = true;
        let is_same = self.run_once == there.run_once && self.state.basis == there.state.basis;
        if is_same && there.status == Status::Active {
            self.state = there.state.clone();
        }
        self
    }

    /// Its recurrence. The error is a sentence that names the invalid field.
    pub fn recurrence(&self, settings: &Settings) -> Result<Recurrence, String> {
        let zone = match &self.timezone {
            Some(name) => zone(name).map_err(|why| format!("timezone: {why}"))?,
            None => settings.timezone,
        };
        let cron: Cron = self.cron.parse().map_err(|why| format!("cron: {why}"))?;
        if cron.least_distance() < settings.least_distance {
            return Err(format!(
                "cron: fires up to every {} s; the shortest interval allowed is {} s, which the operator sets \
                 with --min-schedule-interval",
                cron.least_distance().as_secs(),
                settings.least_distance.as_secs()
            ));
        }
        Ok(Recurrence { cron, zone })
    }

    /// The basis of times from this recurrence.
    pub fn basis(&self, recurrence: &Recurrence) -> Basis {
        Basis { cron: self.cron.clone(), timezone: recurrence.zone.name().to_owned() }
    }

    /// Whether `next_fire` was computed from the current content of the record.
    pub fn is_next_fire_current(&self, settings: &Settings) -> bool {
        let zone = self.timezone.as_deref().unwrap_or(settings.timezone.name());
        self.state.next_fire.is_some()
            && self.state.basis.as_ref().is_some_and(|basis| basis.cron == self.cron && basis.timezone == zone)
    }

    /// Writes this schedule into the context. Fields of others remain.
    pub fn written_into(&self, mut context: Map<String, Value>) -> Map<String, Value> {
        if let Ok(Value::Object(fields)) = serde_json::to_value(self) {
            for key in ["timezone", "tool", "input", "session", "made_by", "request", "replaced"] {
                context.remove(key);
            }
            context.extend(fields);
        }
        context
    }
}

/// Names are part of tags, and people use them.
pub fn check_name(name: &str) -> Result<(), String> {
    let length = name.chars().count();
    if length == 0 || length > MAX_NAME {
        return Err(format!("has {length} characters; a name has 1 to {MAX_NAME}"));
    }
    if name.trim() != name || name.chars().any(char::is_control) {
        return Err("begins or ends with a space, or has a line break or another control character".to_owned());
    }
    Ok(())
}
