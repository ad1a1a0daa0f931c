//! The parameters of the operations. Unknown fields are ignored, as the protocol requires. Each
//! name is also accepted as the protocol's definition has it (`context_id`), as ProtoJSON requires.

use std::fmt;

use rcrt_a2a_types::{A2aError, Message};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The most tasks in one page.
pub(crate) const MAX_PAGE: u32 = 100;
const DEFAULT_PAGE: u32 = 50;

/// Of `SendMessage` and `SendStreamingMessage`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Send {
    pub message: Message,
    pub configuration: Option<Configuration>,
    pub metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Configuration {
    #[serde(alias = "accepted_output_modes")]
    pub accepted_output_modes: Option<Vec<String>>,
    #[serde(alias = "history_length")]
    pub history_length: Option<i64>,
    #[serde(alias = "return_immediately")]
    pub return_immediately: Option<bool>,
    /// Its `taskId` is ignored, because the task does not exist yet.
    #[serde(alias = "task_push_notification_config")]
    pub task_push_notification_config: Option<PushConfig>,
}

/// Of `GetTask`, and of every operation that names one task.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Get {
    pub id: String,
    #[serde(alias = "history_length")]
    pub history_length: Option<i64>,
}

/// Of `ListTasks`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct List {
    #[serde(alias = "context_id")]
    pub context_id: Option<String>,
    /// The name of a state.
    pub status: Option<String>,
    /// 1 to 100; 50 when absent.
    #[serde(alias = "page_size")]
    pub page_size: Option<i64>,
    #[serde(alias = "page_token")]
    pub page_token: Option<String>,
    #[serde(alias = "history_length")]
    pub history_length: Option<i64>,
    /// RFC 3339.
    #[serde(alias = "status_timestamp_after")]
    pub status_timestamp_after: Option<String>,
    #[serde(alias = "include_artifacts")]
    pub include_artifacts: Option<bool>,
}

/// Where the updates of a task are posted.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushConfig {
    /// Its name among those of the task. The server makes one for a configuration without.
    pub id: Option<String>,
    #[serde(alias = "task_id")]
    pub task_id: String,
    pub url: String,
    /// Sent with each notification, so that the receiver knows where it comes from.
    pub token: Option<String>,
    pub authentication: Option<Authentication>,
}

/// The `Authorization` of each notification.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct Authentication {
    pub scheme: String,
    pub credentials: Option<String>,
}

/// Of the operations that name one configuration, or all of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PushName {
    #[serde(alias = "task_id")]
    pub task_id: String,
    pub id: String,
}

/// Without the token and the credentials.
impl fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConfig").field("id", &self.id).field("url", &self.url).finish_non_exhaustive()
    }
}

impl Configuration {
    pub(crate) fn history(&self) -> Result<bool, A2aError> {
        wants_history("configuration.historyLength", self.history_length)
    }
}

impl Get {
    pub(crate) fn history(&self) -> Result<bool, A2aError> {
        wants_history("historyLength", self.history_length)
    }
}

impl List {
    /// Lists leave the history out unless it is asked for.
    pub(crate) fn history(&self) -> Result<bool, A2aError> {
        Ok(self.history_length.is_some() && wants_history("historyLength", self.history_length)?)
    }

    pub(crate) fn page_size(&self) -> Result<u32, A2aError> {
        match self.page_size {
            None => Ok(DEFAULT_PAGE),
            Some(size) => u32::try_from(size)
                .ok()
                .filter(|size| (1..=MAX_PAGE).contains(size))
                .ok_or_else(|| A2aError::invalid("pageSize", format!("is {size}; must be from 1 to {MAX_PAGE}"))),
        }
    }
}

/// A task has one message at most: 0 leaves it out.
fn wants_history(field: &str, length: Option<i64>) -> Result<bool, A2aError> {
    match length {
        Some(length) if length < 0 => Err(A2aError::invalid(field, format!("is {length}; must be 0 or more"))),
        length => Ok(length != Some(0)),
    }
}

/// Reads parameters, and names the field that is invalid.
pub(crate) fn read<T: DeserializeOwned>(params: Value) -> Result<T, A2aError> {
    T::deserialize(params).map_err(|error| {
        // It can quote a value of any length.
        let why: String = error.to_string().chars().take(300).collect();
        A2aError::invalid("params", why)
    })
}

/// A text of the protocol: an empty one is an absent one.
pub(crate) fn present(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
