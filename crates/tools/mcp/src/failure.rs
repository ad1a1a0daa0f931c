//! Why a server cannot be reached or did not do what it was asked, and the failure of a call that
//! this becomes.

use std::error::Error;

use rcrt_breadcrumb::{ErrorCode, OpError, StoreError, ToolFailure};
use rcrt_egress::Vault;
use rmcp::ServiceError;
use rmcp::model::InputRequiredResult;
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::json;

use crate::questions;
use crate::text::{redacted, redacted_line};

/// Why there is no connection, or no list of tools.
#[derive(Debug, Clone, thiserror::Error)]
pub enum McpError {
    #[error("there is no MCP server {name:?}; the servers are: {}", listed(known))]
    Unknown { name: String, known: Vec<String> },
    #[error("the MCP server {0:?} is disabled")]
    Disabled(String),
    /// The record is invalid, or a secret is missing.
    #[error("{0}")]
    Configuration(String),
    #[error("{0}")]
    Unreachable(String),
    /// The server responded, or its program ended, and the attempt to connect failed: it may be of
    /// another era.
    #[error("{0}")]
    NotUnderstood(String),
    /// The egress gate refuses the address.
    #[error("{0}")]
    Refused(String),
    /// The working folder of its program.
    #[error("{0}")]
    FolderFull(String),
    #[error("the server did not respond within {0} ms")]
    Timeout(u64),
    /// The server's challenge, if it sent one.
    #[error("the server asks for authorization{}; see `rcrt mcp login`", stated(.0))]
    Unauthorized(String),
    /// The server's challenge: the access token does not cover the request.
    #[error("the server asks for another scope{}; see `rcrt mcp login --scope`", stated(.0))]
    InsufficientScope(String),
    #[error("the store failed: the runner's log has the cause")]
    Store,
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn stated(challenge: &str) -> String {
    if challenge.is_empty() { String::new() } else { format!(" ({challenge})") }
}

impl From<StoreError> for McpError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "the records of MCP servers cannot be read");
        Self::Store
    }
}

impl McpError {
    /// `stderr`: the last lines of the server's program. The secrets of the vault are redacted.
    pub fn of_start(error: &ClientInitializeError, stderr: Option<String>, vault: &Vault) -> Self {
        if let Some(challenge) = error.auth_challenge() {
            return Self::of_challenge(challenge, error.is_authorization_required(), vault);
        }
        // The second attempt says more than that both failed.
        let last: &ClientInitializeError = match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
            other => other,
        };
        let failed = match last {
            ClientInitializeError::TransportError { error, .. } => Self::of_transport(error.error.as_ref(), vault),
            other => Self::NotUnderstood(redacted_line(&other.to_string(), vault)),
        };
        match (failed, stderr.filter(|stderr| !stderr.is_empty())) {
            (Self::NotUnderstood(why), Some(stderr)) => {
                Self::NotUnderstood(format!("{why}; its standard error: {}", redacted_line(&stderr, vault)))
            }
            (failed, _) => failed,
        }
    }

    /// `error` is that of a transport. The secrets of the vault are redacted.
    pub fn of_transport(error: &(dyn Error + 'static), vault: &Vault) -> Self {
        match error.downcast_ref::<StreamableHttpError<OpError>>() {
            Some(StreamableHttpError::AuthRequired(asked)) => {
                return Self::of_challenge(&asked.www_authenticate_header, true, vault);
            }
            Some(StreamableHttpError::InsufficientScope(asked)) => {
                return Self::of_challenge(&asked.www_authenticate_header, false, vault);
            }
            _ => {}
        }
        match gate_error(error) {
            Some(refused) if refused.name == "PermissionDenied" => Self::Refused(refused.message),
            Some(failed) => Self::Unreachable(redacted_line(&failed.message, vault)),
            None => Self::NotUnderstood(redacted_line(&error.to_string(), vault)),
        }
    }

    /// The secrets of the vault are redacted.
    pub fn of_request(error: &ServiceError, vault: &Vault) -> Self {
        match (error, error.auth_challenge()) {
            (_, Some(challenge)) => Self::of_challenge(challenge, error.is_authorization_required(), vault),
            (ServiceError::Timeout { timeout }, None) => Self::Timeout(timeout.as_millis() as u64),
            (error, None) => Self::Unreachable(redacted_line(&error.to_string(), vault)),
        }
    }

    fn of_challenge(challenge: &str, is_unauthorized: bool, vault: &Vault) -> Self {
        let challenge = redacted_line(challenge, vault);
        if is_unauthorized { Self::Unauthorized(challenge) } else { Self::InsufficientScope(challenge) }
    }

    /// The failure of a call. The call was not sent.
    pub fn failure(&self, server: &str) -> ToolFailure {
        let code = match self {
            Self::Unknown { .. } => ErrorCode::InvalidArguments,
            Self::Refused(_)
            | Self::Disabled(_)
            | Self::Configuration(_)
            | Self::Unauthorized(_)
            | Self::InsufficientScope(_) => ErrorCode::PermissionDenied,
            Self::FolderFull(_) => ErrorCode::ResourceExhausted,
            Self::Timeout(_) => ErrorCode::Timeout,
            Self::Unreachable(_) | Self::NotUnderstood(_) | Self::Store => ErrorCode::ExecutionFailed,
        };
        let is_passing = matches!(self, Self::Unreachable(_) | Self::NotUnderstood(_) | Self::Timeout(_) | Self::Store);
        let message = match self {
            Self::Unknown { .. } | Self::Disabled(_) => self.to_string(),
            other => format!("the MCP server {server:?} cannot be used: {other}"),
        };
        ToolFailure::new(code, message).with_details(json!({"server": server})).retryable(is_passing)
    }
}

