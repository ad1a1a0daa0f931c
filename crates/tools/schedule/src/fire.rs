//! The record that a fire writes: a `schedule.fired.v1`, or a request that calls the task's tool.

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;
use rcrt_breadcrumb::{NewBreadcrumb, Profile, Profiles, ToolRequest, TtlType, schema_names};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::schedule::{Firing, Schedule, name_tag};
use crate::{Settings, zone};

/// The tag of every `schedule.fired.v1`.
pub const FIRED_TAG: &str = "schedule-fired";

/// The unique tag of a fire, which is also its idempotency key.
pub fn fire_tag(id: Uuid, at: DateTime<Utc>) -> String {
    format!("schedule-fire:{id}:{}", at.timestamp())
}

/// The record of a fire of the schedule with this id. It is identical for every scheduler.
pub fn record(
    id: Uuid,
    workspace: Option<&str>,
    schedule: &Schedule,
    firing: &Firing,
    settings: &Settings,
) -> NewBreadcrumb {
    let mut record = match &schedule.tool {
        Some(tool) => request(id, tool, workspace, schedule, firing, settings),
        None => fired(id, workspace, schedule, firing, settings),
    };
    // Records get the profiles too, because they apply to what the record triggers.
    record.tags.extend(profiles(schedule).tags());
    record.tags.push(name_tag(&schedule.name));
    record.tags.push(fire_tag(id, firing.at));
    record
}

fn fired(
    id: Uuid,
    workspace: Option<&str>,
    schedule: &Schedule,
    firing: &Firing,
    settings: &Settings,
) -> NewBreadcrumb {
    let mut context = about(id, schedule, firing, settings);
    context.insert("cron".into(), schedule.cron.clone().into());
    context.insert("run_once".into(), schedule.run_once.into());
    context.insert("made_by".into(), json!(schedule.made_by));
    context.insert("profiles".into(), profiles(schedule).iter().map(Profile::as_str).collect());
    context.insert("timestamp".into(), in_utc(firing.begun_at).into());
    NewBreadcrumb {
        title: format!("Scheduled task {}", schedule.name),
        context,
        tags: workspace.map(str::to_owned).into_iter().chain([FIRED_TAG.to_owned()]).collect(),
        schema_name: Some(schema_names::SCHEDULE_FIRED.into()),
        ttl_type: Some(TtlType::Duration),
        ttl_config: Some(json!({"duration": settings.keep_fired.as_secs().max(1)})),
        ..NewBreadcrumb::default()
    }
}

fn request(
    id: Uuid,
    tool: &str,
    workspace: Option<&str>,
    schedule: &Schedule,
    firing: &Firing,
    settings: &Settings,
) -> NewBreadcrumb {
    let input = schedule.input.clone().unwrap_or_else(|| json!({}));
    let mut record = ToolRequest::record(tool, input, None, workspace);
    if let Some(session) = &schedule.session {
        record.context.insert("session".into(), session.as_str().into());
    }
    record.context.insert("schedule".into(), Value::Object(about(id, schedule, firing, settings)));
    record
}

/// The profiles of a fire. They include `scheduled`, because no agent asked for this call just now.
pub fn profiles(schedule: &Schedule) -> Profiles {
    let mut profiles = Profiles::of(Profile::Scheduled);
    schedule.profiles.iter().for_each(|profile| profiles.add(*profile));
    profiles
}

fn about(id: Uuid, schedule: &Schedule, firing: &Firing, settings: &Settings) -> Map<String, Value> {
    let zone = schedule.timezone.as_deref().and_then(|name| zone(name).ok()).unwrap_or(settings.timezone);
    let mut about = Map::new();
    about.insert("schedule_id".into(), id.to_string().into());
    about.insert("name".into(), schedule.name.clone().into());
    about.insert("description".into(), schedule.description.clone().into());
    about.insert("scheduled_for".into(), in_utc(firing.at).into());
    about.insert("local_time".into(), in_zone(firing.at, zone).into());
    about.insert("timezone".into(), zone.name().into());
    about.insert("catch_up".into(), firing.catch_up.into());
    about.insert("missed".into(), firing.missed.into());
    if firing.missed_more {
        about.insert("missed_more".into(), true.into());
    }
    if let Some(since) = firing.missed_since {
        about.insert("missed_since".into(), in_utc(since).into());
    }
    about
}

/// `2026-03-29T00:30:00Z`.
pub fn in_utc(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// `2026-03-29T01:30:00+01:00`.
pub fn in_zone(moment: DateTime<Utc>, zone: Tz) -> String {
    moment.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, false)
}
