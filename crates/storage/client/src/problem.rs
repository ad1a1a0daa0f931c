//! Converts an error response back into the [`StoreError`] that it was on the server.

use rcrt_breadcrumb::{StoreError, Violation, Violations};
use reqwest::{
    StatusCode,
    header::{HeaderMap, LOCATION},
};
use serde::Deserialize;
use uuid::Uuid;

/// The members of a problem document that a store error needs.
#[derive(Deserialize)]
struct Problem {
    code: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    violations: Vec<Violation>,
    what: Option<String>,
    id: Option<Uuid>,
    expected: Option<i64>,
    actual: Option<i64>,
    limit: Option<u64>,
    quota: Option<String>,
    used: Option<u64>,
}

const REFUSED_FOR_NOW: &str = "the server refuses the request for now: ";

/// The server's reason, if it responded, in the text of a [`StoreError::Unavailable`].
pub fn refused_for_now(why: &str) -> Option<&str> {
    why.strip_prefix(REFUSED_FOR_NOW)
}

/// The error of a response whose status is not a success.
pub(crate) fn error(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> StoreError {
    serde_json::from_slice::<Problem>(body).map_or_else(|_| foreign(status, headers), |problem| known(status, problem))
}

fn known(status: StatusCode, problem: Problem) -> StoreError {
    let Problem { code, detail, violations, what, id, expected, actual, limit, quota, used } = problem;
    match code.as_str() {
        "not_found" => StoreError::NotFound { what: named(what.as_deref()), id: id.unwrap_or_default() },
        "version_conflict" => {
            StoreError::VersionConflict { expected: expected.unwrap_or_default(), actual: actual.unwrap_or_default() }
        }
        "idempotency_mismatch" => StoreError::IdempotencyMismatch,
        "lease_lost" => StoreError::LeaseLost { request: id.unwrap_or_default() },
        "unauthorized" => StoreError::Unauthorized(detail),
        "forbidden" => StoreError::Forbidden(detail),
        "too_large" => StoreError::TooLarge { limit: usize::try_from(limit.unwrap_or_default()).unwrap_or(usize::MAX) },
        "quota_exceeded" => StoreError::QuotaExceeded {
            quota: quota.unwrap_or_default(),
            limit: limit.unwrap_or_default(),
            used: used.unwrap_or_default(),
        },
        "queue_full" => StoreError::QueueFull { limit: limit.unwrap_or_default() },
        "secret_key_missing" => StoreError::SecretKeyMissing(detail),
        "full" => StoreError::Full,
        "busy" => StoreError::Busy(detail),
        "unavailable" | "draining" | "rate_limited" | "too_many_streams" => {
            StoreError::Unavailable(format!("{REFUSED_FOR_NOW}{detail}"))
        }
        "invalid" if !violations.is_empty() => StoreError::Invalid(Violations(violations)),
        _ if status.is_client_error() => StoreError::Invalid(Violations::one("", detail)),
        _ => StoreError::Internal(detail),
    }
}

/// A response that the server did not write: from a proxy, or because the address is not an RCRT
/// server.
fn foreign(status: StatusCode, headers: &HeaderMap) -> StoreError {
    match status {
        _ if status.is_redirection() => {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("another address");
            let message = "and redirects are not followed; use the server's own address";
            StoreError::Internal(format!("the address redirects to {to}, {message}"))
        }
        StatusCode::UNAUTHORIZED => StoreError::Unauthorized("the server requires another kind of login".into()),
        StatusCode::FORBIDDEN => StoreError::Forbidden("a proxy in front of the server refused the request".into()),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => StoreError::Unavailable(format!("the response was {status}")),
        _ => StoreError::Internal(format!("{status} from a server that is not an RCRT server; check the address")),
    }
}

/// The kinds of things that a store names. They are static strings there, and so here.
fn named(what: Option<&str>) -> &'static str {
    const KNOWN: [&str; 14] = [
        "breadcrumb",
        "record",
        "request",
        "call",
        "secret",
        "grant",
        "tool",
        "agent",
        "tenant",
        "event",
        "selector",
        "token",
        "webhook",
        "dead letter",
    ];
    KNOWN.into_iter().find(|known| Some(*known) == what).unwrap_or("record")
}
