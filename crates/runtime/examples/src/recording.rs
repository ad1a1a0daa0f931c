//! Makes the `http`, `calls` and `breadcrumbs` of an example from the requests, calls and records
//! of a real run.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use rcrt_breadcrumb::{
    BodyStream, ExampleRecord, ExpectedRequest, FetchRequest, FetchResponse, GivenResponse, HttpExchange, OpError,
    StatedCall,
};
use rcrt_egress::Vault;
use rcrt_executors::CallHostOps;
use rcrt_sandbox::{ApiCall, HostOps};
use serde_json::Value;

use crate::network::MAX_BODY;
use crate::update::exact;
use crate::world::example_secret;

/// The headers of a response that a recorded example keeps. Others differ from run to run, name
/// the connection, or can hold what identifies the caller.
const KEPT_HEADERS: [&str; 7] =
    ["content-type", "content-language", "etag", "last-modified", "link", "location", "retry-after"];

/// Sends a request, and returns the exchange with the answer for the tool. An error means that the
/// request cannot be recorded.
pub(crate) async fn fetch(
    ops: &CallHostOps,
    vault: &Vault,
    request: FetchRequest,
    body: Option<BodyStream>,
) -> Result<(HttpExchange, Result<FetchResponse, OpError>), OpError> {
    let sent = match body {
        Some(stream) => Some(whole(stream, "request").await?),
        None => None,
    };
    let expected = ExpectedRequest {
        method: request.method.clone(),
        url: as_example(vault, &request.url),
        headers: BTreeMap::new(),
        body: match &sent {
            Some(bytes) => Some(exact(&recorded_body(vault, bytes, "request")?)),
            None => None,
        },
    };
    let stream = sent.map(once);
    let answer = match ops.fetch(request, stream).await {
        Ok(answer) => answer,
        Err(error) => {
            let given = GivenResponse { error: Some(as_example(vault, &error.message)), ..GivenResponse::default() };
            return Ok((HttpExchange { request: expected, response: given }, Err(error)));
        }
    };
    let bytes = whole(answer.body, "response").await?;
    let kept = answer.headers.iter().filter(|(name, _)| KEPT_HEADERS.contains(&name.as_str()));
    let given = GivenResponse {
        status: answer.status,
        headers: kept.map(|(name, value)| (name.clone(), as_example(vault, value))).collect(),
        body: recorded_body(vault, &bytes, "response")?,
        error: None,
    };
    let exchange = HttpExchange { request: expected, response: given };
    Ok((exchange, Ok(FetchResponse { body: once(bytes), ..answer })))
}

fn once(bytes: Bytes) -> BodyStream {
    futures::stream::iter((!bytes.is_empty()).then_some(Ok(bytes))).boxed()
}

async fn whole(mut stream: BodyStream, what: &str) -> Result<Bytes, OpError> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = stream.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > MAX_BODY {
            let message = format!("a {what}'s body above {MAX_BODY} bytes cannot be recorded");
            return Err(OpError::new("ResourceExhausted", message));
        }
    }
    Ok(bytes.freeze())
}

/// JSON as JSON, so that a person can read and edit it; anything else as text.
fn recorded_body(vault: &Vault, bytes: &[u8], what: &str) -> Result<Value, OpError> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        let message = format!("a {what}'s body that is not UTF-8 text cannot be recorded");
        return Err(OpError::new("InvalidArguments", message));
    };
    let text = as_example(vault, text);
    Ok(match serde_json::from_str(&text) {
        // A text would be sent without its quotes, and null as nothing.
        Ok(json @ (Value::Object(_) | Value::Array(_))) => json,
        _ if text.is_empty() => Value::Null,
        _ => text.into(),
    })
}

/// A call of another tool, with its result as the runner returned it.
pub(crate) fn call(vault: &Vault, tool: String, mut input: Value, result: &Value) -> StatedCall {
    let (mut output, mut failure) = (result["output"].clone(), result["failure"].clone());
    for value in [&mut input, &mut output, &mut failure] {
        json_as_example(vault, value);
    }
    StatedCall { tool, input: Some(exact(&input)), output, error: serde_json::from_value(failure).ok() }
}

/// The most records of one example.
const MAX_RECORDS: usize = 100;

/// The records that a tool found, each as it was at first.
#[derive(Default)]
pub(crate) struct Found {
    records: Vec<ExampleRecord>,
    /// The ids of these and of those that the tool created.
    known: BTreeSet<String>,
}

impl Found {
    pub fn is_known(&self, id: &str) -> bool {
        self.known.contains(id) || self.records.len() >= MAX_RECORDS
    }

    /// The answer to `createBreadcrumb`.
    pub fn created(&mut self, answer: &Value) {
        self.known.extend(answer["id"].as_str().map(str::to_owned));
    }

    /// The answer to `getBreadcrumb`. Fields that an example does not state are left out.
    pub fn add(&mut self, mut answer: Value) {
        const FIELDS: [&str; 7] = ["id", "version", "title", "schema_name", "tags", "context", "updated_at"];
        if let Value::Object(fields) = &mut answer {
            fields.retain(|name, _| FIELDS.contains(&name.as_str()));
        }
        self.created(&answer);
        self.records.extend(serde_json::from_value::<ExampleRecord>(answer).ok());
    }

    /// The records with the secrets as an example has them.
    pub fn into_records(self, vault: &Vault) -> Vec<ExampleRecord> {
        let cleared = |record: ExampleRecord| {
            let mut context = Value::Object(record.context);
            json_as_example(vault, &mut context);
            let context = if let Value::Object(fields) = context { fields } else { serde_json::Map::new() };
            ExampleRecord { title: as_example(vault, &record.title), context, ..record }
        };
        self.records.into_iter().map(cleared).collect()
    }
}

/// The id of the record that a call names.
pub(crate) fn changed_or_read(call: &ApiCall) -> Vec<String> {
    match call {
        ApiCall::GetBreadcrumb { id } | ApiCall::UpdateBreadcrumb { id, .. } | ApiCall::DeleteBreadcrumb { id } => {
            vec![id.clone()]
        }
        _ => Vec::new(),
    }
}

/// The ids of the records in the answer to a search.
pub(crate) fn listed(answer: &Value) -> Vec<String> {
    let items = answer.as_array().into_iter().flatten();
    items.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect()
}

fn json_as_example(vault: &Vault, value: &mut Value) {
    match value {
        Value::String(text) => *text = as_example(vault, text),
        Value::Array(items) => {
            for item in items {
                json_as_example(vault, item);
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                json_as_example(vault, field);
            }
        }
        _ => {}
    }
}

/// The text with the value and the handle of each secret replaced by its value in an example.
fn as_example(vault: &Vault, text: &str) -> String {
    let mut text = text.to_owned();
    for (name, shown) in vault.shown().into_iter().filter(|(_, shown)| !shown.is_empty()) {
        text = text.replace(&shown, &example_secret(&name));
    }
    vault.cleared(&text).into_owned()
}
