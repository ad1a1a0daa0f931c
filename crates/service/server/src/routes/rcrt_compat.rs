//! Requests of the original RCRT's clients that this server otherwise refuses, read as that system
//! reads them: only with [`ServerOptions::rcrt_compat`](crate::ServerOptions).
//! docs/moving-from-rcrt.md describes each rule.

use axum::{
    extract::{FromRequest, Request},
    http::Extensions,
};
use rcrt_breadcrumb::{BreadcrumbChanges, MIN_OPAQUE_BYTES, NewBreadcrumb, NewSecret, SecretChanges};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use serde_path_to_error::Segment;

use crate::http::json_body;
use crate::http::problem::Problem;

/// The most unknown fields that are removed from one body.
const MOST_DROPPED: usize = 100;
/// The most characters of a title.
const TITLE: usize = 500;
const UNTITLED: &str = "Untitled";

/// An extension of each request of a server with `rcrt_compat`.
#[derive(Debug, Clone, Copy)]
pub struct RcrtCompat;

pub fn is_on(extensions: &Extensions) -> bool {
    extensions.get::<RcrtCompat>().is_some()
}

/// A body that RCRT's clients send in a different form.
pub trait FromRcrt: DeserializeOwned {
    fn convert(body: &mut Map<String, Value>);
}

/// A JSON body. With `rcrt_compat` it is converted before it is parsed.
pub struct CompatBody<T>(pub T);

impl<S: Send + Sync, T: FromRcrt> FromRequest<S> for CompatBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let is_on = is_on(request.extensions());
        let text = json_body::whole(request).await?;
        if !is_on {
            return json_body::parse(&text).map(Self);
        }
        let mut body = json_body::parse(&text)?;
        T::convert(&mut body);
        without_unknown_fields(Value::Object(body)).map(Self)
    }
}

/// Parses a body of any type as RCRT does: unknown fields are ignored.
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    match json_body::parse(text) {
        Ok(value) => Ok(value),
        Err(_) => without_unknown_fields(Value::Object(json_body::parse(text)?)),
    }
}

fn without_unknown_fields<T: DeserializeOwned>(mut body: Value) -> Result<T, Problem> {
    for _ in 0..MOST_DROPPED {
        let error = match serde_path_to_error::deserialize::<_, T>(&body) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let dropped = unknown_field(&error).is_some_and(|name| drop_field(&mut body, error.path(), &name));
        if !dropped {
            return Err(json_body::field_problem(&error));
        }
    }
    Err(Problem::invalid("", format!("has more than {MOST_DROPPED} unknown fields")))
}

fn unknown_field(error: &serde_path_to_error::Error<serde_json::Error>) -> Option<String> {
    let text = error.inner().to_string();
    let (name, _) = text.strip_prefix("unknown field `")?.split_once('`')?;
    Some(name.to_owned())
}

/// Returns whether the field was found.
fn drop_field(body: &mut Value, path: &serde_path_to_error::Path, name: &str) -> bool {
    let mut steps: Vec<&Segment> = path.iter().collect();
    // The unknown field can be the last step of the path; if so, remove that step.
    if let Some(Segment::Map { key }) = steps.last()
        && key == name
    {
        steps.pop();
    }
    let parent = steps.into_iter().try_fold(body, |value, step| match step {
        Segment::Map { key } => value.get_mut(key),
        Segment::Seq { index } => value.get_mut(index),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    parent.and_then(Value::as_object_mut).is_some_and(|fields| fields.shift_remove(name).is_some())
}

impl FromRcrt for NewBreadcrumb {
    fn convert(body: &mut Map<String, Value>) {
        convert_record(body);
        if is_blank(body.get("title")) {
            let title = body.get("schema_name").filter(|name| !is_blank(Some(name))).cloned();
            body.insert("title".into(), title.unwrap_or_else(|| UNTITLED.into()));
        }
    }
}

impl FromRcrt for BreadcrumbChanges {
    fn convert(body: &mut Map<String, Value>) {
        convert_record(body);
        if is_blank(body.get("title")) {
            body.shift_remove("title");
        }
    }
}

/// The conversions that a new record and an update have in common.
fn convert_record(body: &mut Map<String, Value>) {
    // RCRT treats null as an absent field.
    body.retain(|_, value| !value.is_null());
    if let Some(Value::String(title)) = body.get_mut("title")
        && let Some((end, _)) = title.char_indices().nth(TITLE)
    {
        title.truncate(end);
    }
    for (field, known) in [("visibility", ["public", "team", "private"]), ("sensitivity", ["low", "pii", "secret"])] {
        if !body.get(field).and_then(Value::as_str).is_some_and(|value| known.contains(&value)) {
            body.shift_remove(field);
        }
    }
    if let Some(context) = body.get_mut("context")
        && !context.is_object()
    {
        *context = json!({"value": context.take()});
    }
}

fn is_blank(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| text.trim().is_empty())
}

impl FromRcrt for NewSecret {
    fn convert(body: &mut Map<String, Value>) {
        if is_blank(body.get("scope_type")) {
            body.shift_remove("scope_type");
        }
        open_short_value(body);
    }
}

impl FromRcrt for SecretChanges {
    fn convert(body: &mut Map<String, Value>) {
        open_short_value(body);
    }
}

/// A value that is too short to be found and removed in data for a tool cannot be hidden from
/// tools, so it is readable.
fn open_short_value(body: &mut Map<String, Value>) {
    let is_short = body.get("value").and_then(Value::as_str).is_some_and(|value| value.len() < MIN_OPAQUE_BYTES);
    if is_short && !body.contains_key("readable") {
        body.insert("readable".into(), true.into());
    }
}
