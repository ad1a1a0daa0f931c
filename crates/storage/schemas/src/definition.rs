//! A definition: what a `schema.def.v1` record requires of the records of one schema name.

use rcrt_breadcrumb::{NewBreadcrumb, StoreError, TtlType, Violation, Violations, schema_names, ttl_seconds};
use rcrt_json_schema::{Budget, Schema};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::hints::Hints;

/// The maximum size of a definition's context, in bytes.
const MAX_BYTES: usize = 64 * 1024;
const TAG: &str = "defines:";

/// The error of a write whose check failed to run.
pub(crate) fn not_checked(failed: rcrt_compute::ComputeError) -> StoreError {
    let text = format!("the check against a schema was not run: {failed}; try again later");
    if failed == rcrt_compute::ComputeError::Panicked { StoreError::Internal(text) } else { StoreError::Busy(text) }
}

/// What happens to a record that violates its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validation {
    Refuse,
    Warn,
    Off,
}

#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) validation: Validation,
    /// `None`: every context is valid.
    schema: Option<Schema>,
    ttl: Option<TtlRule>,
    pub(crate) hints: Option<Hints>,
}

/// How long records without a time to live of their own are kept.
#[derive(Debug)]
struct TtlRule {
    lifetime: Lifetime,
    /// For records with a tag that contains this text. The first match applies.
    by_tag: Vec<(String, Lifetime)>,
    may_override: bool,
}

#[derive(Debug)]
struct Lifetime {
    ttl_type: TtlType,
    ttl_config: Option<Value>,
}

/// Names whose records the runtime must always be able to write: the one response to each request,
/// and the records by which runners and schedulers coordinate.
const NEVER_REFUSED: [&str; 12] = [
    schema_names::TOOL_RESPONSE,
    schema_names::TOOL_CREATE_RESPONSE,
    schema_names::TOOL_ERROR,
    schema_names::TOOL_CATALOG,
    schema_names::TOOL_RUNNER,
    schema_names::TOOL_PROGRESS,
    schema_names::TOOL_LOG,
    schema_names::TOOL_SHADOW,
    schema_names::MEMORY_ENTRY,
    schema_names::SCHEDULE,
    schema_names::SCHEDULE_FIRED,
    schema_names::SCHEMA_DEFINITION,
];

/// Whether the runtime itself reads or writes records of this name. Only curators can define such
/// names.
pub(crate) fn is_the_runtimes(name: &str) -> bool {
    let others = [
        schema_names::TOOL_REQUEST,
        schema_names::TOOL_CREATE_REQUEST,
        schema_names::TOOL_CODE,
        schema_names::TOOL_V1,
        schema_names::TOOL_RETIRED,
        schema_names::TOOL_GUIDE,
        schema_names::MCP_SERVER,
        schema_names::MCP_STATUS,
        schema_names::MCP_CHANGE,
    ];
    NEVER_REFUSED.contains(&name) || others.contains(&name)
}

impl Definition {
    /// Reads a definition's record. Compiling its schema takes some milliseconds, and a part of the
    /// tenant's memory budget.
    pub(crate) fn read(
        context: &Map<String, Value>,
        tags: &[String],
        llm_hints: Option<&Value>,
        budget: &Budget,
    ) -> Result<Self, Violations> {
        let mut found = Violations::default();
        let bytes = serde_json::to_vec(context).map_or(0, |text| text.len());
        if bytes > MAX_BYTES {
            let message = format!("of a definition is {bytes} bytes of JSON; at most {MAX_BYTES} are allowed");
            return Err(Violations::one("context", message));
        }
        let name = name(&mut found, context, tags);
        let schema = match context.get("schema") {
            None | Some(Value::Null) => None,
            Some(given) => Schema::compile_within(given, budget).map_or_else(
                |wrong| {
                    let field_path = |field: &str| {
                        if field.is_empty() { "context.schema".to_owned() } else { format!("context.schema.{field}") }
                    };
                    found.0.extend(wrong.0.into_iter().map(|one| Violation::new(field_path(&one.field), one.message)));
                    None
                },
                Some,
            ),
        };
        let validation = validation(&mut found, context, &name);
        let ttl = match (context.get("ttl"), context.get("lifecycle").and_then(|cycle| cycle.get("ttl_policy"))) {
            (Some(rule), _) => ttl(&mut found, "context.ttl", rule),
            (None, Some(rule)) => ttl(&mut found, "context.lifecycle.ttl_policy", rule),
            (None, None) => None,
        };
        // RCRT's definitions have hints on the record itself.
        let hints = match (context.get("llm_hints"), llm_hints) {
            (Some(hints), _) => Some(("context.llm_hints", hints)),
            (None, Some(hints)) => Some(("llm_hints", hints)),
            (None, None) => None,
        };
        let hints = hints.map(|(field, hints)| {
            let (hints, wrong) = Hints::read(field, hints);
            found.0.extend(wrong.0);
            hints
        });
        found.into_result()?;
        Ok(Self { name, validation, schema, ttl, hints })
    }

