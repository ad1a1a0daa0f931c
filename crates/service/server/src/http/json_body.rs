//! A request's JSON body, limited in size and time. A refusal names the position and the field that
//! are invalid.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use rcrt_breadcrumb::{MAX_RECORD_BYTES, Violation, Violations, check_numbers, type_violation};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::http::problem::Problem;
use crate::routes::rcrt_compat;

/// The most bytes of a body: the largest record, and room for the fields around its context.
pub const MAX_BODY_BYTES: usize = MAX_RECORD_BYTES + 1024 * 1024;

/// The most bytes of a body that this server accepts. An extension of each request.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimit(pub usize);

/// The most bytes that are reserved for a body before they have arrived.
const MAX_RESERVED: usize = 1024 * 1024 + 64 * 1024;

/// How long a body may take to arrive.
pub const BODY_TIME: Duration = Duration::from_mins(1);

/// A body read as JSON.
pub struct JsonBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        RawBody::from_request(request, state).await?.parse().map(Self)
    }
}

/// A JSON body that can be left out, with its media type: it is then `T`'s default.
pub struct OptionalBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for OptionalBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let (is_rcrt, media_type) = (rcrt_compat::is_on(request.extensions()), check_media_type(request.headers()));
        let text = bytes(request).await?;
        if text.is_empty() {
            return Ok(Self(T::default()));
        }
        media_type?;
        RawBody { text, is_rcrt }.parse().map(Self)
    }
}

/// A JSON body that is not parsed yet, for a handler that must first know what it is.
pub struct RawBody {
    text: Bytes,
    is_rcrt: bool,
}

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Problem> {
        let is_rcrt = rcrt_compat::is_on(request.extensions());
        Ok(Self { text: whole(request).await?, is_rcrt })
    }
}

impl RawBody {
    /// With `rcrt_compat`, unknown fields are refused too: for bodies that RCRT does not have.
    pub fn parse_strictly<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        parse(&self.text)
    }

    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        if self.is_rcrt { rcrt_compat::parse(&self.text) } else { parse(&self.text) }
    }
}

/// Returns the body's bytes if its media type is JSON and it is not too large.
pub async fn whole(request: Request) -> Result<Bytes, Problem> {
    check_media_type(request.headers())?;
    bytes(request).await
}

async fn bytes(request: Request) -> Result<Bytes, Problem> {
    let most = request.extensions().get::<BodyLimit>().map_or(MAX_BODY_BYTES, |limit| limit.0);
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if declared.is_some_and(|bytes: usize| bytes > most) {
        return Err(Problem::too_large(most));
    }
    tokio::time::timeout(BODY_TIME, read(request.into_body(), declared, most)).await.map_err(|_| Problem::timeout())?
}

async fn read(body: Body, declared: Option<usize>, most: usize) -> Result<Bytes, Problem> {
    let mut body = body.into_data_stream();
    // Most bodies arrive in one part, which is returned without a copy.
    let (mut first, mut read) = (Bytes::new(), BytesMut::new());
    while let Some(part) = body.next().await {
        let part = part.map_err(|_| Problem::invalid("", "the body ended before it was complete"))?;
        if first.len() + read.len() + part.len() > most {
            return Err(Problem::too_large(most));
        }
        if first.is_empty() && read.is_empty() {
            first = part;
        } else {
            if read.is_empty() {
                read.reserve(declared.unwrap_or_default().min(MAX_RESERVED));
            }
            read.extend_from_slice(&std::mem::take(&mut first));
            read.extend_from_slice(&part);
        }
    }
    Ok(if read.is_empty() { first } else { read.freeze() })
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(coding) = headers.get(header::CONTENT_ENCODING)
        && coding != "identity"
    {
        return Err(Problem::unsupported_media_type("the body must not be compressed (Content-Encoding)"));
    }
    if headers.get_all(header::CONTENT_TYPE).iter().nth(1).is_some() {
        return Err(Problem::unsupported_media_type("the body must be application/json; Content-Type is repeated"));
    }
    let given = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let essence = given.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(());
    }
    let seen = given.map_or_else(|| "none is given".to_owned(), |given| format!("{given:.100} is given"));
    Err(Problem::unsupported_media_type(format!("the body must be application/json; {seen}")))
}

/// Reads exactly one JSON object. (Serde would also accept an array as the fields of an object.)
pub fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Problem> {
    if text.trim_ascii_start().first() != Some(&b'{') {
        serde_json::from_slice::<IgnoredAny>(text).map_err(|error| problem("", &error))?;
        return Err(Problem::invalid("", "the body must be a JSON object"));
    }
    // Tracking the path costs as much as reading itself, so it is done only after an error.
    if let Ok(value) = serde_json::from_slice(text) {
        check_numbers(text).map_err(|violation| Violations(vec![violation]))?;
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| field_problem(&error))?;
    reader.end().map_err(|error| problem("", &error))?;
    Ok(value)
}

/// What is wrong, with the path of the invalid field.
pub fn field_problem(error: &serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let field = error.path().to_string();
    problem(if field == "." { "" } else { &field }, error.inner())
}

fn problem(path: &str, error: &serde_json::Error) -> Problem {
    let full = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = full.strip_suffix(&position).unwrap_or(&full);
    if !error.is_data() {
        return Problem::malformed_json(format!("the body is not valid JSON: {full}"), error.line(), error.column());
    }
    Violations(vec![type_violation(path, message)]).into()
}

/// Reads one JSON object that is not a body. An error is a field and a message.
pub fn read_object<T: DeserializeOwned>(text: &[u8]) -> Result<T, (String, String)> {
    if text.trim_ascii_start().first() != Some(&b'{') {
        return Err((String::new(), "must be a JSON object".into()));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let full = error.inner().to_string();
        let message = full.split(" at line ").next().unwrap_or(&full);
        let Violation { field, message } = type_violation(if path == "." { "" } else { &path }, message);
        (field, message)
    })?;
    check_numbers(text).map_err(|violation| (violation.field, violation.message))?;
    reader.end().map_err(|_| (String::new(), "must be one JSON object, with nothing after it".to_owned()))?;
    Ok(value)
}
