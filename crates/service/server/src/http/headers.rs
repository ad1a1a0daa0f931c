//! Request headers that can occur at most once.

use axum::http::HeaderMap;
use rcrt_breadcrumb::{NewBreadcrumb, Traceparent, schema_names};

use crate::http::problem::Problem;

/// The header's value. Repeated headers and values that are not ASCII are errors of the caller.
pub fn one_header<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::invalid(name, "must be given only once"));
    }
    value.to_str().map(Some).map_err(|_| Problem::invalid(name, "must be ASCII text"))
}

/// The caller's key for this request and its repetitions.
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let key = one_header(headers, "idempotency-key")?;
    if key.is_some_and(|key| !(1..=255).contains(&key.len())) {
        return Err(Problem::invalid("Idempotency-Key", "must have 1 to 255 characters"));
    }
    Ok(key)
}

/// Copies the header `traceparent` (W3C Trace Context) into a request's context, unless it has one.
/// A malformed or repeated header is ignored: a broken trace must not make the request fail.
pub fn carry_traceparent(headers: &HeaderMap, record: &mut NewBreadcrumb) {
    if record.schema_name.as_deref() != Some(schema_names::TOOL_REQUEST) || record.context.contains_key("traceparent") {
        return;
    }
    let mut values = headers.get_all("traceparent").iter();
    let (Some(value), None) = (values.next(), values.next()) else { return };
    if let Some(traceparent) = value.to_str().ok().and_then(|text| text.trim().parse::<Traceparent>().ok()) {
        // As parsed here, without the additions of later versions.
        record.context.insert("traceparent".into(), traceparent.to_string().into());
    }
}
