//! Every error as an RFC 9457 problem document. The one place where an error becomes text for a
//! caller. Messages of the database and of panics are only logged.

use std::time::Duration;

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rcrt_breadcrumb::{StoreError, Violation, Violations};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::rate_limit::{RateLimitStatus, whole_seconds};

/// The media type of a problem document.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// The end of a detail. It begins with a path of this server, which has a public URL behind a
/// proxy.
pub const DOCS_LIST_PATHS: &str = "/docs lists the paths";

/// A refusal: the document for the caller, and the headers that belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    document: Box<ProblemDocument>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// An RFC 9457 problem document. `code` is the stable name of the problem. The members after it
/// exist only for some codes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// The URL that explains the code: `/docs#problem-<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request, and what is expected.
    pub detail: String,
    pub code: &'static str,
    /// `invalid`: all that is wrong with the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// `version_conflict`: the version that the caller named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<i64>,
    /// `version_conflict`: the current version of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<i64>,
    /// `not_found`: the kind of the thing that was not found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<&'static str>,
    /// `not_found`: its id. `lease_lost`: the request's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// `tool_not_found`: similar names of tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// `too_large`: the most bytes that are accepted. `quota_exceeded`, `queue_full`: the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// `quota_exceeded`: which quota: `records`, `bytes`, `tools`, `tool_bytes` or
    /// `tool_creations`; or `descendants`, for a request that a call writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<String>,
    /// `quota_exceeded`: how much of it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// `malformed_json`: the position of the error, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

