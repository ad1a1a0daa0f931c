//! What an agent answers, or why there is no usable answer.

use rcrt_a2a_types::{A2aError, ErrorKind};
use rcrt_breadcrumb::OpError;
use rcrt_breadcrumb::foreign_text::line;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The id of each request of JSON-RPC. Each has a connection, or a stream of HTTP, of its own.
pub(crate) const REQUEST_ID: u8 = 1;

/// Why an agent gave no usable answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RemoteError {
    /// The gate does not let the request out.
    #[error("{0}")]
    Refused(String),
    /// Nothing came back, so the agent may have acted or not.
    #[error("{0}")]
    Network(String),
    #[error("the agent answered with {0}")]
    Status(u16),
    #[error("the agent's answer {0}")]
    Garbage(String),
    #[error("the agent refused: {0}")]
    Agent(A2aError),
}

impl RemoteError {
    /// Whether the agent certainly did not accept the message.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Agent(_)) || matches!(self, Self::Status(status) if *status < 500)
    }

    /// Whether the agent does not have the operation.
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Agent(error) => matches!(error.kind, ErrorKind::MethodNotFound | ErrorKind::UnsupportedOperation),
            Self::Status(status) => matches!(status, 404 | 405 | 501),
            _ => false,
        }
    }
}

/// The result of an operation in an answer, or in an event of a stream.
pub(crate) fn result<T: DeserializeOwned>(answer: Value, is_rpc: bool) -> Result<T, RemoteError> {
    let Value::Object(mut fields) = answer else { return Err(garbage("is not an object")) };
    if let Some(Value::Object(error)) = fields.get("error") {
        let mut error = A2aError::read(error);
        error.message = line(&error.message, 500);
        return Err(RemoteError::Agent(error));
    }
    if is_rpc && fields.get("id") != Some(&json!(REQUEST_ID)) {
        return Err(garbage("is not to this request"));
    }
    let result = if is_rpc { fields.remove("result").unwrap_or_default() } else { Value::Object(fields) };
    T::deserialize(result)
        .map_err(|error| garbage(&format!("is not what A2A describes: {}", line(&error.to_string(), 200))))
}

pub(crate) fn garbage(why: &str) -> RemoteError {
    RemoteError::Garbage(why.to_owned())
}

pub(crate) fn from_gate(error: &OpError) -> RemoteError {
    let message = line(&error.message, 500);
    match error.name.as_str() {
        "PermissionDenied" => RemoteError::Refused(message),
        "ResourceExhausted" => garbage(&format!("is too large: {message}")),
        _ => RemoteError::Network(message),
    }
}
