//! Header fields as tools write and read them, and those that only the gate may set.

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use sandbox::OpError;

use super::type_error;

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

/// A tool's header fields; the forbidden ones are left out, as the fetch standard does.
pub(super) fn read(fields: &[(String, String)]) -> Result<HeaderMap, OpError> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for (name, value) in fields {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| type_error(format!("{name:?} is no header name")))?;
        if is_forbidden(&name) {
            continue;
        }
        let bytes: Option<Vec<u8>> = value.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
        let value = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok()).ok_or_else(|| {
            type_error(format!("the value of the header {name} has characters that no header may have"))
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// An answer's header fields, as Latin-1 text.
pub(super) fn write(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), value.as_bytes().iter().map(|byte| char::from(*byte)).collect())
        })
        .collect()
}

/// What must not follow a redirect to another origin.
pub(super) fn drop_credentials(headers: &mut HeaderMap) {
    for name in [header::AUTHORIZATION, header::COOKIE] {
        headers.remove(name);
    }
}

/// What described a body that a redirect took away.
pub(super) fn drop_body_fields(headers: &mut HeaderMap) {
    for name in [header::CONTENT_ENCODING, header::CONTENT_LANGUAGE, header::CONTENT_LOCATION, header::CONTENT_TYPE] {
        headers.remove(name);
    }
}
