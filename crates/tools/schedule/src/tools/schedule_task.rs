//! `schedule_task`: creates a scheduled task, or replaces the one with the same name.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    Catalog, ErrorCode, NewBreadcrumb, Profile, Records, Registration, StoreError, ToolFailure, ToolSource, TtlType,
    Violations, nearest_names, schema_names,
};
use rcrt_executors::{NativeTool, ToolCall};
use rcrt_validate::Schema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::render::{current_time, distance, missed_policy, next_fires};
use super::{TRIES, contended, invalid, invalid_field, read_input, refused, store_failed, with_nearest};
use crate::fire::{self, in_zone};
use crate::records::{self, ScheduleRecord};
use crate::schedule::{self, Missed, Schedule, State, Status, name_tag};
use crate::{Clock, Recurrence, Settings};

/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 4000;
/// The longest input of a tool, in bytes of its JSON text. It is stored again with every change of
/// the schedule.
const MAX_INPUT: usize = 64 * 1024;

pub(super) struct ScheduleTask {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    name: String,
    cron: String,
    description: String,
    #[serde(default)]
    run_once: bool,
    timezone: Option<String>,
    tool: Option<String>,
    input: Option<Map<String, Value>>,
    #[serde(default)]
    missed: Missed,
}

#[async_trait]
impl NativeTool for ScheduleTask {
    fn name(&self) -> &'static str {
        "schedule_task"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let store = &*call.breadcrumbs;
        let (schedule, recurrence) = self.wanted(read_input(call)?, call)?;
        if let Some(tool) = &schedule.tool {
            refuse_invalid_input(store, call.owner_id, tool, schedule.input.as_ref(), self.clock.now()).await?;
        }
        let (id, schedule) = self.enter(store, call, schedule).await?;
        let now = self.clock.now();
        let action = if schedule.replaced { "replaced" } else { "created" };
        let times = match schedule.state.next_fire {
            Some(next) => format!(
                "{} next at {} ({}), {}.",
                if schedule.run_once { "Fires once," } else { "Fires" },
                in_zone(next, recurrence.zone),
                recurrence.zone.name(),
                match distance(next - now).as_str() {
                    "now" => "now".to_owned(),
                    distance => format!("in {distance}"),
                }
            ),
            None => "It has fired already.".to_owned(),
        };
        let summary = if schedule.replaced { format!("Replaced the task of this name. {times}") } else { times };
        let mut output = json!({
            "name": schedule.name,
            "schedule_id": id,
            "action": action,
            "summary": summary,
            "cron": schedule.cron,
            "timezone": recurrence.zone.name(),
            "run_once": schedule.run_once,
            "missed_policy": missed_policy(schedule.missed),
            "now": current_time(now, recurrence.zone),
            "next_fires": next_fires(&schedule, &recurrence, now),
        });
        if let Some(tool) = &schedule.tool {
            output["tool"] = tool.as_str().into();
        }
        Ok(output)
    }
}

