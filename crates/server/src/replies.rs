//! Small response types that several resources share.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

/// What was asked is done. (A body and not `204`: RCRT's clients read every answer as JSON.)
#[derive(Debug, Serialize, ToSchema)]
pub struct Done {
    pub ok: bool,
}

impl Done {
    pub const JSON: Json<Self> = Json(Self { ok: true });
}

/// An answer with a secret in it, which no cache may keep.
pub struct NoStore<T>(pub T);

impl<T: Serialize> IntoResponse for NoStore<T> {
    fn into_response(self) -> Response {
        const NO_STORE: (HeaderName, HeaderValue) = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        ([NO_STORE], Json(self.0)).into_response()
    }
}
