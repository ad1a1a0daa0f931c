//! The errors of the protocol, with their codes in each binding.

use serde_json::{Map, Value, json};

/// What went wrong. Each kind has one code per binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    ExtendedCardNotConfigured,
    ExtensionSupportRequired,
    VersionNotSupported,
    /// The protocol has no code for the last three: JSON-RPC sends them as `InvalidRequest` and
    /// `InternalError`, with their own reason.
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
}

/// Code of JSON-RPC, status of HTTP, status of google.rpc, reason.
type Codes = (i64, u16, &'static str, &'static str);

impl ErrorKind {
    const ALL: [Self; 17] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotificationNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::Unavailable,
    ];

    fn codes(self) -> Codes {
        match self {
            Self::Parse => (-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"),
            Self::InvalidRequest => (-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"),
            Self::MethodNotFound => (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND"),
            Self::InvalidParams => (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"),
            Self::Internal => (-32603, 500, "INTERNAL", "INTERNAL_ERROR"),
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
            Self::PushNotificationNotSupported => {
                (-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED")
            }
            Self::UnsupportedOperation => (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
            Self::ContentTypeNotSupported => (-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"),
            Self::InvalidAgentResponse => (-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"),
            Self::ExtendedCardNotConfigured => {
                (-32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
            }
            Self::ExtensionSupportRequired => (-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED"),
            Self::VersionNotSupported => (-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED"),
            Self::PermissionDenied => (-32600, 403, "PERMISSION_DENIED", "PERMISSION_DENIED"),
            Self::ResourceExhausted => (-32603, 429, "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"),
            Self::Unavailable => (-32603, 503, "UNAVAILABLE", "UNAVAILABLE"),
        }
    }

    /// The error code of JSON-RPC.
    pub fn code(self) -> i64 {
        self.codes().0
    }

    /// The status of HTTP.
    pub fn http_status(self) -> u16 {
        self.codes().1
    }

    /// The reason in an error's details.
    pub fn reason(self) -> &'static str {
        self.codes().3
    }

    /// The first kind with this code of JSON-RPC; [`Self::Internal`] for another code.
    pub fn of_code(code: i64) -> Self {
        Self::ALL.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Internal)
    }

    /// The kind with this reason.
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }
}

/// An error, for whoever called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct A2aError {
    pub kind: ErrorKind,
    /// What is wrong and what is expected.
    pub message: String,
    /// Each invalid field, and why.
    pub violations: Vec<(String, String)>,
}

impl A2aError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), violations: Vec::new() }
    }

    /// One invalid field of the parameters.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let violations = vec![(field.to_owned(), message.clone())];
        Self { kind: ErrorKind::InvalidParams, message: format!("{field}: {message}"), violations }
    }

    pub fn task_not_found(id: &str) -> Self {
        let shown: String = id.chars().take(100).collect();
        Self::new(ErrorKind::TaskNotFound, format!("there is no task {shown:?} of this caller"))
    }

    /// The member `error` of a JSON-RPC response.
    pub fn to_json_rpc(&self) -> Value {
        json!({"code": self.kind.code(), "message": self.message, "data": self.details()})
    }

    /// The body of a response of the binding HTTP+JSON, a `google.rpc.Status`.
    pub fn to_http(&self) -> Value {
        let (_, code, status, _) = self.kind.codes();
        json!({"error": {"code": code, "status": status, "message": self.message, "details": self.details()}})
    }

    fn details(&self) -> Value {
        let mut details = vec![json!({
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": self.kind.reason(),
            "domain": "a2a-protocol.org",
            "metadata": {},
        })];
        if !self.violations.is_empty() {
            let fields: Vec<Value> = self
                .violations
                .iter()
                .map(|(field, description)| json!({"field": field, "description": description}))
                .collect();
            details.push(json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields}));
        }
        Value::Array(details)
    }

    /// The error that an agent sent: the member `error` of a response, in either binding.
    pub fn read(error: &Map<String, Value>) -> Self {
        let details = error.get("data").or_else(|| error.get("details")).and_then(Value::as_array);
        let reason = details.into_iter().flatten().find_map(|one| ErrorKind::of_reason(one.get("reason")?.as_str()?));
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let message = error.get("message").and_then(Value::as_str).unwrap_or("no message");
        Self::new(reason.unwrap_or_else(|| ErrorKind::of_code(code)), message)
    }
}
