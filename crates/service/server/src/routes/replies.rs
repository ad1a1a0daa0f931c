//! Small response types that several resources share.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::Problem;

/// The request succeeded. (A body instead of `204`, because RCRT's clients parse every response as
/// JSON.)
#[derive(Debug, Serialize, ToSchema)]
pub struct Done {
    pub ok: bool,
}

impl Done {
    pub const JSON: Json<Self> = Json(Self { ok: true });
}

/// What a handler returns: a body as JSON, or a problem.
pub type Reply<T> = Result<Json<T>, Problem>;

/// A response that contains a secret, so caches must not store it.
pub struct NoStore<T>(pub T);

/// [`Reply`] with a secret.
pub type NoStoreReply<T> = Result<NoStore<T>, Problem>;

impl<T: Serialize> IntoResponse for NoStore<T> {
    fn into_response(self) -> Response {
        const NO_STORE: (HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        ([NO_STORE], Json(self.0)).into_response()
    }
}