impl ScheduleTask {
    /// The requested schedule, or why it is invalid.
    fn wanted(&self, wanted: Wanted, call: &ToolCall) -> Result<(Schedule, Recurrence), ToolFailure> {
        schedule::check_name(&wanted.name).map_err(|why| invalid("name", why))?;
        let length = wanted.description.chars().count();
        if wanted.description.trim().is_empty() || length > MAX_DESCRIPTION {
            let message = format!("has {length} characters; 1 to {MAX_DESCRIPTION} are allowed");
            return Err(invalid("description", message));
        }
        if wanted.tool.is_none() && wanted.input.is_some() {
            return Err(invalid("input", "requires a tool; set tool, or omit input"));
        }
        let input_bytes =
            wanted.input.as_ref().map_or(0, |input| serde_json::to_string(input).map_or(0, |text| text.len()));
        if input_bytes > MAX_INPUT {
            let message = format!("is {input_bytes} bytes of JSON; at most {MAX_INPUT} are allowed");
            return Err(invalid("input", message));
        }
        let mut schedule = Schedule {
            name: wanted.name,
            cron: wanted.cron.split_whitespace().collect::<Vec<_>>().join(" "),
            timezone: wanted.timezone,
            description: wanted.description,
            run_once: wanted.run_once,
            missed: wanted.missed,
            tool: wanted.tool,
            input: wanted.input.map(Value::Object),
            session: call.request.session.clone(),
            profiles: call.profiles.iter().collect(),
            made_by: call.request.agent_id,
            request: Some(call.request.id),
            replaced: false,
            status: Status::Active,
            state: State::default(),
        };
        if let Some(tool) = &schedule.tool {
            if tool.trim().is_empty() || tool.chars().count() > 100 {
                return Err(invalid("tool", "must be the name of a tool, of 1 to 100 characters"));
            }
            if let Some(profile) = fire::profiles(&schedule).name_denied_by(tool) {
                let whose = if profile == Profile::Scheduled { "scheduled calls run" } else { "the caller runs" };
                let message =
                    format!("tool: the profile {profile}, under which {whose}, does not allow the tool {tool}");
                return Err(ToolFailure::new(ErrorCode::PermissionDenied, message));
            }
        }
        let recurrence = schedule.recurrence(&self.settings).map_err(|why| invalid_field(&why))?;
        schedule.timezone = Some(recurrence.zone.name().to_owned());
        schedule.state.basis = Some(schedule.basis(&recurrence));
        schedule.state.next_fire = recurrence.next(self.clock.now());
        Ok((schedule, recurrence))
    }

    /// Creates the schedule, or replaces the one with its name that has not ended. Returns the
    /// record's id and its content.
    async fn enter(
        &self,
        store: &dyn Records,
        call: &ToolCall,
        schedule: Schedule,
    ) -> Result<(String, Schedule), ToolFailure> {
        // Counts known deleted records with this name. See `create`.
        let mut gone = 0;
        for _ in 0..TRIES {
            let entries = records::named(store, &schedule.name).await.map_err(store_failed)?;
            let open = entries.iter().find(|entry| entry.is_open());
            let there = open.and_then(|entry| Some((entry, entry.schedule.as_ref().ok()?)));
            let (wanted, written) = if let Some((entry, there)) = there {
                // A repeat of the same request, after its first runner was lost.
                if there.request == schedule.request {
                    return Ok((entry.id.to_string(), there.clone()));
                }
                refuse_replacing(call, there)?;
                let wanted = schedule.clone().replacing(there);
                let written = rewrite(store, call, entry, &wanted).await;
                (wanted, written)
            } else {
                self.refuse_too_many(store).await?;
                let written = match entries.last() {
                    Some(ended) => rewrite(store, call, ended, &schedule).await,
                    None => create(store, call, &schedule, gone).await,
                };
                (schedule.clone(), written)
            };
            match written {
                Ok(id) => return Ok((id, wanted)),
                Err(StoreError::IdempotencyMismatch) => gone += u32::from(entries.is_empty()),
                Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => {}
                Err(error) => return Err(store_failed(error)),
            }
        }
        Err(contended(&schedule.name))
    }

    async fn refuse_too_many(&self, store: &dyn Records) -> Result<(), ToolFailure> {
        let active = records::active(store).await.map_err(store_failed)?.len();
        if active < self.settings.max_active {
            return Ok(());
        }
        let message = format!("there are {active} scheduled tasks, which is the maximum; cancel one first");
        let details = json!({"limit": "active_tasks", "allowed": self.settings.max_active});
        Err(ToolFailure::new(ErrorCode::ResourceExhausted, message).with_details(details))
    }
}

/// Replacing a task ends it. Callers whose profile denies `cancel_scheduled_task` can replace only
/// tasks that the same agent created under the same profile.
fn refuse_replacing(call: &ToolCall, there: &Schedule) -> Result<(), ToolFailure> {
    let Some(profile) = call.profiles.denied_by("cancel_scheduled_task", &ToolSource::Native) else { return Ok(()) };
    if there.made_by == call.request.agent_id && there.profiles.contains(&profile) {
        return Ok(());
    }
    let message = format!(
        "name: there is already a task {:?}, and the profile {profile} can replace only tasks that the same agent created \
         under it; use another name",
        there.name
    );
    Err(ToolFailure::new(ErrorCode::PermissionDenied, message))
}