/// Every code with its status, its title and what a caller should do. The page at `/docs` shows it.
pub const CODES: [(&str, StatusCode, &str, &str); 28] = [
    ("malformed_json", StatusCode::BAD_REQUEST, "Malformed JSON", "Correct the body at `line` and `column`."),
    ("invalid", StatusCode::BAD_REQUEST, "Invalid input", "Correct each of the `violations`."),
    ("unauthorized", StatusCode::UNAUTHORIZED, "No valid token", "Get a token from /auth/token and send it."),
    ("forbidden", StatusCode::FORBIDDEN, "Not allowed", "Use a token that has one of the named roles."),
    ("not_found", StatusCode::NOT_FOUND, "Not found", "It does not exist, or it belongs to another tenant."),
    (
        "tool_not_found",
        StatusCode::NOT_FOUND,
        "No such tool",
        "Use one of the `nearest`, or one that GET /tools lists.",
    ),
    ("unknown_path", StatusCode::NOT_FOUND, "Unknown path", "The paths are listed at /docs."),
    ("method_not_allowed", StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", "Use a method from the Allow header."),
    ("not_acceptable", StatusCode::NOT_ACCEPTABLE, "Not acceptable", "Send the Accept header that the detail names."),
    ("timeout", StatusCode::REQUEST_TIMEOUT, "The request came too slowly", "Send it again."),
    ("lease_lost", StatusCode::CONFLICT, "Lease lost", "Stop working on this call; another runner may have it."),
    (
        "version_conflict",
        StatusCode::PRECONDITION_FAILED,
        "Version conflict",
        "Read the record again and repeat the change.",
    ),
    ("too_large", StatusCode::PAYLOAD_TOO_LARGE, "Too large", "Send at most `limit` bytes."),
    (
        "unsupported_media_type",
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Unsupported media type",
        "Send application/json, not compressed.",
    ),
    (
        "foreign_host",
        StatusCode::MISDIRECTED_REQUEST,
        "Foreign host",
        "Address the server by a loopback name, or by one that its operator allowed with --allow-host.",
    ),
    (
        "idempotency_mismatch",
        StatusCode::UNPROCESSABLE_ENTITY,
        "Idempotency-Key used before",
        "Use a new key for a new body.",
    ),
    (
        "precondition_required",
        StatusCode::PRECONDITION_REQUIRED,
        "If-Match required",
        "Send If-Match with the version that you read.",
    ),
    (
        "too_many_streams",
        StatusCode::TOO_MANY_REQUESTS,
        "Too many event streams",
        "Close one, or try again after the seconds in Retry-After.",
    ),
    ("events_missed", StatusCode::GONE, "Events missed", "Continue from the number in the detail."),
    ("rate_limited", StatusCode::TOO_MANY_REQUESTS, "Too many requests", "Wait for the seconds in Retry-After."),
    (
        "queue_full",
        StatusCode::TOO_MANY_REQUESTS,
        "Too many queued calls",
        "Wait for the seconds in Retry-After, and for some of the agent's calls to end.",
    ),
    (
        "secret_key_missing",
        StatusCode::INTERNAL_SERVER_ERROR,
        "Key of a secret missing",
        "Contact the operator, who can put the key back or set the secret again.",
    ),
    ("internal", StatusCode::INTERNAL_SERVER_ERROR, "Internal error", "The log has the cause under the X-Request-Id."),
    ("unavailable", StatusCode::SERVICE_UNAVAILABLE, "Unavailable", "Try again after a moment."),
    ("busy", StatusCode::SERVICE_UNAVAILABLE, "Busy", "Wait for the seconds in Retry-After."),
    ("draining", StatusCode::SERVICE_UNAVAILABLE, "Stopping", "Use another server, or try again after a moment."),
    (
        "quota_exceeded",
        StatusCode::INSUFFICIENT_STORAGE,
        "Quota used up",
        "Delete what is not needed, or ask the operator for a higher `limit`.",
    ),
    ("full", StatusCode::INSUFFICIENT_STORAGE, "Out of disk space", "Nothing was written. Contact the operator."),
];

impl Problem {
    /// A problem of one of the [`CODES`].
    fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self::with(code, detail, |_| {})
    }

    /// The same, with members that belong to this code.
    fn with(code: &'static str, detail: impl Into<String>, fill: impl FnOnce(&mut ProblemDocument)) -> Self {
        let known = CODES.into_iter().find(|known| known.0 == code);
        let (code, status, title, _) = known.unwrap_or((code, StatusCode::INTERNAL_SERVER_ERROR, "Internal error", ""));
        let mut document = Box::new(ProblemDocument {
            kind: format!("/docs#problem-{code}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            code,
            violations: Vec::new(),
            expected: None,
            actual: None,
            what: None,
            id: None,
            nearest: Vec::new(),
            limit: None,
            quota: None,
            used: None,
            line: None,
            column: None,
        });
        fill(&mut document);
        Self { document, headers: Vec::new() }
    }

    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Violations::one(field, message).into()
    }

    pub fn malformed_json(detail: impl Into<String>, line: usize, column: usize) -> Self {
        Self::with("malformed_json", detail, |document| {
            document.line = Some(line);
            document.column = Some(column);
        })
    }

    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        Self::new("unsupported_media_type", detail).with_header(header::ACCEPT, "application/json")
    }

    pub fn too_large(limit: usize) -> Self {
        let detail = format!("the body is too large: at most {limit} bytes are accepted");
        Self::with("too_large", detail, |document| document.limit = Some(limit as u64))
    }

    pub fn timeout() -> Self {
        Self::new("timeout", "the body did not arrive in time")
    }

    pub fn precondition_required() -> Self {
        Self::new("precondition_required", "send If-Match with the version that you read, such as If-Match: \"3\"")
    }

    /// The request has no token: the challenge has no error code, as RFC 6750 requires.
    pub fn token_missing(how: &str) -> Self {
        Self::new("unauthorized", format!("this requires a token: {how}"))
            .with_header(header::WWW_AUTHENTICATE, "Bearer realm=\"rcrt\"")
    }

    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new("unauthorized", detail)
            .with_header(header::WWW_AUTHENTICATE, "Bearer realm=\"rcrt\", error=\"invalid_token\"")
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new("forbidden", detail)
            .with_header(header::WWW_AUTHENTICATE, "Bearer realm=\"rcrt\", error=\"insufficient_scope\"")
    }

    pub fn foreign_host(detail: impl Into<String>) -> Self {
        Self::new("foreign_host", detail)
    }

    pub fn tool_not_found(detail: impl Into<String>, nearest: Vec<String>) -> Self {
        Self::with("tool_not_found", detail, |document| document.nearest = nearest)
    }

    pub fn token_not_listed(jti: Uuid) -> Self {
        let detail = format!(
            "no unexpired token with id {jti} is listed; to revoke one that is not listed yet, send the token itself, or \
             also name its agent in agent_id"
        );
        Self::with("not_found", detail, |document| {
            document.what = Some("token");
            document.id = Some(jti);
        })
    }

    /// `option`: the option of the server that sets this limit.
    pub fn too_many_streams(whose: &str, most: usize, option: &str) -> Self {
        let detail = format!(
            "the {whose} has {most} event streams open, which is the maximum; close one, or ask the operator for a higher \
             {option}"
        );
        Self::new("too_many_streams", detail).with_header(header::RETRY_AFTER, "5")
    }

    pub fn too_many_sessions(detail: impl Into<String>) -> Self {
        Self::new("too_many_streams", detail).with_header(header::RETRY_AFTER, "60")
    }

    pub fn unknown_path(path: &str) -> Self {
        let shown: String = path.chars().take(200).collect();
        Self::new("unknown_path", format!("{shown} is not a path of this server; {DOCS_LIST_PATHS}"))
    }

    pub fn method_not_allowed(method: &str, path: &str) -> Self {
        let shown: String = path.chars().take(200).collect();
        Self::new("method_not_allowed", format!("{shown} does not support {method}; see the Allow header"))
    }

    /// For a path with more methods in some revisions of its protocol.
    pub fn only_post(detail: impl Into<String>) -> Self {
        Self::new("method_not_allowed", detail).with_header(header::ALLOW, "POST")
    }

    pub fn not_acceptable(detail: impl Into<String>) -> Self {
        Self::new("not_acceptable", detail)
    }

    pub fn unknown_session() -> Self {
        let detail = "there is no such session: it ended, or was not used for a day; send initialize again";
        Self::with("not_found", detail, |document| document.what = Some("session"))
    }

    /// `pause`: until the next request is allowed.
    pub fn rate_limited(why: &str, pause: Duration) -> Self {
        let seconds = whole_seconds(pause);
        let mut problem = Self::new("rate_limited", format!("{why}; try again in {seconds} s"));
        problem.headers.push((header::RETRY_AFTER, HeaderValue::from(seconds)));
        problem
    }

    pub fn draining() -> Self {
        Self::new("draining", "this server is about to stop and accepts no new work")
            .with_header(header::RETRY_AFTER, "1")
            .with_header(header::CONNECTION, "close")
    }

    /// For the health of a process that runs and cannot work now.
    pub fn not_ready(why: impl Into<String>) -> Self {
        Self::new("unavailable", why).with_header(header::RETRY_AFTER, "1")
    }

    pub fn internal() -> Self {
        Self::new("internal", "the server failed; the log has the cause under the X-Request-Id of this response")
    }

    fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Adds the headers of the caller's rate limit.
    pub fn with_rate_limit_status(mut self, limit_status: RateLimitStatus) -> Self {
        self.headers.extend(limit_status.numbers());
        self
    }

    /// For the log, where no caller waits for a response.
    pub fn detail(&self) -> &str {
        &self.document.detail
    }

    pub fn code(&self) -> &'static str {
        self.document.code
    }

    pub fn violations(&self) -> &[Violation] {
        &self.document.violations
    }

    pub fn is_unauthorized(&self) -> bool {
        self.document.code == "unauthorized"
    }
}