/// The failure of a call that was sent. `may_repeat`: a second call has no further effect. The
/// secrets of the vault are redacted from the message, but not from the details.
pub fn of_call(error: &ServiceError, server: &str, may_repeat: bool, vault: &Vault) -> ToolFailure {
    let failed = |code, message: String| ToolFailure::new(code, message).with_details(json!({"server": server}));
    if let Some(challenge) = error.auth_challenge() {
        return McpError::of_challenge(challenge, error.is_authorization_required(), vault).failure(server);
    }
    match error {
        ServiceError::McpError(stated) => {
            let code = match stated.code {
                rmcp::model::ErrorCode::INVALID_PARAMS => ErrorCode::InvalidArguments,
                _ => ErrorCode::ExecutionFailed,
            };
            let message = redacted(&stated.message, 4000, vault);
            let mut details = json!({"server": server, "mcp_code": stated.code.0});
            if let Some(data) = stated.data.as_ref().filter(|data| data.to_string().len() <= 16 * 1024) {
                details["data"] = data.clone();
            }
            ToolFailure::new(code, format!("the MCP server {server:?} responded with an error: {message}"))
                .with_details(details)
        }
        ServiceError::Timeout { timeout } => {
            failed(ErrorCode::Timeout, format!("the tool did not end within {} ms", timeout.as_millis()))
                .retryable(may_repeat)
        }
        ServiceError::TransportSend(error) => match gate_error(error) {
            Some(refused) if refused.name == "PermissionDenied" => failed(ErrorCode::PermissionDenied, refused.message),
            Some(large) if large.name == "ResourceExhausted" => failed(ErrorCode::ResourceExhausted, large.message),
            other => {
                let why = redacted_line(&other.map_or_else(|| error.to_string(), |error| error.message), vault);
                failed(ErrorCode::ExecutionFailed, format!("the connection to the MCP server {server:?} failed: {why}"))
                    .retryable(may_repeat)
            }
        },
        ServiceError::TransportClosed => {
            let message = format!(
                "the connection to the MCP server {server:?} ended while the tool ran; its effects may or may not have \
                 happened"
            );
            failed(ErrorCode::ExecutionFailed, message).retryable(may_repeat)
        }
        ServiceError::Cancelled { reason } => {
            let why = redacted_line(reason.as_deref().unwrap_or_default(), vault);
            failed(ErrorCode::ExecutionFailed, format!("the MCP server {server:?} cancelled the call: {why}"))
        }
        other => {
            let why = redacted_line(&other.to_string(), vault);
            failed(
                ErrorCode::ExecutionFailed,
                format!("the MCP server {server:?} did not respond as the protocol says: {why}"),
            )
        }
    }
}

/// The failure of a call in which the server asked what nobody answers.
pub fn unanswered(asked: &InputRequiredResult, server: &str) -> ToolFailure {
    let message = format!(
        "the MCP server {server:?} asks for {} during the call, and nobody answers that; `elicitation` in its record \
         says how its forms are answered",
        questions::kinds(asked)
    );
    ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(json!({"server": server}))
}

/// The egress gate's error among the causes.
fn gate_error(error: &(dyn Error + 'static)) -> Option<OpError> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(present) = cause {
        if let Some(found) = present.downcast_ref::<OpError>() {
            return Some(found.clone());
        }
        if let Some(StreamableHttpError::Client(found)) = present.downcast_ref::<StreamableHttpError<OpError>>() {
            return Some(found.clone());
        }
        cause = present.source();
    }
    None
}
