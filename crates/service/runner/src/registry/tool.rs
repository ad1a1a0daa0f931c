//! One version of a tool, as its record describes it (`Candidate`) or validated so that it can run
//! (`Tool`), and why a version is invalid (`Problem`).

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    Bootstrap, BootstrapMode, Implementation, Matcher, Profiles, Registration, ToolDefinition, ToolSource, schema_names,
};
use rcrt_egress::PrivateHost;
use rcrt_executors::Executor;
use rcrt_validate::Schema;
use serde_json::{Value, json};
use uuid::Uuid;

/// Since when a record has its name without a break.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedSince {
    /// As a tool, of either schema.
    pub any_schema: DateTime<Utc>,
    /// As a tool of the schema that the version has.
    pub own_schema: DateTime<Utc>,
}

impl NamedSince {
    pub fn both(moment: DateTime<Utc>) -> Self {
        Self { any_schema: moment, own_schema: moment }
    }
}

/// What is known about a version without validation.
pub(crate) struct Candidate {
    pub id: Uuid,
    pub owner_id: Uuid,
    pub version: i64,
    /// Identifies exactly this definition.
    pub definition_hash: String,
    /// When the record was created, not this version.
    pub created_at: DateTime<Utc>,
    /// Looked up only if several records claim the name.
    pub named_since: OnceLock<NamedSince>,
    pub workspace: Option<String>,
    /// The record's tags.
    pub tags: Vec<String>,
    /// The author's profiles. They apply when the tool is triggered or bootstrapped.
    pub profiles: Profiles,
    pub definition: Arc<ToolDefinition>,
    /// The definition's subscriptions, compiled.
    pub subscriptions: Vec<Matcher>,
    pub executor: Arc<dyn Executor>,
    /// The author of this version. The tool acts on its behalf when it is triggered or
    /// bootstrapped.
    pub author: Option<Uuid>,
    /// Written by the installation itself.
    pub is_system: bool,
    /// Whether it is a `tool.code.v1` with the tag of a curator. Never true for a `tool.v1`.
    pub is_curators: bool,
    /// The private hosts of a tool by a curator or of the installation that the operator has not
    /// allowed. Another author's tool with such a host is not valid.
    pub closed_hosts: Vec<PrivateHost>,
    /// Whether only its author can call it.
    pub is_draft: bool,
    /// Code that reads secrets by id, as RCRT's tools do, need not name them in its record. It gets
    /// all secrets that were granted to it.
    pub gets_all_granted: bool,
}

/// A version that was validated here.
pub(crate) struct Tool {
    pub candidate: Arc<Candidate>,
    pub input: Schema,
    pub output: Schema,
    acts: AtomicBool,
    /// The recent duration of its runs, in microseconds; 0 before the first.
    took: AtomicU32,
}

/// The newest run's weight in `took` is one divided by this.
const NEWEST: u32 = 8;

impl Deref for Tool {
    type Target = Candidate;

    fn deref(&self) -> &Candidate {
        &self.candidate
    }
}

impl Tool {
    pub fn new(candidate: Arc<Candidate>, input: Schema, output: Schema) -> Self {
        Self { candidate, input, output, acts: AtomicBool::new(false), took: AtomicU32::new(0) }
    }

    /// Whether its calls can compute before the store has the request. The run must have no effect
    /// yet, and no use that is audited, such as that of a secret. A tool that has an effect in each
    /// run would run twice.
    pub fn may_speculate(&self) -> bool {
        let (executor, definition) = (&self.executor, &self.definition);
        !self.acts.load(Ordering::Relaxed)
            && executor.supports_speculation(definition)
            && executor.required_secrets(definition).is_empty()
            && executor.optional_secrets(definition).is_empty()
            && !self.gets_all_granted
    }

    /// Whether its recent calls finished within this time. True before the first call.
    pub fn is_faster_than(&self, time: Duration) -> bool {
        u128::from(self.took.load(Ordering::Relaxed)) < time.as_micros()
    }

    /// Discards the tool's kept isolate after a speculative run whose request was not written.
    pub fn invalidate_kept_isolate(&self) {
        if self.executor.keeps_state(&self.definition) {
            self.executor.forget(self.id, self.version);
        }
    }

    /// Records the duration of a run.
    pub fn ran(&self, took: Duration) {
        let newest = u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1);
        let before = Some(self.took.load(Ordering::Relaxed)).filter(|before| *before > 0).unwrap_or(newest);
        // If two runs finish at once, one of them might not be counted.
        self.took.store(before - before / NEWEST + newest / NEWEST, Ordering::Relaxed);
    }

    /// Records that a speculative run asked for an effect.
    pub fn mark_as_acting(&self) {
        self.acts.store(true, Ordering::Relaxed);
    }
}

/// Whether it is code that may read secrets while it runs.
pub(crate) fn asks_for_secrets(implementation: &Implementation) -> bool {
    let Implementation::Code(code) = implementation else { return false };
    ["getSecret", "decryptSecret"].iter().any(|method| code.source.contains(method))
}

impl Candidate {
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    pub fn schema_name(&self) -> &'static str {
        if self.definition.is_code() { schema_names::TOOL_CODE } else { schema_names::TOOL_V1 }
    }

    /// Whether this version can take the name of an older `tool.v1` that this agent created:
    /// callers trust the owner of the name, so only that agent or a curator can take it.
    pub fn may_replace_a_tool_of(&self, maker: Option<Uuid>) -> bool {
        self.is_curators || (self.author.is_some() && self.author == maker)
    }

    pub fn source(&self) -> ToolSource {
        self.definition.implementation.source()
    }

    /// The date when the record was created, until the real one is looked up.
    pub fn named_since(&self) -> NamedSince {
        self.named_since.get().copied().unwrap_or(NamedSince::both(self.created_at))
    }

    /// Takes over since when the older version has its name, if this is the same or the next
    /// version with the same name and schema.
    pub fn inherit_name(&self, older: &Self) {
        if let Some(since) = older.named_since.get()
            && older.name() == self.name()
            && older.schema_name() == self.schema_name()
            && (older.version + 1 == self.version || older.version == self.version)
        {
            let _ = self.named_since.set(*since);
        }
    }

    /// The tool's bootstrap settings, unless they are disabled.
    pub fn bootstrap(&self) -> Option<&Bootstrap> {
        self.definition
            .bootstrap
            .as_ref()
            .filter(|settings| settings.enabled && settings.mode != BootstrapMode::Disabled)
    }

    pub fn registration(&self) -> Registration {
        Registration {
            name: self.name().to_owned(),
            description: self.definition.description.clone(),
            parameters: self.definition.input_schema.clone(),
            output_schema: described(&self.definition.output_schema),
            source: self.source(),
            annotations: self.definition.annotations.clone(),
            deprecated: self.definition.deprecated.clone(),
            tags: self.tags.clone(),
            tool_id: self.id,
            tool_version: self.version,
        }
    }
}

/// The output schema, unless it says only that there is an output.
fn described(schema: &Value) -> Option<Value> {
    let says_nothing = schema.as_object()?.iter().all(|(key, value)| {
        matches!(key.as_str(), "$schema" | "title" | "description") || (key == "type" && value == "object")
    });
    (!says_nothing).then(|| schema.clone())
}

/// Why a record's newest version is not offered. It is the same on every runner, so that their
/// reports agree.
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
