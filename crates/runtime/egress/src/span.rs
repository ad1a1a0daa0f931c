//! The attributes of a fetch's span: the target, never the content.

use opentelemetry::trace::{SpanKind, TraceContextExt};
use opentelemetry::{Context, KeyValue};
use rcrt_breadcrumb::{FetchRequest, FetchResponse, OpError};
use url::Url;

use crate::trace;

/// Other methods are not recorded, because tools can invent any name.
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

/// Runs the fetch in a client span of the call.
pub async fn within(
    attributes: Vec<KeyValue>,
    method: &'static str,
    fetch: impl Future<Output = Result<FetchResponse, OpError>>,
) -> Result<FetchResponse, OpError> {
    let recorded = async {
        let response = fetch.await?;
        let status = i64::from(response.status);
        Context::current().span().set_attribute(KeyValue::new("http.response.status_code", status));
        Ok(response)
    };
    trace::op(method, SpanKind::Client, attributes, recorded).await
}
