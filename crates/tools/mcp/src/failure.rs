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

use crate::text::{redacted, redacted_line};
use crate::transport::ProgramLog;
use crate::{plain_text, questions};

const CHECK_URL: &str = "check that transport.url is that of an MCP server";

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
    #[error("the server did not respond within {0} ms; connect_timeout_ms in its record bounds this")]
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
    /// `program`: the server's, if it is one. The secrets of the vault are redacted.
    pub fn of_start(error: &ClientInitializeError, program: Option<&ProgramLog>, vault: &Vault) -> Self {
        if let Some(challenge) = error.auth_challenge() {
            return Self::of_challenge(challenge, error.is_authorization_required(), vault);
        }
        // The second attempt says more than that both failed.
        let last: &ClientInitializeError = match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
            other => other,
        };
        match (last, program) {
            (_, Some(program)) => {
                let why = program.stopped().map_or_else(|| plain_text::of_start(last), |error| error.message);
                let why = format!("{}; check transport.command and transport.args", redacted_line(&why, vault));
                let stderr = redacted_line(&program.stderr(vault), vault);
                let has_said = !stderr.is_empty();
                Self::NotUnderstood(if has_said { format!("{why}; its standard error: {stderr}") } else { why })
            }
            (ClientInitializeError::TransportError { error, .. }, None) => {
                Self::of_transport(error.error.as_ref(), vault)
            }
            (other, None) => {
                let why = redacted_line(&plain_text::of_start(other), vault);
                Self::NotUnderstood(format!("{why}; {CHECK_URL}"))
            }
        }
    }

    /// `error` is that of a transport. The secrets of the vault are redacted.
    pub fn of_transport(error: &(dyn Error + 'static), vault: &Vault) -> Self {
        let http = error.downcast_ref::<StreamableHttpError<OpError>>();
        let advised = |why: &str, advice: &str| {
            let why = redacted_line(why, vault);
            if http.is_some() { format!("{why}; {advice}") } else { why }
        };
        match (http, plain_text::stated(error)) {
            (Some(StreamableHttpError::AuthRequired(asked)), _) => {
                Self::of_challenge(&asked.www_authenticate_header, true, vault)
            }
            (Some(StreamableHttpError::InsufficientScope(asked)), _) => {
                Self::of_challenge(&asked.www_authenticate_header, false, vault)
            }
            (_, Some(refused)) if refused.name == "PermissionDenied" => Self::Refused(refused.message),
            (_, Some(failed)) => {
                Self::Unreachable(advised(&failed.message, "check transport.url, and that the server runs"))
            }
            (_, None) => Self::NotUnderstood(advised(&plain_text::of_transport(error), CHECK_URL)),
        }
    }

    /// Why the tools could not be listed. The secrets of the vault are redacted.
    pub fn of_list(error: &ServiceError, vault: &Vault) -> Self {
        if let Some(challenge) = error.auth_challenge() {
            return Self::of_challenge(challenge, error.is_authorization_required(), vault);
        }
        match error {
            ServiceError::Timeout { timeout } => Self::Timeout(timeout.as_millis() as u64),
            ServiceError::TransportSend(error) => Self::of_transport(error.error.as_ref(), vault),
            ServiceError::McpError(stated) => {
                let why = redacted_line(&stated.message, vault);
                Self::Unreachable(format!("the server responded to tools/list with an error: {why}"))
            }
            ServiceError::TransportClosed => {
                Self::Unreachable("the connection ended while its tools were listed".to_owned())
            }
            _ => Self::Unreachable("the server did not list its tools as the protocol says".to_owned()),
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
        ServiceError::TransportSend(error) => {
            let error: &(dyn Error + 'static) = error.error.as_ref();
            let stated = plain_text::stated(error);
            let code = match stated.as_ref().map(|stated| stated.name.as_str()) {
                Some("PermissionDenied") => ErrorCode::PermissionDenied,
                Some("ResourceExhausted") => ErrorCode::ResourceExhausted,
                _ => ErrorCode::ExecutionFailed,
            };
            let why = stated.map_or_else(|| plain_text::of_transport(error), |stated| stated.message);
            let why = redacted_line(&why, vault);
            failed(code, format!("the connection to the MCP server {server:?} failed: {why}"))
                .retryable(may_repeat && code == ErrorCode::ExecutionFailed)
        }
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
