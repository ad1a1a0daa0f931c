//! The URL by which clients reach a server behind a proxy, with the path that the proxy removes.
//! The links in responses begin with it.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::Response,
};
use serde_json::json;

use crate::ServerError;
use crate::http::problem::{DOCS_LIST_PATHS, ProblemDocument};
use crate::openapi;
use crate::routes::invoke::Accepted;

/// Without a slash at the end: `https://tools.example.com` or `https://example.com/rcrt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// An `http` or `https` URL, without a user, a query and a fragment.
    pub fn new(text: &str) -> Result<Self, ServerError> {
        let base = text.trim_end_matches('/');
        let rest = base.strip_prefix("https://").or_else(|| base.strip_prefix("http://")).unwrap_or_default();
        let host = rest.split('/').next().unwrap_or_default();
        let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\\"<>".contains(&byte));
        if host.is_empty() || host.starts_with(':') || !is_plain {
            return Err(ServerError::NoPublicUrl { text: text.chars().take(200).collect() });
        }
        Ok(Self(base.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The host, and the port if the URL has one.
    pub(crate) fn authority(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// The OpenAPI document with this server in it.
    fn description(&self) -> String {
        let mut document = openapi::value();
        document["servers"] = json!([{"url": self.0}]);
        document.to_string()
    }
}

/// What the middleware needs for each response.
pub struct PublicLinks {
    url: PublicUrl,
    description: String,
}

impl PublicLinks {
    pub fn new(url: PublicUrl) -> Arc<Self> {
        let description = url.description();
        Arc::new(Self { url, description })
    }
}

/// The middleware that makes the links of a response public: `Location`, `cancel` of a 202, the
/// `type` of a problem document, and the server of the OpenAPI document.
pub async fn apply(State(links): State<Arc<PublicLinks>>, request: Request, next: Next) -> Response {
    let is_description = request.uri().path() == "/openapi.json";
    let mut response = next.run(request).await;
    let base = links.url.as_str();
    let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    // A relative one is right already.
    if let Some(path) = location.filter(|path| path.starts_with('/'))
        && let Ok(public) = HeaderValue::try_from(format!("{base}{path}"))
    {
        response.headers_mut().insert(header::LOCATION, public);
    }
    if let Some(mut document) = response.extensions_mut().remove::<ProblemDocument>() {
        document.kind = format!("{base}{}", document.kind);
        if let Some(text) = document.detail.strip_suffix(DOCS_LIST_PATHS) {
            document.detail = format!("{text}{base}{DOCS_LIST_PATHS}");
        }
        if let Ok(body) = serde_json::to_vec(&document) {
            replace_body(&mut response, body);
        }
    } else if let Some(mut accepted) = response.extensions_mut().remove::<Accepted>() {
        accepted.cancel = format!("{base}{}", accepted.cancel);
        if let Ok(body) = serde_json::to_vec(&accepted) {
            replace_body(&mut response, body);
        }
    } else if is_description && response.status().is_success() {
        replace_body(&mut response, links.description.clone());
    }
    response
}

fn replace_body(response: &mut Response, body: impl Into<Body>) {
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = body.into();
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::PublicUrl;

    #[test]
    fn a_public_url_has_a_host_and_maybe_a_path() {
        for (text, base) in [
            ("https://tools.example.com", "https://tools.example.com"),
            ("https://example.com/rcrt/", "https://example.com/rcrt"),
            ("http://10.0.0.5:8080/a/b", "http://10.0.0.5:8080/a/b"),
        ] {
            assert_eq!(PublicUrl::new(text).unwrap().as_str(), base);
        }
        for text in [
            "",
            "/rcrt",
            "example.com",
            "ftp://example.com",
            "https://",
            "https:///rcrt",
            "https://:80/",
            "https://user@example.com",
            "https://example.com/?a=1",
            "https://example.com/#a",
            "https://exa mple.com",
        ] {
            assert!(PublicUrl::new(text).is_err(), "{text}");
        }
    }
}
