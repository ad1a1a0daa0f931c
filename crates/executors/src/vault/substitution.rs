//! Replaces handles by values, in a request to a host that each secret is bound to.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use breadcrumb::Host;
use reqwest::header::{HeaderName, HeaderValue};
use sandbox::OpError;
use url::Url;

use super::encoding::{in_form, in_json, in_query};
use super::{HeldSecret, Vault, VaultEntry};

/// Where a request goes.
pub(crate) struct Destination<'p> {
    pub host: &'p Host,
    pub port: u16,
    /// Nobody on the way reads it: https, or a host of the operator's own.
    pub is_private: bool,
}

impl Vault {
    /// Refuses a handle where no value is ever put: `what` is the path, the method, a header's name.
    pub(crate) fn refuse_in(&self, what: &str, text: &str, destination: &Destination<'_>) -> Result<(), OpError> {
        let found = self.handles.as_ref().and_then(|handles| handles.first_in_any_case(text.as_bytes()));
        let Some(kept) = found.and_then(|index| self.kept.get(index)) else { return Ok(()) };
        Err(denied(format!(
            "the secret {:?} cannot be sent to {} in {what}; it may stand in a header's value, in the query or in the body",
            kept.secret.name, destination.host
        )))
    }

    /// Whether the value of a header has a handle in it.
    pub(crate) fn stands_in_header(&self, value: &HeaderValue) -> bool {
        basic(value).is_some_and(|inner| self.first_in(&inner).is_some()) || self.first_in(value.as_bytes()).is_some()
    }

    /// The secret whose handle is first in the text.
    pub(crate) fn first_in(&self, text: &[u8]) -> Option<&str> {
        let (index, _) = self.handles.as_ref()?.find(text).next()?;
        self.kept.get(index).map(|kept| kept.secret.name.as_str())
    }

    /// The header's value, filled; `None` where it has no handle.
    pub(crate) fn fill_header(
        &self,
        name: &HeaderName,
        value: &HeaderValue,
        destination: &Destination<'_>,
    ) -> Result<Option<HeaderValue>, OpError> {
        let inner = match basic(value) {
            Some(inner) => self.fill(&inner, destination, as_it_is)?.map(|filled| BASE64_STANDARD.encode(filled)),
            None => None,
        };
        let filled = match inner {
            Some(encoded) => Some(format!("Basic {encoded}").into_bytes()),
            None => self.fill(value.as_bytes(), destination, as_it_is)?,
        };
        let Some(filled) = filled else { return Ok(None) };
        let mut filled = HeaderValue::from_bytes(&filled).map_err(|_| {
            OpError::new(
                "TypeError",
                format!("the secret for the header {name} has characters that no header may have"),
            )
        })?;
        // Kept out of logs, and out of a connection's compression tables.
        filled.set_sensitive(true);
        Ok(Some(filled))
    }

    /// The URL with its query filled; `None` where that has no handle.
    pub(crate) fn fill_query(&self, url: &Url, destination: &Destination<'_>) -> Result<Option<Url>, OpError> {
        let Some(filled) = self.fill(url.query().unwrap_or_default().as_bytes(), destination, in_query)? else {
            return Ok(None);
        };
        let mut url = url.clone();
        url.set_query(Some(&String::from_utf8_lossy(&filled)));
        Ok(Some(url))
    }

    /// The body, filled as its type asks; `None` where it has no handle.
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
            _ => as_it_is,
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
                    "the secret {:?} stands right behind an unfinished escape (% or \\), which would swallow its beginning; \
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

    /// Refuses a redirect's target that an answer has put a value into, where that value must not go.
    pub(crate) fn refuse_carried(&self, target: &Url, destination: &Destination<'_>) -> Result<(), OpError> {
        let host = destination.host.to_string();
        if self.inward.stands_in_name(host.as_bytes()) {
            return Err(denied("a redirect names a host that holds the value of a secret".into()));
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
    /// Whether the value may go there.
    fn admit(&self, destination: &Destination<'_>) -> Result<(), OpError> {
        let HeldSecret { name, hosts, readable, .. } = &self.secret;
        if *readable && hosts.is_empty() {
            return Ok(());
        }
        let host = if breadcrumb::is_web_port(destination.port) {
            destination.host.to_string()
        } else {
            format!("{}:{}", destination.host, destination.port)
        };
        if hosts.is_empty() {
            return Err(denied(format!("the secret {name:?} is bound to no host, and cannot be sent to {host}")));
        }
        if !hosts.iter().any(|entry| entry.admits(destination.host, destination.port)) {
            return Err(denied(format!("the secret {name:?} is not bound to {host}, and cannot be sent there")));
        }
        if !destination.is_private {
            return Err(denied(format!("the secret {name:?} can be sent to {host} over https alone")));
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

fn as_it_is(value: &str) -> String {
    value.to_owned()
}

/// Whether the text ends within an escape, so that what follows is read as part of it: `%`, `%4`, `\`, `\u00`.
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
