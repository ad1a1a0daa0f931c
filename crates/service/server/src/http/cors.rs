//! Requests from pages of other origins (CORS, as in the Fetch standard).
//!
//! A browser sends no credentials by itself (no cookie is ever set), so a page can do no more than
//! a program that has the same token. In open mode every caller gets a token. There each origin
//! must be listed, because otherwise any web site could get all rights.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use url::Url;

use crate::ServerError;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
/// The headers that a page can read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Location, Retry-After, X-Request-Id, Idempotency-Replayed, Preference-Applied, WWW-Authenticate, \
     Search-Mode, Search-Fallback, Limit-Applied",
);
/// How long a browser caches a preflight, in seconds: the longest time that any browser allows.
const MAX_AGE: HeaderValue = HeaderValue::from_static("86400");
/// The most bytes of requested header names that are repeated in a preflight response.
const MAX_ASKED: usize = 1024;

/// The origins whose pages can call the server. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedOrigins {
    any: bool,
    listed: Vec<HeaderValue>,
}

impl AllowedOrigins {
    /// Each as a browser writes it, such as `https://app.example.com`, `http://localhost:8082` or
    /// `chrome-extension://abc`; `*` for all.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Result<Self, ServerError> {
        let mut origins = Self::default();
        for text in texts.iter().map(AsRef::as_ref) {
            if text == "*" {
                origins.any = true;
            } else {
                check(text)?;
                let value = HeaderValue::try_from(text).map_err(|_| wrong(text, "https://app.example.com"))?;
                origins.listed.push(value);
            }
        }
        Ok(origins)
    }

    /// Whether pages of no other origin can call the server.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any && self.listed.is_empty()
    }

    pub(crate) fn is_any(&self) -> bool {
        self.any
    }

    pub(crate) fn allows(&self, origin: &HeaderValue) -> bool {
        self.any || self.listed.contains(origin)
    }

    /// The allowed origin for the response. `None`: the browser hides the response from the page.
    fn answer(&self, origin: &HeaderValue) -> Option<HeaderValue> {
        if self.any {
            return Some(HeaderValue::from_static("*"));
        }
        self.allows(origin).then(|| origin.clone())
    }
}

/// A browser compares the text, so a path, a capital letter or the scheme's default port would
/// never match.
fn check(text: &str) -> Result<(), ServerError> {
    let url = Url::parse(text).map_err(|_| wrong(text, "https://app.example.com"))?;
    let right = if matches!(url.scheme(), "http" | "https") {
        url.origin().ascii_serialization()
    } else {
        format!("{}://{}", url.scheme(), url.host_str().unwrap_or("name"))
    };
    if right == text { Ok(()) } else { Err(wrong(text, &right)) }
}

fn wrong(text: &str, right: &str) -> ServerError {
    ServerError::NoOrigin { text: text.chars().take(200).collect(), right: right.to_owned() }
}

/// The middleware for allowed origins: responds to preflights, and marks responses that the page
/// can read.
pub async fn apply(State(origins): State<Arc<AllowedOrigins>>, request: Request, next: Next) -> Response {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return next.run(request).await };
    let Some(allowed) = origins.answer(origin) else { return next.run(request).await };
    let asked = request.headers().get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut answer = if preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    headers.append(header::VARY, HeaderValue::from_name(header::ORIGIN));
    if preflight {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        headers.append(header::VARY, HeaderValue::from_name(header::ACCESS_CONTROL_REQUEST_HEADERS));
        // A wildcard would not include Authorization.
        if let Some(asked) = asked.filter(|asked| asked.len() <= MAX_ASKED) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked);
        }
    } else {
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    answer
}
