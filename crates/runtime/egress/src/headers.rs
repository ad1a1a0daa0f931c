//! Header fields that tools write and read, and those that only the egress gate can set.

use rcrt_breadcrumb::OpError;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::{EgressOptions, type_error};

/// Set by the gate or by the connection, never by a tool.
fn is_forbidden(name: &HeaderName) -> bool {
    const FORBIDDEN: &[HeaderName] = &[
        header::ACCEPT_ENCODING,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::EXPECT,
        header::HOST,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::VIA,
    ];
    FORBIDDEN.contains(name)
        || name.as_str().starts_with("proxy-")
        || matches!(name.as_str(), "keep-alive" | "http2-settings")
}

/// A tool's header fields. Forbidden ones are dropped, as in the fetch standard.
pub(super) fn read(fields: &[(String, String)], options: &EgressOptions) -> Result<HeaderMap, OpError> {
    let bytes = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    check_size("request", fields.len(), bytes, options)?;
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| type_error(format!("{name:?} is not a valid header name")))?;
        if is_forbidden(&name) {
            continue;
        }
        let bytes: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let value = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok()).ok_or_else(|| {
            type_error(format!("the value of the header {name} has characters that are not allowed in a header"))
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Checks that the header fields are within their limits.
pub(super) fn check_answer(headers: &HeaderMap, options: &EgressOptions) -> Result<(), OpError> {
    let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    check_size("response", headers.len(), bytes, options)
}

fn check_size(what: &str, fields: usize, bytes: usize, options: &EgressOptions) -> Result<(), OpError> {
    let (most_fields, most_bytes) = (options.max_header_fields, options.max_header_bytes);
    if fields > most_fields || bytes > most_bytes {
        let message = format!("the {what} has more than {most_fields} header fields or {most_bytes} bytes of them");
        return Err(OpError::new("ResourceExhausted", message));
    }
    Ok(())
}

/// The header fields of a response, as Latin-1 text.
pub(super) fn write(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), value.as_bytes().iter().map(|byte| char::from(*byte)).collect())
        })
        .collect()
}

/// Removes what must not follow a redirect to another origin: everything except the fields that
/// describe the accepted and the sent content. A key can be in a field with any name.
pub(super) fn keep_anonymous_headers(headers: &mut HeaderMap) {
    const KEPT: &[HeaderName] = &[
        header::ACCEPT,
        header::ACCEPT_LANGUAGE,
        header::CACHE_CONTROL,
        header::CONTENT_ENCODING,
        header::CONTENT_LANGUAGE,
        header::CONTENT_TYPE,
        header::IF_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_NONE_MATCH,
        header::IF_RANGE,
        header::IF_UNMODIFIED_SINCE,
        header::RANGE,
        header::USER_AGENT,
    ];
    let gone: Vec<HeaderName> = headers.keys().filter(|name| !KEPT.contains(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

/// Removes the fields that describe a body that a redirect dropped.
pub(super) fn drop_body_fields(headers: &mut HeaderMap) {
    for name in [header::CONTENT_ENCODING, header::CONTENT_LANGUAGE, header::CONTENT_LOCATION, header::CONTENT_TYPE] {
        headers.remove(name);
    }
}
