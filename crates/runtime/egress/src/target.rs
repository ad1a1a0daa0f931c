//! The target of a request: the URL in its canonical form, and the URL of a redirect.

use rcrt_breadcrumb::{Host, OpError};
use reqwest::header::{self, HeaderMap};
use url::Url;

use super::type_error;

/// Maximum bytes of a URL. Services refuse longer ones.
const MAX_URL: usize = 16 * 1024;

pub(super) fn read_url(text: &str) -> Result<Url, OpError> {
    if text.len() > MAX_URL {
        return Err(type_error(format!("the URL is longer than {MAX_URL} bytes")));
    }
    let url = Url::parse(text).map_err(|error| type_error(format!("{text:?} is not an absolute URL: {error}")))?;
    canonical(url)
}

/// The URL with its host in the one spelling that is checked, resolved and connected to.
fn canonical(mut url: Url) -> Result<Url, OpError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(type_error(format!("the scheme {:?} is not supported; use http or https", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(type_error("a URL with a user name or password is not supported; use the Authorization header"));
    }
    if url.port() == Some(0) {
        return Err(type_error("port 0 is not a valid port"));
    }
    let host = Host::of(&url).ok_or_else(|| type_error("the URL's host is not a valid host name"))?;
    url.set_host(Some(&host.to_string())).map_err(|error| type_error(format!("the URL's host: {error}")))?;
    url.set_fragment(None);
    Ok(url)
}

/// The URL of a redirect, if the response has one. It is parsed strictly: a location that two
/// programs could parse differently is refused.
pub(super) fn redirect_target(headers: &HeaderMap, from: &Url) -> Result<Option<Url>, OpError> {
    let mut locations = headers.get_all(header::LOCATION).iter();
    let Some(location) = locations.next() else {
        return Ok(None);
    };
    if locations.any(|other| other != location) {
        return Err(type_error("the redirect has more than one location"));
    }
    let location = std::str::from_utf8(location.as_bytes())
        .map_err(|_| type_error("the redirect's location is not valid text"))?;
    if location.len() > MAX_URL || location.contains(|c: char| c.is_control() || c == '\\') {
        return Err(type_error("the redirect's location is too long, or has characters that are not allowed in a URL"));
    }
    let target = from.join(location).map_err(|error| type_error(format!("the redirect to {location:?}: {error}")))?;
    let target =
        canonical(target).map_err(|error| type_error(format!("the redirect is refused: {}", error.message)))?;
    if from.scheme() == "https" && target.scheme() == "http" {
        return Err(type_error("the redirect leads from https to http, where others can read it"));
    }
    Ok(Some(target))
}
