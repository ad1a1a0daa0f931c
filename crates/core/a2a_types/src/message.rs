//! Messages and their parts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who wrote a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    #[serde(rename = "ROLE_USER")]
    User,
    #[serde(rename = "ROLE_AGENT")]
    Agent,
    #[default]
    #[serde(rename = "ROLE_UNSPECIFIED", other)]
    Unspecified,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Message {
    /// Chosen by the sender.
    #[serde(alias = "message_id")]
    pub message_id: String,
    #[serde(alias = "context_id", skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    #[serde(alias = "task_id", skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    pub role: Role,
    pub parts: Vec<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Vec<String>>,
    #[serde(alias = "reference_task_ids", skip_serializing_if = "Option::is_none")]
    pub reference_task_ids: Option<Vec<String>>,
}

/// A part of a message or an artifact. Exactly one of `text`, `raw`, `url` and `data` is set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "any_value")]
    pub data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    #[serde(alias = "media_type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// What a part contains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PartContent<'p> {
    Text(&'p str),
    /// Bytes in base64.
    Raw(&'p str),
    Url(&'p str),
    Data(&'p Value),
}

/// `"data": null` is a part with the value null, not a part without data.
fn any_value<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(reader).map(Some)
}

impl Part {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    pub fn data(data: Value) -> Self {
        Self { data: Some(data), ..Self::default() }
    }

    /// The one content; `None` if there is none, or more than one.
    pub fn content(&self) -> Option<PartContent<'_>> {
        match (&self.text, &self.raw, &self.url, &self.data) {
            (Some(text), None, None, None) => Some(PartContent::Text(text)),
            (None, Some(raw), None, None) => Some(PartContent::Raw(raw)),
            (None, None, Some(url), None) => Some(PartContent::Url(url)),
            (None, None, None, Some(data)) => Some(PartContent::Data(data)),
            _ => None,
        }
    }
}

impl Message {
    /// The message's own entry, if it has this key with a text.
    pub fn metadata_text(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref()?.get(key)?.as_str().filter(|text| !text.is_empty())
    }
}
