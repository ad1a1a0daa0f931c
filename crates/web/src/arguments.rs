//! The input of a call, read into its struct.

use breadcrumb::ToolFailure;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::failures::invalid;

/// The error names the field, as serde does.
pub(crate) fn read<T: DeserializeOwned>(input: &Value) -> Result<T, ToolFailure> {
    T::deserialize(input).map_err(|error| invalid(format!("the input: {error}")))
}

/// An address of the web. `example.com/page` is taken for `https://example.com/page`, as browsers do.
pub(crate) fn read_url(text: &str) -> Result<Url, ToolFailure> {
    let wrong = |why: &str| {
        let shown: String = text.chars().take(200).collect();
        Err(invalid(format!("url: {shown:?} {why}; write it like https://example.com/page")))
    };
    let text = text.trim();
    let url = match Url::parse(text) {
        Ok(url) if url.has_host() => url,
        // `localhost:8080/x` parses, with a host for its scheme.
        _ if !text.contains("://") => match Url::parse(&format!("https://{text}")) {
            Ok(url) => url,
            Err(_) => return wrong("is no address of the web"),
        },
        _ => return wrong("is no address of the web"),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("is neither http nor https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("holds a user name or a password, which is not sent");
    }
    Ok(url)
}
