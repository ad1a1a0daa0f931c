//! The examples of a tool. Each shows an input with its result, and can contain everything that the
//! tool sees while it runs, so that it can be run as a test.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ErrorCode;

/// The fields of an example.
pub(crate) const FIELDS: &[&str] = &[
    "description",
    "input",
    "output",
    "error",
    "explanation",
    "http",
    "calls",
    "breadcrumbs",
    "writes",
    "secrets",
    "now",
    "seed",
];

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub input: Value,
    /// What the tool returns. It can contain matchers, such as `{"$type": "string"}`. Absent when
    /// only the output schema says what the output is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub output: Option<Value>,
    /// The failure that the tool reports instead of an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExpectedFailure>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// The responses of the network. Without this field, an example whose tool uses the network is
    /// not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Vec<HttpExchange>>,
    /// The results of other tools. Without this field, an example whose tool calls others is not
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<StatedCall>>,
    /// The records that `context.api` finds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breadcrumbs: Vec<ExampleRecord>,
    /// What the tool writes with `context.api`, in order: `{"create": {…}}`, `{"update": {id,
    /// version, changes}}`, `{"delete": {id}}`. It can contain matchers. Not compared when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    pub writes: Option<Vec<Value>>,
    /// The values of secrets, by name. A secret without one has the value `example-<name>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// The time at the start of the run. Default: 2026-01-01T00:00:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<DateTime<Utc>>,
    /// The seed of the random generators. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u32>,
}

impl Example {
    /// The default of `now`: 2026-01-01T00:00:00Z, in milliseconds since 1970.
    const DEFAULT_NOW_MS: i64 = 1_767_225_600_000;

    /// The time at the start of the run, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.now.map_or(Self::DEFAULT_NOW_MS, |now| now.timestamp_millis())
    }
}

/// A failure as an example expects it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedFailure {
    pub code: ErrorCode,
    /// The message, or a matcher. Not compared when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub message: Option<Value>,
}

/// One request of the tool to the network, and its response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpExchange {
    pub request: ExpectedRequest,
    #[serde(default)]
    pub response: GivenResponse,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRequest {
    #[serde(default = "get", skip_serializing_if = "is_get")]
    pub method: String,
    pub url: String,
    /// Headers that the request must have, among others. Names are case-insensitive.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub headers: BTreeMap<String, Value>,
    /// The body: text, or JSON that the body is parsed as. It can contain matchers. Not compared
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub body: Option<Value>,
}

fn get() -> String {
    "GET".to_owned()
}

fn is_get(method: &str) -> bool {
    method == "GET"
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenResponse {
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    pub status: u16,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Text is sent as it is. Other JSON is sent as JSON, with that content type by default.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Object)]
    pub body: Value,
    /// Instead of a response: the network fails with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Default for GivenResponse {
    fn default() -> Self {
        Self { status: ok(), headers: BTreeMap::new(), body: Value::Null, error: None }
    }
}

fn ok() -> u16 {
    200
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference.
fn is_ok(status: &u16) -> bool {
    *status == ok()
}

/// One call of another tool, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StatedCall {
    pub tool: String,
    /// The input. It can contain matchers. Not compared when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Object)]
    pub output: Value,
    /// Instead of an output: the tool fails with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<GivenFailure>,
}

/// How another tool fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GivenFailure {
    pub code: ErrorCode,
    #[serde(default)]
    pub message: String,
    /// The response's `error_details`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub details: Option<Value>,
}

/// A record that the tool finds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExampleRecord {
    /// Default: 00000000-0000-4000-8000-00000000000n for the record with the number n, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    #[serde(default = "first")]
    pub version: i64,
    #[serde(default)]
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_name: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub context: Map<String, Value>,
    /// Default: the example's `now`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
}

fn first() -> i64 {
    1
}