    /// Whether records of this name are validated when they are written.
    pub(crate) fn validates(&self) -> bool {
        self.validation != Validation::Off && self.schema.is_some()
    }

    /// Validates a record's context, if that is quick. The violations name fields of the record.
    pub(crate) fn check_at_once(&self, context: &mut Map<String, Value>) -> Option<Vec<Violation>> {
        if !self.validates() {
            return Some(Vec::new());
        }
        Self::with_value(context, |value| {
            let is_quick = self.schema.as_ref().is_none_or(|schema| schema.is_quick(value));
            is_quick.then(|| self.violations(value))
        })
    }

    /// The same for any context. A slow check runs outside of the async runtime, in the tenant's
    /// fair share. [`StoreError::Busy`] if it does not finish in time.
    pub(crate) async fn check(
        self: &Arc<Self>,
        tenant: Uuid,
        timeout: Duration,
        context: &mut Map<String, Value>,
    ) -> Result<Vec<Violation>, StoreError> {
        if let Some(found) = self.check_at_once(context) {
            return Ok(found);
        }
        let (definition, mut taken) = (self.clone(), std::mem::take(context));
        let checking = move || {
            let found = Self::with_value(&mut taken, |value| definition.violations(value));
            (taken, found)
        };
        let checked = rcrt_compute::pool().run_until(tenant, Instant::now() + timeout, checking).await;
        let (back, found) = checked.map_err(not_checked)?;
        *context = back;
        Ok(found)
    }

    fn with_value<T>(context: &mut Map<String, Value>, look: impl FnOnce(&Value) -> T) -> T {
        let value = Value::Object(std::mem::take(context));
        let seen = look(&value);
        if let Value::Object(back) = value {
            *context = back;
        }
        seen
    }

    fn violations(&self, value: &Value) -> Vec<Violation> {
        self.schema.as_ref().map_or_else(Vec::new, |schema| schema.check_as("context", value))
    }

    /// Sets a record's time to live to that of its schema name, if the record has none or cannot
    /// override it.
    pub(crate) fn limit(&self, record: &mut NewBreadcrumb) {
        let Some(rule) = &self.ttl else { return };
        let names_own = record.ttl.is_some() || record.ttl_type.is_some() || record.ttl_config.is_some();
        if names_own && rule.may_override {
            return;
        }
        let by_tag = rule.by_tag.iter().find(|(text, _)| record.tags.iter().any(|tag| tag.contains(text.as_str())));
        let lifetime = by_tag.map_or(&rule.lifetime, |(_, lifetime)| lifetime);
        record.ttl = None;
        record.ttl_type = Some(lifetime.ttl_type);
        record.ttl_config.clone_from(&lifetime.ttl_config);
    }

    /// Whether a record can override the time to live.
    pub(crate) fn may_override(&self) -> bool {
        self.ttl.as_ref().is_none_or(|rule| rule.may_override)
    }

    /// The refusal, or the warnings for the caller.
    pub(crate) fn verdict(&self, found: Vec<Violation>) -> Result<Vec<Violation>, StoreError> {
        if found.is_empty() {
            return Ok(found);
        }
        let refuses = self.validation == Validation::Refuse;
        let outcome = if refuses { "refused" } else { "warned" };
        metrics::counter!("rcrt_schema_violations_total", "outcome" => outcome).increment(1);
        if refuses { Err(StoreError::Invalid(Violations(found))) } else { Ok(found) }
    }
}

fn name(found: &mut Violations, context: &Map<String, Value>, tags: &[String]) -> String {
    // RCRT's definitions use `defines_schema`, and one of them `target_schema`.
    let keys = ["schema_name", "defines_schema", "target_schema"];
    let mut names: Vec<(String, &str)> = Vec::new();
    for key in keys {
        match context.get(key) {
            None => {}
            Some(Value::String(name)) if !name.trim().is_empty() && name.chars().count() <= 200 => {
                names.push((format!("context.{key}"), name));
            }
            Some(_) => found.add(format!("context.{key}"), "must be a schema name of 1 to 200 characters"),
        }
    }
    for (index, tag) in tags.iter().enumerate() {
        names
            .extend(tag.strip_prefix(TAG).filter(|name| !name.is_empty()).map(|name| (format!("tags[{index}]"), name)));
    }
    let Some((_, first)) = names.first().cloned() else {
        if found.is_empty() {
            found.add("context.schema_name", "is required: the schema name that this defines, such as note.v1");
        }
        return String::new();
    };
    for (field, other) in names.iter().filter(|(_, name)| *name != first) {
        found.add(field.clone(), format!("names {other}, but the definition is for {first}"));
    }
    first.to_owned()
}

