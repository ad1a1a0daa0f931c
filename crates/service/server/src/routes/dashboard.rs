//! The dashboard: the files that `build/dashboard` made, as they are in the binary. Its own screens
//! are in the URL's fragment, so every other path stays one of the API.

use std::io::Read;

use axum::{
    extract::Path,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use flate2::read::GzDecoder;

use crate::http::problem::Problem;

/// A file of the dashboard.
struct File {
    path: &'static str,
    media_type: &'static str,
    etag: &'static str,
    gzip: &'static [u8],
}

static FILES: &[File] = include!("../../../../../dashboard/dist/files.rs");

/// Tool code and agents write much of what the page shows, so it can run nothing but its own files.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The dashboard
#[utoipa::path(get, path = "/", tag = "operations", operation_id = "dashboard",
    responses((status = 200, body = String, content_type = "text/html"), (status = 304, description = "Not modified")))]
pub async fn page(headers: HeaderMap) -> Result<Response, Problem> {
    let mut page = file("index.html", &headers, "no-cache")?;
    page.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    page.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(page)
}

/// The dashboard's icon
#[utoipa::path(get, path = "/favicon.svg", tag = "operations", operation_id = "dashboard_icon",
    responses((status = 200, body = String, content_type = "image/svg+xml"), (status = 304, description = "Not modified")))]
pub async fn icon(headers: HeaderMap) -> Result<Response, Problem> {
    file("favicon.svg", &headers, "no-cache")
}

/// A script or the style of the dashboard
#[utoipa::path(get, path = "/assets/{name}", tag = "operations", operation_id = "dashboard_asset",
    params(("name" = String, Path, description = "With a hash of the file's content")),
    responses((status = 200, body = String, content_type = "text/javascript"), (status = 304, description = "Not modified")))]
pub async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    file(&format!("assets/{name}"), &headers, "public, max-age=31536000, immutable")
}

fn file(path: &str, headers: &HeaderMap, caching: &'static str) -> Result<Response, Problem> {
    let Some(file) = FILES.iter().find(|file| file.path == path) else {
        return Err(Problem::unknown_path(&format!("/{path}")));
    };
    let common = [
        (header::ETAG, HeaderValue::from_static(file.etag)),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    if lists(headers, header::IF_NONE_MATCH, |tag| tag == "*" || tag.trim_start_matches("W/") == file.etag) {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(file.media_type))];
    if lists(headers, header::ACCEPT_ENCODING, accepts_gzip) {
        let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
        return Ok((common, kind, encoding, file.gzip).into_response());
    }
    let mut whole = Vec::new();
    GzDecoder::new(file.gzip).read_to_end(&mut whole).map_err(|error| {
        tracing::error!(%error, path, "a file of the dashboard cannot be decompressed");
        Problem::internal()
    })?;
    Ok((common, kind, whole).into_response())
}

/// Whether an element of the header's comma-separated list passes the test.
fn lists(headers: &HeaderMap, name: header::HeaderName, test: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| test(one.trim()))
}

/// `gzip`, `gzip;q=0.5` or `*`, but not with the weight 0.
fn accepts_gzip(coding: &str) -> bool {
    let mut parts = coding.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |text| text.parse().unwrap_or(0.0));
    (name.eq_ignore_ascii_case("gzip") || name == "*") && weight > 0.0
}
