//! Parses addresses in the input of a call.

use rcrt_breadcrumb::ToolFailure;
use url::Url;

use crate::failures::invalid;

/// Parses a web address. `example.com/page` becomes `https://example.com/page`, as in browsers.
pub(crate) fn read_url(text: &str) -> Result<Url, ToolFailure> {
    let wrong = |why: &str| {
        let shown: String = text.chars().take(200).collect();
        Err(invalid(format!("url: {shown:?} {why}; write it like https://example.com/page")))
    };
    let text = text.trim();
    let url = match Url::parse(text) {
        Ok(url) if url.has_host() => url,
        // `localhost:8080/x` parses, with the host as its scheme.
        _ if !text.contains("://") => match Url::parse(&format!("https://{text}")) {
            Ok(url) => url,
            Err(_) => return wrong("is not a web address"),
        },
        _ => return wrong("is not a web address"),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("is not an http or https address");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("has a user name or a password, which is not sent");
    }
    Ok(url)
}
