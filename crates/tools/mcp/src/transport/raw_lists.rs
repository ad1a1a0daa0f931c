//! Lists of tools as the server sent them. The types of `rmcp` drop unknown fields, and a
//! definition is pinned with all of its fields; and one tool that is not well-formed must not hide
//! the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;

/// Lists that were received and not taken. There is one list at a time on a connection.
const MOST: usize = 4;

/// By the ids of the requests.
#[derive(Debug, Clone, Default)]
pub struct RawLists(Arc<Mutex<BTreeMap<String, RawList>>>);

/// One page of a list.
#[derive(Debug, Clone)]
pub struct RawList {
    pub tools: Vec<Value>,
    pub next: Option<String>,
    pub ttl_ms: Option<u64>,
}

impl RawLists {
    /// Reads a message, and keeps the list that it has.
    pub fn read(&self, text: &[u8]) -> serde_json::Result<ServerJsonRpcMessage> {
        let value: Value = serde_json::from_slice(text)?;
        self.note(&value);
        serde_json::from_value(value)
    }

    /// Keeps the list that a message has.
    pub fn note(&self, message: &Value) {
        if let Some(result) = message.get("result")
            && let Some(tools) = result.get("tools").and_then(Value::as_array)
            && let Some(id) = message.get("id")
        {
            let list = RawList {
                tools: tools.clone(),
                next: result.get("nextCursor").and_then(Value::as_str).map(str::to_owned),
                ttl_ms: result.get("ttlMs").and_then(Value::as_u64),
            };
            let mut kept = self.0.lock();
            kept.insert(key(id), list);
            while kept.len() > MOST {
                kept.pop_first();
            }
        }
    }

    /// The list in the response to this request.
    pub fn take(&self, id: &Value) -> Option<RawList> {
        self.0.lock().remove(&key(id))
    }
}

/// Some servers return a number as a string.
fn key(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
