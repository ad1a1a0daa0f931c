//! A tool's HTTP requests and their responses, and why an operation of a tool failed.

use bytes::Bytes;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::LimitReached;

/// A body in pieces, in order. An error is the last item.
pub type BodyStream = BoxStream<'static, Result<Bytes, OpError>>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    pub method: String,
    /// Absolute, without a fragment.
    pub url: String,
    /// In order. Values are Latin-1 text, as on the web platform.
    pub headers: Vec<(String, String)>,
    pub redirect: Redirect,
}

/// The fetch standard's redirect mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redirect {
    #[default]
    Follow,
    Error,
    Manual,
}

pub struct FetchResponse {
    pub status: u16,
    pub status_text: String,
    /// In order, lower-case names.
    pub headers: Vec<(String, String)>,
    /// The final URL, after redirects.
    pub url: String,
    pub redirected: bool,
    /// Decoded (gzip, brotli). Fails if it exceeds the size limit.
    pub body: BodyStream,
}

/// Why an op failed. It is thrown in the tool as an `Error` with this name and message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{name}: {message}")]
pub struct OpError {
    /// `PermissionDenied`, `NotFound`, `InvalidArguments`, `VersionConflict`, `TypeError` (what the
    /// fetch standard throws for a network error), `ResourceExhausted`, `Unavailable`.
    pub name: String,
    pub message: String,
    /// The limit of the call that was reached, if any.
    pub reached: Option<LimitReached>,
}

impl OpError {
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), message: message.into(), reached: None }
    }

    /// `ResourceExhausted`, for a limit of the call. If the tool does not catch it, the call fails
    /// with the limit in its details.
    pub fn exhausted(reached: LimitReached, message: impl Into<String>) -> Self {
        Self { reached: Some(reached), ..Self::new("ResourceExhausted", message) }
    }
}
