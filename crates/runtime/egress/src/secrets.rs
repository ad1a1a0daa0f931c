//! A call's secrets in the egress gate: replaces handles by values in the request, and redacts
//! values in the response.

use std::borrow::Cow;

use bytes::Bytes;
use rcrt_breadcrumb::{FetchResponse, OpError};
use reqwest::Method;
use reqwest::header::{self, HeaderMap, HeaderName};
use url::Url;

use super::type_error;
use crate::Vault;
use crate::vault::Destination;

/// A request as it is sent.
pub(super) struct Filled {
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
}

/// Removes headers that ask for a range: part of a value in a partial response would not be
/// redacted.
pub(super) fn request_plain_body(vault: &Vault, headers: &mut HeaderMap) {
    if vault.hides() {
        headers.remove(header::RANGE);
        headers.remove(header::IF_RANGE);
    }
}

/// Replaces handles by values, for the hosts that each secret is bound to.
pub(super) fn fill(
    vault: &Vault,
    destination: &Destination<'_>,
    method: &Method,
    url: &Url,
    headers: &HeaderMap,
    body: Option<Bytes>,
) -> Result<Filled, OpError> {
    vault.refuse_in("the method", method.as_str(), destination)?;
    vault.refuse_in("the host", url.host_str().unwrap_or_default(), destination)?;
    vault.refuse_in("the path", url.path(), destination)?;
    let mut filled = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        vault.refuse_in("a header's name", name.as_str(), destination)?;
        filled.append(name.clone(), vault.fill_header(name, value, destination)?.unwrap_or_else(|| value.clone()));
    }
    let body = match body {
        Some(bytes) => {
            let with_values = vault.fill_body(headers.get(header::CONTENT_TYPE), &bytes, destination)?;
            Some(with_values.map_or(bytes, Bytes::from))
        }
        None => None,
    };
    let url = vault.fill_query(url, destination)?.unwrap_or_else(|| url.clone());
    Ok(Filled { url, headers: filled, body })
}

/// Removes what a redirect to another origin must not carry. This applies even if the secret is
/// bound to that origin, because the tool did not address it.
pub(super) fn keep_from_another_origin(
    vault: &Vault,
    target: &Url,
    headers: &mut HeaderMap,
    body: Option<&Bytes>,
) -> Result<(), OpError> {
    let filled: Vec<HeaderName> =
        headers.iter().filter(|(_, value)| vault.is_in_header(value)).map(|(name, _)| name.clone()).collect();
    for name in filled {
        headers.remove(name);
    }
    if let Some(name) = body.and_then(|body| vault.first_in(body)) {
        let host = target.host_str().unwrap_or_default();
        let message = format!("a redirect would send the secret {name:?}, which is in the body, to {host}");
        return Err(OpError::new("PermissionDenied", message));
    }
    Ok(())
}

/// Refuses a response that cannot be searched for secrets, if the call has values that its tool
/// must not see.
pub(super) fn refuse_unreadable(vault: &Vault, headers: &HeaderMap, is_encoded: bool) -> Result<(), OpError> {
    let is_wrapped = headers
        .get_all(header::TRANSFER_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    if vault.hides() && (is_encoded || is_wrapped) {
        return Err(type_error("the response has an encoding that the gate cannot decode; it accepts gzip"));
    }
    Ok(())
}

/// Fields that describe the body before the redaction.
const OF_THE_BODY: [&str; 6] =
    ["content-length", "content-range", "content-md5", "content-digest", "repr-digest", "digest"];

/// Redacts the values in a response.
pub(super) fn clear(vault: &Vault, mut answer: FetchResponse) -> FetchResponse {
    if !vault.hides() {
        return answer;
    }
    let redaction = vault.inward();
    answer.headers.retain(|(name, _)| !OF_THE_BODY.contains(&name.as_str()) && !redaction.is_in_name(name.as_bytes()));
    for (_, value) in &mut answer.headers {
        let latin1: Vec<u8> = value.chars().filter_map(|c| u8::try_from(u32::from(c)).ok()).collect();
        if let Cow::Owned(cleared) = redaction.bytes(&latin1) {
            *value = cleared.into_iter().map(char::from).collect();
        }
    }
    if let Cow::Owned(cleared) = redaction.text(&answer.status_text) {
        answer.status_text = cleared;
    }
    if let Cow::Owned(cleared) = redaction.text(&answer.url) {
        answer.url = Url::parse(&cleared).map_or(cleared, String::from);
    }
    answer.body = redaction.stream(answer.body);
    answer
}
