//! The tool's name in a path.

use axum::{extract::FromRequestParts, extract::Path, http::request::Parts};

use crate::http::problem::Problem;

/// The longest name that a request can have.
const MAX_NAME: usize = 200;

/// The one `{name}` of a path.
pub struct PathTool(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathTool {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("name", "the tool's name in the path is not valid text"))?;
        if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.contains('\0') {
            return Err(Problem::invalid("name", format!("must have 1 to {MAX_NAME} characters, and no NUL")));
        }
        Ok(Self(name))
    }
}