fn validation(found: &mut Violations, context: &Map<String, Value>, name: &str) -> Validation {
    let has_schema = context.get("schema").is_some_and(|schema| !schema.is_null());
    let given = match context.get("validation") {
        // Tests of the runtime cover its own records, so those are not validated by default.
        None if !has_schema || is_the_runtimes(name) => return Validation::Off,
        None => return Validation::Refuse,
        Some(given) => given.as_str(),
    };
    let validation = match given {
        Some("refuse") => Validation::Refuse,
        Some("warn") => Validation::Warn,
        Some("off") => return Validation::Off,
        _ => {
            found.add("context.validation", "must be refuse, warn or off");
            return Validation::Off;
        }
    };
    if !has_schema {
        found.add("context.schema", "is required if records are validated: a JSON Schema of their context");
    }
    if validation == Validation::Refuse && NEVER_REFUSED.contains(&name) {
        let message =
            format!("must be warn or off: the runtime itself writes {name}, and cannot work if that is refused");
        found.add("context.validation", message);
    }
    validation
}

fn ttl(found: &mut Violations, field: &str, given: &Value) -> Option<TtlRule> {
    let may_override = match given.get("allow_override") {
        None => true,
        Some(Value::Bool(may)) => *may,
        Some(_) => {
            found.add(format!("{field}.allow_override"), "must be true or false");
            true
        }
    };
    let mut by_tag = Vec::new();
    match given.get("conditional_policies") {
        None => {}
        Some(Value::Array(rules)) if rules.len() <= 20 => {
            for (index, rule) in rules.iter().enumerate() {
                let field_path = format!("{field}.conditional_policies[{index}]");
                let text = rule.get("condition").and_then(|condition| condition.get("tag_contains"));
                match text.and_then(Value::as_str).filter(|text| !text.is_empty()) {
                    Some(text) => by_tag.extend(
                        lifetime(found, &format!("{field_path}.policy"), rule.get("policy").unwrap_or(&Value::Null))
                            .map(|lifetime| (text.to_owned(), lifetime)),
                    ),
                    None => found.add(format!("{field_path}.condition.tag_contains"), "is required: a part of a tag"),
                }
            }
        }
        Some(_) => found.add(format!("{field}.conditional_policies"), "must be an array of at most 20 policies"),
    }
    let lifetime = lifetime(found, field, given)?;
    Some(TtlRule { lifetime, by_tag, may_override })
}

fn lifetime(found: &mut Violations, field: &str, given: &Value) -> Option<Lifetime> {
    let before = found.0.len();
    let key = if given.get("ttl_type").is_some() { "ttl_type" } else { "type" };
    let kind = given.get(key).and_then(Value::as_str);
    let kind = kind.and_then(|kind| kind.parse::<TtlType>().ok());
    let Some(ttl_type) = kind.filter(|kind| *kind != TtlType::Datetime) else {
        found.add(format!("{field}.{key}"), "must be never, duration, usage or hybrid");
        return None;
    };
    let key = if given.get("ttl_config").is_some() { "ttl_config" } else { "config" };
    let field_path = format!("{field}.{key}");
    let mut config = Map::new();
    match given.get(key) {
        None => {}
        Some(Value::Object(entries)) => {
            for (name, value) in entries {
                let unit = match name.as_str() {
                    "duration" => Some(ttl_seconds(value)),
                    "seconds" | "minutes" | "hours" | "days" | "weeks" => {
                        // The same units as in a text such as `2 hours`.
                        Some(value.as_u64().and_then(|number| ttl_seconds(&json!(format!("{number} {name}")))))
                    }
                    _ => None,
                };
                match unit {
                    Some(Some(seconds)) => _ = config.insert("duration".into(), json!(seconds)),
                    Some(None) => {
                        found.add(format!("{field_path}.{name}"), "must be a time from 1 second to 100 years");
                    }
                    None => _ = config.insert(name.clone(), value.clone()),
                }
            }
        }
        Some(_) => found.add(field_path.clone(), "must be an object, such as {\"duration\": 3600}"),
    }
    let ttl_config = (!config.is_empty()).then_some(Value::Object(config));
    if found.0.len() > before {
        return None;
    }
    if let Err(wrong) = rcrt_breadcrumb::TimeToLive::read(None, Some(ttl_type), ttl_config.as_ref()) {
        let moved = |one: Violation| Violation::new(one.field.replacen("ttl_config", &field_path, 1), one.message);
        found.0.extend(wrong.0.into_iter().map(moved));
        return None;
    }
    Some(Lifetime { ttl_type, ttl_config })
}
