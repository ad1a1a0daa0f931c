//! What a fetch's span contains: where it went, and never its content.

use opentelemetry::trace::{SpanKind, TraceContextExt};
use opentelemetry::{Context, KeyValue};
use sandbox::{FetchRequest, FetchResponse, OpError};
use url::Url;

use crate::trace;

/// Other methods are not recorded: a tool can invent any.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

pub fn attributes(request: &FetchRequest) -> Vec<KeyValue> {
    let mut attributes = vec![KeyValue::new("http.request.method", method(request))];
    if let Ok(url) = Url::parse(&request.url) {
        attributes.push(KeyValue::new("url.scheme", url.scheme().to_owned()));
        if let Some(host) = url.host_str() {
            attributes.push(KeyValue::new("server.address", host.to_owned()));
        }
        if let Some(port) = url.port_or_known_default() {
            attributes.push(KeyValue::new("server.port", i64::from(port)));
        }
    }
    attributes
}

pub fn method(request: &FetchRequest) -> &'static str {
    known(&request.method)
}

pub fn known(method: &str) -> &'static str {
    METHODS.into_iter().find(|known| *known == method).unwrap_or("_OTHER")
}

/// As a client span of the call that asks.
pub async fn within(
    attributes: Vec<KeyValue>,
    method: &'static str,
    fetch: impl Future<Output = Result<FetchResponse, OpError>>,
) -> Result<FetchResponse, OpError> {
    let told = async {
        let response = fetch.await?;
        let status = i64::from(response.status);
        Context::current().span().set_attribute(KeyValue::new("http.response.status_code", status));
        Ok(response)
    };
    trace::op(method, SpanKind::Client, attributes, told).await
}
