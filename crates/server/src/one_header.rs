//! Headers that may be there once, read as text.

use axum::http::HeaderMap;

use crate::problem::Problem;

/// The header's value; more than one, or one that is no ASCII text, is the caller's mistake.
pub fn one_header<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::invalid(name, "is given more than once"));
    }
    value.to_str().map(Some).map_err(|_| Problem::invalid(name, "must be ASCII text"))
}
