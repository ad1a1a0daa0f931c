//! The messages and errors of the protocol A2A 1.0 as JSON, for the server (crate `a2a_server`) and
//! the client (crate `a2a`).
//!
//! This crate does no I/O and deliberately knows nothing of tools and calls. Unknown fields are
//! ignored, as the protocol requires. Fields of messages are also accepted by the names of the
//! protocol's definition (`message_id`), as ProtoJSON requires. Texts are as their sender wrote
//! them: whoever shows them bounds them.
//!
//! Begin with `task.rs` (tasks and the updates of a stream) and `error.rs` (the one place where
//! errors get their codes).
//!
//! # Example
//! ```
//! use rcrt_a2a_types::{Message, Role, TaskState};
//! use serde_json::json;
//!
//! let message: Message = serde_json::from_value(json!({
//!     "messageId": "m-1",
//!     "role": "ROLE_USER",
//!     "parts": [{"text": "What is 6 * 7?"}],
//! }))?;
//! assert_eq!(message.role, Role::User);
//! assert_eq!(message.parts[0].text.as_deref(), Some("What is 6 * 7?"));
//!
//! let state: TaskState = serde_json::from_value(json!("TASK_STATE_COMPLETED"))?;
//! assert!(state.is_terminal());
//! # Ok::<(), serde_json::Error>(())
//! ```

mod error;
mod message;
mod task;

pub use error::{A2aError, ErrorKind};
pub use message::{Message, Part, PartContent, Role};
pub use task::{Artifact, ArtifactUpdate, Reply, StatusUpdate, StreamResponse, Task, TaskState, TaskStatus};

/// The protocol's version, as in the header [`VERSION_HEADER`] and in cards.
pub const VERSION: &str = "1.0";
/// The request header with the protocol's version.
pub const VERSION_HEADER: &str = "a2a-version";
/// The header field of a push notification with the token of its configuration.
pub const TOKEN_HEADER: &str = "x-a2a-notification-token";
/// The media type of the binding HTTP+JSON.
pub const MEDIA_TYPE: &str = "application/a2a+json";
/// The path of an agent's card.
pub const CARD_PATH: &str = "/.well-known/agent-card.json";
/// The bindings of this crate's users, as cards name them.
pub const JSON_RPC: &str = "JSONRPC";
pub const HTTP_JSON: &str = "HTTP+JSON";

/// The methods of the binding JSON-RPC.
pub mod methods {
    pub const SEND: &str = "SendMessage";
    pub const SEND_STREAMING: &str = "SendStreamingMessage";
    pub const GET: &str = "GetTask";
    pub const LIST: &str = "ListTasks";
    pub const CANCEL: &str = "CancelTask";
    pub const SUBSCRIBE: &str = "SubscribeToTask";
    pub const CREATE_PUSH: &str = "CreateTaskPushNotificationConfig";
    pub const GET_PUSH: &str = "GetTaskPushNotificationConfig";
    pub const LIST_PUSH: &str = "ListTaskPushNotificationConfigs";
    pub const DELETE_PUSH: &str = "DeleteTaskPushNotificationConfig";
    pub const EXTENDED_CARD: &str = "GetExtendedAgentCard";
}

/// Whether a version is one that this crate speaks: 1.0, whatever the patch level.
pub fn is_supported_version(version: &str) -> bool {
    version == "1"
        || version == VERSION
        || version.strip_prefix("1.0.").is_some_and(|patch| patch.parse::<u32>().is_ok())
}
