//! Copies the caller's trace context from the header into the request that it writes.

use axum::http::HeaderMap;
use rcrt_breadcrumb::{NewBreadcrumb, Traceparent, schema_names};

/// Copies the header `traceparent` (W3C Trace Context) into a request's context, unless it has one.
/// A malformed or repeated header is ignored: a broken trace must not make the request fail.
pub fn carry(headers: &HeaderMap, record: &mut NewBreadcrumb) {
    if record.schema_name.as_deref() != Some(schema_names::TOOL_REQUEST) || record.context.contains_key("traceparent") {
        return;
    }
    let mut values = headers.get_all("traceparent").iter();
    let (Some(value), None) = (values.next(), values.next()) else { return };
    if let Some(place) = value.to_str().ok().and_then(|text| text.trim().parse::<Traceparent>().ok()) {
        // As parsed here, without the additions of later versions.
        record.context.insert("traceparent".into(), place.to_string().into());
    }
}
