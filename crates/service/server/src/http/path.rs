//! The parameters in a path.

use axum::extract::{FromRequestParts, Path, RawPathParams};
use axum::http::request::Parts;
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
        read_id("id", &text).map(Self)
    }
}

/// The two ids of a path, in its order.
pub struct PathIds(pub Uuid, pub Uuid);

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let texts = RawPathParams::from_request_parts(parts, state)
            .await
            .map_err(|_| Problem::invalid("id", "the ids in the path are not valid text; they must be UUIDs"))?;
        let mut ids = [Uuid::nil(); 2];
        for (id, (name, text)) in ids.iter_mut().zip(&texts) {
            *id = read_id(name, text)?;
        }
        let [first, second] = ids;
        Ok(Self(first, second))
    }
}

fn read_id(field: &str, text: &str) -> Result<Uuid, Problem> {
    Uuid::try_parse(text).map_err(|_| {
        let shown: String = text.chars().take(100).collect();
        Problem::invalid(field, format!("{shown:?} is not an id; it must be a UUID"))
    })
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