impl From<Violations> for Problem {
    fn from(violations: Violations) -> Self {
        Self::with("invalid", violations.to_string(), |document| document.violations = violations.0)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let detail = error.to_string();
        match error {
            StoreError::NotFound { what, id } => Self::with("not_found", detail, |document| {
                document.what = Some(what);
                document.id = Some(id);
            }),
            StoreError::VersionConflict { expected, actual } => Self::with("version_conflict", detail, |document| {
                document.expected = Some(expected);
                document.actual = Some(actual);
            }),
            StoreError::Invalid(violations) => violations.into(),
            StoreError::IdempotencyMismatch => Self::new("idempotency_mismatch", detail),
            StoreError::LeaseLost { request } => {
                Self::with("lease_lost", detail, |document| document.id = Some(request))
            }
            StoreError::Unauthorized(why) => Self::unauthorized(why),
            StoreError::Forbidden(why) => Self::forbidden(why),
            StoreError::TooLarge { limit } => Self::too_large(limit),
            StoreError::EventsMissed { .. } => Self::new("events_missed", detail),
            StoreError::QuotaExceeded { quota, limit, used } => Self::with("quota_exceeded", detail, |document| {
                document.quota = Some(quota);
                document.limit = Some(limit);
                document.used = Some(used);
            }),
            StoreError::QueueFull { limit } => {
                Self::with("queue_full", detail, |document| document.limit = Some(limit))
                    .with_header(header::RETRY_AFTER, "1")
            }
            StoreError::SecretKeyMissing(why) => {
                tracing::error!(why, "the key of a secret is missing");
                Self::new("secret_key_missing", why)
            }
            StoreError::Full => {
                tracing::error!("the store is out of disk space");
                Self::new("full", detail)
            }
            StoreError::Busy(_) => Self::new("busy", detail).with_header(header::RETRY_AFTER, "1"),
            StoreError::Unavailable(cause) => {
                tracing::warn!(cause, "the store cannot be reached");
                Self::new("unavailable", "the store cannot be reached now; try again")
                    .with_header(header::RETRY_AFTER, "1")
            }
            StoreError::Internal(cause) => {
                tracing::error!(cause, "internal error");
                Self::internal()
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.document.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, serde_json::to_vec(&self.document).unwrap_or_default()).into_response();
        // For the middleware of `--public-url`.
        response.extensions_mut().insert(*self.document);
        let always = [(header::CONTENT_TYPE, MEDIA_TYPE), (header::CACHE_CONTROL, "no-store")]
            .map(|(name, value)| (name, HeaderValue::from_static(value)));
        for (name, value) in self.headers.into_iter().chain(always) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
