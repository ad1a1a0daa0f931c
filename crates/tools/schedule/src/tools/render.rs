//! Times as an agent reads them.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use serde_json::{Map, Value, json};

use crate::fire::{in_utc, in_zone};
use crate::schedule::{Missed, Schedule};
use crate::{Recurrence, Settings};

/// How many future times are shown.
const NEXT: usize = 3;
/// The longest cell of the table, in characters.
const MAX_CELL: usize = 120;

/// The current time, in UTC and in this zone.
pub fn current_time(now: DateTime<Utc>, zone: Tz) -> Value {
    json!({"utc": in_utc(now), "local": in_zone(now, zone), "timezone": zone.name()})
}

/// The next times of an active task: one for a task that runs once.
pub fn next_fires(schedule: &Schedule, recurrence: &Recurrence, now: DateTime<Utc>) -> Value {
    let most = if schedule.run_once { 1 } else { NEXT };
    // The schedulers' next time comes first, even if it has passed and the task waits for a
    // scheduler.
    let first = schedule.state.next_fire.filter(|_| schedule.state.basis == Some(schedule.basis(recurrence)));
    let mut times: Vec<DateTime<Utc>> = first.into_iter().collect();
    times.extend(recurrence.next_times(first.map_or(now, |first| first.max(now)), most - times.len()));
    times.iter().map(|time| json!({"at": in_zone(*time, recurrence.zone), "in": distance(*time - now)})).collect()
}

/// The entry of a task in a list.
pub fn task(schedule: &Schedule, now: DateTime<Utc>, settings: &Settings) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("name", schedule.name.as_str().into());
    put("description", schedule.description.as_str().into());
    put("status", schedule.status.as_str().into());
    put("cron", schedule.cron.as_str().into());
    let recurrence = schedule.recurrence(settings);
    let zone = recurrence.as_ref().map_or(settings.timezone, |recurrence| recurrence.zone);
    put("timezone", schedule.timezone.as_deref().unwrap_or(zone.name()).into());
    put("run_once", schedule.run_once.into());
    put("missed_policy", missed_policy(schedule.missed).into());
    if let Some(tool) = &schedule.tool {
        put("tool", tool.as_str().into());
    }
    if schedule.status == crate::schedule::Status::Active {
        match &recurrence {
            Ok(recurrence) => put("next_fires", next_fires(schedule, recurrence, now)),
            Err(why) => put("problem", why.as_str().into()),
        };
    }
    put("fires", schedule.state.fires.into());
    put("missed", schedule.state.missed.into());
    if let Some(last) = schedule.state.last_fire {
        put("last_fire", in_zone(last, zone).into());
    }
    if let Some(firing) = &schedule.state.firing {
        put("firing", in_zone(firing.at, zone).into());
    }
    if let Some(ended) = schedule.state.ended_at {
        put("ended_at", in_zone(ended, zone).into());
    }
    if let Some(error) = &schedule.state.error {
        put("last_error", error.as_str().into());
    }
    fields
}

/// The current time and the tasks, in the form of [`task`], as markdown.
pub fn table(tasks: &[Value], now: DateTime<Utc>, zone: Tz) -> String {
    let head = format!("Current time: {} ({}); {} in UTC.\n\n", in_zone(now, zone), zone.name(), in_utc(now));
    if tasks.is_empty() {
        return head + "There are no scheduled tasks.";
    }
    let rows: Vec<String> = tasks.iter().map(row).collect();
    head + "| Name | Cron | Time zone | Next fire | Last fire | Runs once | Status | Description |\n\
            |---|---|---|---|---|---|---|---|\n"
        + &rows.join("\n")
}

fn row(task: &Value) -> String {
    let text = |key: &str| task[key].as_str().unwrap_or("–");
    let next = match &task["next_fires"][0] {
        Value::Object(next) => format!(
            "{} ({})",
            next["at"].as_str().unwrap_or_default(),
            match next["in"].as_str().unwrap_or_default() {
                "now" => "now".to_owned(),
                distance => format!("in {distance}"),
            }
        ),
        _ => "–".to_owned(),
    };
    let once = if task["run_once"] == true { "yes" } else { "no" };
    let status = task["problem"].as_str().map_or_else(|| text("status").to_owned(), |why| format!("problem: {why}"));
    let cells =
        [text("name"), text("cron"), text("timezone"), &next, text("last_fire"), once, &status, text("description")];
    format!("| {} |", cells.map(cell).join(" | "))
}

/// Text as one line that is safe in a table cell.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = match line.char_indices().nth(MAX_CELL) {
        None => line,
        Some(_) => line.chars().take(MAX_CELL - 1).chain(['…']).collect(),
    };
    short.replace('\\', "\\\\").replace('|', "\\|")
}

pub fn missed_policy(missed: Missed) -> &'static str {
    match missed {
        Missed::Once => "once",
        Missed::Skip => "skip",
    }
}

/// `2 d 3 h`, `15 h 20 min`, `45 s`.
pub fn distance(delta: TimeDelta) -> String {
    let seconds = delta.num_seconds();
    if seconds <= 0 {
        return "now".to_owned();
    }
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) if seconds % 60 == 0 || minutes >= 10 => format!("{minutes} min"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, 0) => format!("{hours} h"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        (_, 0, _) => format!("{days} d"),
        _ => format!("{days} d {hours} h"),
    }
}
