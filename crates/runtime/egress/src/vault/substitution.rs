//! Replaces handles by values, in a request to a host that each secret is bound to.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use rcrt_breadcrumb::{Host, OpError};
use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::encoding::{in_form, in_json, in_query};
use super::{HeldSecret, Vault, VaultEntry};

/// The target of a request.
pub(crate) struct Destination<'p> {
    pub host: &'p Host,
    pub port: u16,
    /// The request cannot be read on the network path: https, or a private host that the operator
    /// allowed.
    pub is_private: bool,
}

impl Vault {
    /// Refuses a handle where values are never filled in. `what` is the path, the method or a
    /// header's name.
    pub(crate) fn refuse_in(&self, what: &str, text: &str, destination: &Destination<'_>) -> Result<(), OpError> {
        let found = self.handles.as_ref().and_then(|handles| handles.first_in_any_case(text.as_bytes()));
        let Some(kept) = found.and_then(|index| self.kept.get(index)) else { return Ok(()) };
        Err(denied(format!(
            "the secret {:?} cannot be sent to {} in {what}; use it in a header's value, in the query or in the body",
            kept.secret.name, destination.host
        )))
    }

    /// Whether the value of a header has a handle in it.
    pub(crate) fn is_in_header(&self, value: &HeaderValue) -> bool {
        basic(value).is_some_and(|inner| self.first_in(&inner).is_some()) || self.first_in(value.as_bytes()).is_some()
    }

    /// The name of the secret whose handle occurs first in the text.
    pub(crate) fn first_in(&self, text: &[u8]) -> Option<&str> {
        let (index, _) = self.handles.as_ref()?.find(text).next()?;
        self.kept.get(index).map(|kept| kept.secret.name.as_str())
    }

    /// The header's value, filled; `None` if it has no handle.
    pub(crate) fn fill_header(
        &self,
        name: &HeaderName,
        value: &HeaderValue,
        destination: &Destination<'_>,
    ) -> Result<Option<HeaderValue>, OpError> {
        let inner = match basic(value) {
            Some(inner) => self.fill(&inner, destination, unchanged)?.map(|filled| BASE64_STANDARD.encode(filled)),
            None => None,
        };
        let filled = match inner {
            Some(encoded) => Some(format!("Basic {encoded}").into_bytes()),
            None => self.fill(value.as_bytes(), destination, unchanged)?,
        };
        let Some(filled) = filled else { return Ok(None) };
        let mut filled = HeaderValue::from_bytes(&filled).map_err(|_| {
            OpError::new(
                "TypeError",
                format!("the secret for the header {name} has characters that are not allowed in a header"),
            )
        })?;
        // Keeps the value out of logs and of HTTP/2 compression tables.
        filled.set_sensitive(true);
        Ok(Some(filled))
    }

    /// The URL with its query filled; `None` if the query has no handle.
    pub(crate) fn fill_query(&self, url: &Url, destination: &Destination<'_>) -> Result<Option<Url>, OpError> {
        let Some(filled) = self.fill(url.query().unwrap_or_default().as_bytes(), destination, in_query)? else {
            return Ok(None);
        };
        let mut url = url.clone();
        url.set_query(Some(&String::from_utf8_lossy(&filled)));
        Ok(Some(url))
    }

    /// The body, filled in the encoding of its content type; `None` if it has no handle.
    pub(crate) fn fill_body(
        &self,
        content_type: Option<&HeaderValue>,
        body: &[u8],
        destination: &Destination<'_>,
    ) -> Result<Option<Vec<u8>>, OpError> {
        let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
        let kind = content_type.as_deref().and_then(|text| text.split(';').next()).unwrap_or_default().trim();
        let encode = match kind {
            "application/x-www-form-urlencoded" => in_form,
            json if json.ends_with("/json") || json.ends_with("+json") => in_json,
            _ => unchanged,
        };
        self.fill(body, destination, encode)
    }

    fn fill(
        &self,
        text: &[u8],
        destination: &Destination<'_>,
        encode: impl Fn(&str) -> String,
    ) -> Result<Option<Vec<u8>>, OpError> {
        let Some(handles) = &self.handles else { return Ok(None) };
        let (mut filled, mut done) = (Vec::new(), 0);
        for (index, range) in handles.find(text) {
            let Some(kept) = self.kept.get(index) else { continue };
            kept.admit(destination)?;
            if is_unfinished(&text[..range.start]) {
                return Err(denied(format!(
                    "the secret {:?} directly follows an unfinished escape (% or \\), which would consume its start; \
                     finish the escape, or write %25 or \\\\ for the character itself",
                    kept.secret.name
                )));
            }
            filled.extend_from_slice(&text[done..range.start]);
            filled.extend(encode(&kept.secret.value).into_bytes());
            done = range.end;
        }
        if done == 0 {
            return Ok(None);
        }
        filled.extend_from_slice(&text[done..]);
        Ok(Some(filled))
    }

    /// Refuses a redirect whose target contains a value that the response inserted, if the value
    /// must not be sent there.
    pub(crate) fn refuse_target_with_value(&self, target: &Url, destination: &Destination<'_>) -> Result<(), OpError> {
        let host = destination.host.to_string();
        if self.inward.is_in_name(host.as_bytes()) {
            return Err(denied("a redirect has a host that contains the value of a secret".into()));
        }
        for name in self.inward.names_in(target.as_str().as_bytes()) {
            if let Some(kept) = self.kept.iter().find(|kept| kept.secret.name == name) {
                kept.admit(destination)?;
            }
        }
        Ok(())
    }
}

impl VaultEntry {
    /// Whether the value can be sent there.
    fn admit(&self, destination: &Destination<'_>) -> Result<(), OpError> {
        let HeldSecret { name, hosts, readable, .. } = &self.secret;
        if *readable && hosts.is_empty() {
            return Ok(());
        }
        let host = if rcrt_breadcrumb::is_web_port(destination.port) {
            destination.host.to_string()
        } else {
            format!("{}:{}", destination.host, destination.port)
        };
        if hosts.is_empty() {
            return Err(denied(format!(
                "the secret {name:?} is not bound to any host, so it cannot be sent to {host}"
            )));
        }
        if !hosts.iter().any(|entry| entry.admits(destination.host, destination.port)) {
            return Err(denied(format!("the secret {name:?} is not bound to {host}, so it cannot be sent there")));
        }
        if !destination.is_private {
            return Err(denied(format!("the secret {name:?} can be sent to {host} only over https")));
        }
        Ok(())
    }
}

/// The content of `Basic <base64>`.
fn basic(value: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, encoded) = value.to_str().ok()?.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    BASE64_STANDARD_NO_PAD.decode(encoded.trim().trim_end_matches('=')).ok()
}

fn unchanged(value: &str) -> String {
    value.to_owned()
}

/// Whether the text ends within an escape, so that the next characters are decoded as part of it:
/// `%`, `%4`, `\`, `\u00`.
fn is_unfinished(text: &[u8]) -> bool {
    let digits = |most: usize| text.iter().rev().take(most).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let ends_with = |end: &[u8], digits: usize| text[..text.len() - digits].ends_with(end);
    let backslashes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    (0..=digits(1)).any(|digits| ends_with(b"%", digits))
        || (0..=digits(3)).any(|digits| ends_with(b"\\u", digits))
        || backslashes % 2 == 1
}

fn denied(message: String) -> OpError {
    OpError::new("PermissionDenied", message)
}
