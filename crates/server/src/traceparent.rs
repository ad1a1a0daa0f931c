//! Copies the caller's trace context from the header into the request that it writes.

use axum::http::HeaderMap;
use breadcrumb::{NewBreadcrumb, Traceparent, schema_names};

/// Puts the header `traceparent` (W3C Trace Context) into a request's context, where there is none. A header that is
/// malformed, or there twice, is passed over: a broken trace must not break what is traced.
pub fn carry(headers: &HeaderMap, record: &mut NewBreadcrumb) {
    if record.schema_name.as_deref() != Some(schema_names::TOOL_REQUEST) || record.context.contains_key("traceparent") {
        return;
    }
    let mut values = headers.get_all("traceparent").iter();
    let (Some(value), None) = (values.next(), values.next()) else { return };
    if let Some(place) = value.to_str().ok().and_then(|text| text.trim().parse::<Traceparent>().ok()) {
        // As it is understood here: a later version's additions are not.
        record.context.insert("traceparent".into(), place.to_string().into());
    }
}
