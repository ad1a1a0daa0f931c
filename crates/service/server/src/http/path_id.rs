//! The id in a path.

use axum::{extract::FromRequestParts, extract::Path, http::request::Parts};
use uuid::Uuid;

use crate::http::problem::Problem;

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
