//! Headers that can occur at most once, read as text.

use axum::http::HeaderMap;

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
