//! `tool.response.v1`: the one terminal response to a request.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::names::names;
use crate::{NewBreadcrumb, RequestKind, ToolRequest, tool_creation};

const TAG: &str = "tool:response";

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum ErrorCode {
    ToolNotFound,
    InvalidArguments,
    PermissionDenied,
    Timeout,
    ResourceExhausted,
    ExecutionFailed,
    InvalidOutput,
    Cancelled,
}

names!(ErrorCode, "error code", {
    ToolNotFound => "ToolNotFound",
    InvalidArguments => "InvalidArguments",
    PermissionDenied => "PermissionDenied",
    Timeout => "Timeout",
    ResourceExhausted => "ResourceExhausted",
    ExecutionFailed => "ExecutionFailed",
    InvalidOutput => "InvalidOutput",
    Cancelled => "Cancelled",
});

impl ErrorCode {
    /// Whether the same request can succeed later, unless the failure itself says.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Timeout)
    }
}

/// The failure of a call, for the caller.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ToolFailure {
    pub code: ErrorCode,
    pub message: String,
    /// Machine-readable details, such as each violation with its path.
    pub details: Option<Value>,
    pub is_retryable: bool,
}

impl ToolFailure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        // Postgres cannot store NUL, and a tool's message may contain it.
        let message = message.into().replace('\0', "\u{fffd}");
        Self { code, message, details: None, is_retryable: code.is_retryable() }
    }

    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    #[must_use]
    pub fn retryable(mut self, is_retryable: bool) -> Self {
        self.is_retryable = is_retryable;
        self
    }

    /// The cause that the tool gave its error, if any.
    pub fn stated_cause(&self) -> Option<&str> {
        self.details.as_ref()?.get("cause")?.as_str()
    }

    /// The failure of a request that was not finished by its deadline, `deadline_ms` milliseconds
    /// after it was written. `when` completes the sentence: "before the tool ran", "while the tool
    /// ran".
    pub fn deadline_passed(deadline_ms: u64, when: &str) -> Self {
        Self::new(ErrorCode::Timeout, format!("the request's deadline (deadline_ms: {deadline_ms}) passed {when}"))
            .with_details(json!({"limit": "deadline_ms", "allowed": deadline_ms}))
    }

    /// The failure of a call whose runner died while it ran.
    pub fn runner_lost(kind: RequestKind, attempt: u32) -> Self {
        let message = match kind {
            RequestKind::Call => format!(
                "the runner was lost while the tool ran (attempt {attempt}); its effects may or may not have happened"
            ),
            RequestKind::Creation => format!(
                "the runner was lost while it created the tool (attempt {attempt}, which is the last); the tool may have \
                 been written: see list_my_tools, and ask again if it was not"
            ),
        };
        Self::new(ErrorCode::ExecutionFailed, message).retryable(true)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResponseStatus {
    Success,
    Error,
}

/// The context of a `tool.response.v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToolResponse {
    pub request_id: String,
    pub tool: String,
    pub status: ResponseStatus,
    /// What the tool returned: any JSON. If that is larger than the caller accepts, a
    /// [`LargeResult`](crate::LargeResult), and `metadata` has `large_result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub output: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_retryable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub error_details: Option<Value>,
    pub execution_time_ms: u64,
    /// `console` (captured lines), `attempt`, `runner_id`, what ran (`tool_id`, `tool_schema_name`,
    /// `tool_version`, `definition_hash`, and `deprecated` if its author announced its end),
    /// `notice` (a sentence for whoever reads the output), `debug` of a call with `debug`, and what
    /// executors add.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    pub timestamp: String,
}

impl ToolResponse {
    pub fn new(
        request: &ToolRequest,
        result: Result<Value, ToolFailure>,
        execution_time_ms: u64,
        metadata: Map<String, Value>,
        now: DateTime<Utc>,
    ) -> Self {
        let mut response = Self {
            request_id: request.request_id.clone(),
            tool: request.tool.clone(),
            status: ResponseStatus::Success,
            output: None,
            error: None,
            error_code: None,
            is_retryable: None,
            error_details: None,
            execution_time_ms,
            metadata,
            timestamp: now.to_rfc3339_opts(SecondsFormat::Millis, true),
        };
        match result {
            Ok(output) => response.output = Some(output),
            Err(failure) => {
                response.status = ResponseStatus::Error;
                response.error = Some(failure.message);
                response.error_code = Some(failure.code);
                response.is_retryable = Some(failure.is_retryable);
                response.error_details = failure.details;
            }
        }
        response
    }

    /// The response record. Its tags are the request's workspace, `tool:response` (for a creation,
    /// `tool:create:response`) and `request:<request_id>`.
    pub fn record(self, request: &ToolRequest) -> NewBreadcrumb {
        let mut tags: Vec<String> = request.workspace.clone().into_iter().collect();
        let title = format!("Response of {}", self.tool.chars().take(200).collect::<String>());
        let (tag, context) = match request.kind {
            RequestKind::Call => (TAG, self.into_fields()),
            RequestKind::Creation => (tool_creation::RESPONSE_TAG, self.into_creation_fields()),
        };
        tags.push(tag.into());
        tags.push(Self::tag(&request.request_id));
        NewBreadcrumb {
            title,
            context,
            tags,
            schema_name: Some(request.kind.response_schema().into()),
            ..NewBreadcrumb::default()
        }
    }

    /// What a reader of the output should know about this run. It is not a part of the output.
    pub fn notice(&self) -> Option<&str> {
        self.metadata.get("notice")?.as_str()
    }

    /// As its serialization has them. A large output is moved, not copied.
    fn into_fields(self) -> Map<String, Value> {
        let mut fields = Map::with_capacity(10);
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(key.to_owned(), value);
            }
        };
        add("request_id", Some(self.request_id.into()));
        add("tool", Some(self.tool.into()));
        add("status", Some(self.status.as_str().into()));
        add("output", self.output);
        add("error", self.error.map(Value::from));
        add("error_code", self.error_code.map(|code| code.as_str().into()));
        add("is_retryable", self.is_retryable.map(Value::from));
        add("error_details", self.error_details);
        add("execution_time_ms", Some(self.execution_time_ms.into()));
        add("metadata", Some(self.metadata.into()));
        add("timestamp", Some(self.timestamp.into()));
        fields
    }

    /// The context of a `tool.create.response.v1`: the fields of the output, which has the
    /// creation's own `status`. A call that failed is a rejection.
    fn into_creation_fields(self) -> Map<String, Value> {
        let message = self.error.clone().unwrap_or_default();
        let rule = self.error_code.map_or("ExecutionFailed", ErrorCode::as_str);
        let mut fields = self.into_fields();
        match fields.remove("output") {
            Some(Value::Object(output)) => fields.extend(output),
            _ => {
                fields.insert("status".into(), "rejected".into());
                fields.insert(
                    "validation".into(),
                    json!({"errors": [{"field": "", "rule": rule, "message": message}], "warnings": []}),
                );
                fields.insert("examples".into(), json!([]));
            }
        }
        fields.remove("tool");
        fields
    }

    /// The tag by which a caller finds the response to its request.
    pub fn tag(request_id: &str) -> String {
        format!("request:{request_id}")
    }

    pub fn from_context(context: &Map<String, Value>) -> Result<Self, serde_json::Error> {
        Self::deserialize(Value::Object(context.clone()))
    }
}