/// Refuses what would fail at each fire: a tool that is not offered, and an input that its schema
/// refuses. Without a catalog nothing is known. The schema of a waiting tool is unknown too.
async fn refuse_invalid_input(
    store: &dyn Records,
    owner_id: Uuid,
    tool: &str,
    input: Option<&Value>,
    now: DateTime<Utc>,
) -> Result<(), ToolFailure> {
    let Some(catalog) = Catalog::read_with(store, tool).await.map_err(store_failed)? else { return Ok(()) };
    if let Some(registration) = catalog.find(tool) {
        if let Some(why) = registration.removal(now) {
            return Err(invalid("tool", why));
        }
        // Compiling takes some milliseconds, and a check can take longer, so both run outside of
        // the async runtime.
        let (registration, input) = (registration.clone(), input.cloned().unwrap_or_else(|| json!({})));
        return rcrt_compute::pool()
            .run(owner_id, move || check_input(&registration, &input))
            .await
            .unwrap_or_else(|error| Err(ToolFailure::new(ErrorCode::ExecutionFailed, error.to_string())));
    }
    if catalog.find_waiting(tool).is_some() {
        return Ok(());
    }
    let nearest = nearest_names(tool, catalog.names());
    let hint = if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", nearest.join(", ")) };
    Err(with_nearest(invalid("tool", format!("there is no tool {tool:?}{hint}")), &nearest))
}

fn check_input(tool: &Registration, input: &Value) -> Result<(), ToolFailure> {
    // An invalid schema is reported elsewhere: no runner offers such a tool.
    let Ok(schema) = Schema::compile(&tool.parameters) else { return Ok(()) };
    let violations = schema.check_as("input", input);
    if violations.is_empty() { Ok(()) } else { Err(refused(&Violations(violations))) }
}

/// The first record of a name uses the name's idempotency key, so one of several concurrent calls
/// creates it. If that record was deleted by hand within a day, the key is still in use, and the
/// next one is tried.
async fn create(store: &dyn Records, call: &ToolCall, schedule: &Schedule, gone: u32) -> Result<String, StoreError> {
    let mut tags = tags(call, schedule);
    call.chain.mark(&mut tags, 1);
    let record = NewBreadcrumb {
        title: title(schedule),
        description: Some(schedule.description.clone()),
        context: schedule.written_into(Map::new()),
        tags,
        schema_name: Some(schema_names::SCHEDULE.into()),
        ..NewBreadcrumb::default()
    };
    let key = format!("schedule:{}:{gone}", schedule.name);
    let created = store.create(record, Some(&key)).await?;
    if created.replayed {
        // The result of this request's first attempt. Its record may have been deleted since.
        store.get(created.id).await.map_err(|error| match error {
            StoreError::NotFound { .. } => StoreError::IdempotencyMismatch,
            other => other,
        })?;
    }
    Ok(created.id.to_string())
}

/// Reuses the record of a name, whether its task has ended or is replaced.
async fn rewrite(
    store: &dyn Records,
    call: &ToolCall,
    entry: &ScheduleRecord,
    schedule: &Schedule,
) -> Result<String, StoreError> {
    let mut changes = entry.changed_to(schedule);
    let mut tags = tags(call, schedule);
    call.chain.mark(&mut tags, entry.version + 1);
    changes.title = Some(title(schedule));
    changes.description = Some(schedule.description.clone());
    changes.tags = Some(tags);
    changes.ttl_type = Some(TtlType::Never);
    Ok(store.update(entry.id, entry.version, changes).await?.id.to_string())
}

fn tags(call: &ToolCall, schedule: &Schedule) -> Vec<String> {
    let own = [schedule::TAG.to_owned(), name_tag(&schedule.name)];
    call.request.workspace.iter().cloned().chain(call.profiles.tags()).chain(own).collect()
}

fn title(schedule: &Schedule) -> String {
    format!("Scheduled task {}", schedule.name)
}
