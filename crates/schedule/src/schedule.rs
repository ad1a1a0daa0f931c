//! The context of a `schedule.v1`: a task that runs by the clock, and how far it is.

use breadcrumb::{Profile, Profiles};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{Cron, Recurrence, Settings, zone};

/// On every schedule.
pub const TAG: &str = "schedule";
/// The longest name, in characters.
pub const MAX_NAME: usize = 100;

/// The tag by which the schedule of this name, and its fires, are found.
pub fn name_tag(name: &str) -> String {
    format!("schedule:{name}")
}

/// What stands in the record. Only the name and the cron text are needed: people may write schedules too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub name: String,
    pub cron: String,
    /// An IANA name. Without one the operator's zone holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    #[serde(default)]
    pub description: String,
    /// It ends with its first fire.
    #[serde(default)]
    pub run_once: bool,
    #[serde(default)]
    pub missed: Missed,
    /// What a fire calls; without it a fire writes a `schedule.fired.v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The conversation in which the task was made: what a fire calls belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The profiles of whoever made it; `scheduled` is added to each fire.
    #[serde(default)]
    pub profiles: Vec<Profile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<Uuid>,
    /// The request that made it, so that the same request again is known for the same.
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

/// What becomes of times that passed while no scheduler was up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    /// One fire, which says how many there would have been.
    #[default]
    Once,
    /// None: the next time is awaited.
    Skip,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    #[default]
    Active,
    /// It was to run once and did.
    Done,
    Cancelled,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How far it is. Schedulers write it, each change with the version that it was made from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The cron text and the zone that `next_fire` was reckoned from: where they changed it is reckoned anew.
    pub basis: Option<Basis>,
    pub next_fire: Option<DateTime<Utc>>,
    pub last_fire: Option<DateTime<Utc>>,
    /// How many fires there were.
    pub fires: u64,
    /// How many times passed without one.
    pub missed: u64,
    /// A fire that was begun: its record is written next, by whoever comes to it, and this is taken away again.
    pub firing: Option<Firing>,
    /// Why the last fire came to nothing.
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

/// Everything that a fire's record is made of beside the schedule, so that whoever writes it writes the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Firing {
    /// The time that came.
    pub at: DateTime<Utc>,
    pub begun_at: DateTime<Utc>,
    /// How many times before it passed without a fire.
    #[serde(default)]
    pub missed: u64,
    /// Whether `missed` is where counting ended.
    #[serde(default)]
    pub missed_more: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_since: Option<DateTime<Utc>>,
    /// Whether the fire makes good a time that was missed.
    #[serde(default)]
    pub catch_up: bool,
}

impl Schedule {
    /// What the context says, or a sentence about what is wrong with it.
    pub fn read(context: &Map<String, Value>) -> Result<Self, String> {
        let schedule = Self::deserialize(Value::Object(context.clone()))
            .map_err(|error| format!("the record is no schedule: {error}"))?;
        match check_name(&schedule.name) {
            Ok(()) => Ok(schedule),
            Err(why) => Err(format!("name: {why}")),
        }
    }

    /// The same under the profiles that the record's tags name as well: the store puts an author's there.
    #[must_use]
    pub fn held_to(mut self, tags: &[String]) -> Self {
        let mut profiles = Profiles::default();
        profiles.add_tags(tags);
        self.profiles.iter().for_each(|profile| profiles.add(*profile));
        self.profiles = profiles.iter().collect();
        self
    }

    /// In place of an active task. Where the times are the same, its state goes on: a fire that is due or under way is
    /// not lost.
    #[must_use]
    pub(crate) fn replacing(mut self, there: &Self) -> Self {
        self.replaced = true;
        if self.run_once == there.run_once && self.state.basis == there.state.basis {
            self.state = there.state.clone();
        }
        self
    }

    /// When it comes about, or a sentence about the field that is wrong.
    pub fn recurrence(&self, settings: &Settings) -> Result<Recurrence, String> {
        let zone = match &self.timezone {
            Some(name) => zone(name).map_err(|why| format!("timezone: {why}"))?,
            None => settings.timezone,
        };
        let cron: Cron = self.cron.parse().map_err(|why| format!("cron: {why}"))?;
        if cron.least_distance() < settings.least_distance {
            return Err(format!(
                "cron: fires every {} s at times; the shortest interval allowed here is {} s, which the operator sets \
                 with --min-schedule-interval",
                cron.least_distance().as_secs(),
                settings.least_distance.as_secs()
            ));
        }
        Ok(Recurrence { cron, zone })
    }

    /// The basis of what this recurrence gives.
    pub fn basis(&self, recurrence: &Recurrence) -> Basis {
        Basis { cron: self.cron.clone(), timezone: recurrence.zone.name().to_owned() }
    }

    /// Whether `next_fire` was reckoned from what the record says now.
    pub fn is_reckoned(&self, settings: &Settings) -> bool {
        let zone = self.timezone.as_deref().unwrap_or(settings.timezone.name());
        self.state.next_fire.is_some()
            && self.state.basis.as_ref().is_some_and(|basis| basis.cron == self.cron && basis.timezone == zone)
    }

    /// The context with what this schedule says; fields that are not ours stay.
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

/// Names are tags' endings and what people say.
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
