//! The parameters in a path.

use axum::{extract::FromRequestParts, extract::Path, http::request::Parts};
use uuid::Uuid;

use crate::http::problem::Problem;

/// The longest name that a request can have.
const MAX_NAME: usize = 200;

/// The one `{id}` of a path.
pub struct PathId(pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("id", "the id in the path is not valid text; it must be a UUID"))?;
        Uuid::try_parse(&text).map(Self).map_err(|_| {
            let shown: String = text.chars().take(100).collect();
            Problem::invalid("id", format!("{shown:?} is not an id; it must be a UUID"))
        })
    }
}

/// The one `{name}` of a path.
pub struct PathTool(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathTool {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("name", "the tool's name in the path is not valid text"))?;
        if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.contains('\0') {
            return Err(Problem::invalid("name", format!("must have 1 to {MAX_NAME} characters, none of them NUL")));
        }
        Ok(Self(name))
    }
}
