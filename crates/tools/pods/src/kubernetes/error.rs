//! What the API server answers if it does not do what was asked.

use std::error::Error;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::RETRY_AFTER;
use serde::Deserialize;

use super::read;

/// The longest pause that the server can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The largest error that is read.
const MAX_STATUS: usize = 64 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A file of this pod, or a setting, is wrong.
    #[error("{0}")]
    Setup(String),
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the API server refuses ({status} {reason}): {message}")]
    Refused { status: u16, reason: String, message: String, retry_after: Option<Duration> },
    #[error("the response of the API server cannot be read: {0}")]
    Unreadable(String),
}

/// The body of an error, a `Status`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    reason: String,
    message: String,
}

impl ApiError {
    pub(super) async fn refused(response: Response) -> Self {
        let status = response.status();
        let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let retry_after = seconds.map(|seconds| Duration::from_secs(seconds).min(LONGEST_PAUSE));
        let body = read(response, MAX_STATUS).await.unwrap_or_default();
        let told: Status = serde_json::from_slice(&body).unwrap_or_default();
        let message = if told.message.is_empty() {
            String::from_utf8_lossy(&body).trim().chars().take(500).collect()
        } else {
            told.message
        };
        Self::Refused { status: status.as_u16(), reason: told.reason, message, retry_after }
    }

    /// Whether the same request may succeed later: the server is busy, a quota is used up, somebody
    /// else changed the same object, or the token was just replaced.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, reason, message, .. } => match status {
                401 | 429 | 500 | 502..=504 => true,
                403 => message.contains("exceeded quota"),
                409 => reason == "Conflict",
                _ => false,
            },
            Self::Setup(_) | Self::Unreadable(_) => false,
        }
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    pub(super) fn already_exists(&self) -> bool {
        matches!(self, Self::Refused { status: 409, reason, .. } if reason == "AlreadyExists")
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// The text of an error with those of its causes. The first alone says only that a request failed.
pub fn with_causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
