//! One call of a tool's code: its input and its outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use rcrt_breadcrumb::{Isolation, Limits, ToolFailure, TriggerEvent};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{CodeCache, Sharing};

/// A tool version's code, ready for the engine.
#[derive(Debug)]
pub struct Script {
    /// The file's name in error stacks: `<tool>.ts` or `<tool>.js`.
    pub file_name: String,
    /// JavaScript, types stripped.
    pub javascript: String,
    /// Maps positions in `javascript` to the author's source, for stacks and console lines.
    pub source_map: Option<rcrt_typescript::SourceMap>,
    /// The engine's code cache for the script, if it made one.
    pub cache: CodeCache,
    /// Whether its calls share a process.
    pub sharing: Sharing,
}

impl Script {
    /// A script without a code cache.
    pub fn new(file_name: String, javascript: String, source_map: Option<rcrt_typescript::SourceMap>) -> Self {
        Self { file_name, javascript, source_map, cache: CodeCache::default(), sharing: Sharing::default() }
    }
}

/// What to do with the code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Call `execute`.
    #[default]
    Call,
    /// Only check that the code loads and exports a function `execute`. The result is null.
    Check,
}

#[derive(Debug, Clone)]
pub struct Invocation {
    pub task: Task,
    /// The tenant. A worker process never serves two.
    pub owner_id: Uuid,
    pub script: Arc<Script>,
    pub input: Value,
    /// `context.request`.
    pub request: RequestContext,
    /// `context.secrets`: name → value, already checked against the tool's `required_secrets`.
    pub secrets: BTreeMap<String, String>,
    pub limits: Limits,
    pub isolation: Isolation,
    /// Whether clocks are finer than a millisecond: the tool's `permissions.hrtime`.
    pub hrtime: bool,
    /// Set for a run that must give the same result each time.
    pub seed: Option<Seed>,
}

/// The clock and the random numbers of a run that gives the same result each time. Each reading of
/// the clock is one millisecond later than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed {
    /// The first reading, in milliseconds since 1970.
    pub now_ms: i64,
    pub random: u32,
}

/// `context.request` as the tool sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestContext {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    #[serde(rename = "trigger_event", skip_serializing_if = "Option::is_none")]
    pub trigger_event: Option<TriggerEvent>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    pub result: Result<Value, ToolFailure>,
    /// The tool's console lines, in order, up to the limits.
    pub console: Vec<ConsoleLine>,
    /// Whether lines were omitted because a limit was reached.
    pub console_truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleLine {
    pub level: ConsoleLevel,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsoleLevel {
    Debug,
    Log,
    Info,
    Warn,
    Error,
}
