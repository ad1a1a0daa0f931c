//! An HTTP server that behaves like a hostile or careless site. The first part of the path selects
//! the behaviour.

use std::convert::Infallible;
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{StreamExt, stream};
use serde_json::{Map, Value, json};

use super::request_log::RequestLog;

const MIB: usize = 1024 * 1024;

/// 64 MiB of zeros, compressed to a thousandth of that.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzipped(&vec![0; 64 * MIB]));

/// Serves on a free port until the test's runtime stops.
pub async fn serve(seen: Arc<RequestLog>) -> u16 {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    LazyLock::force(&BOMB);
    let router = Router::new().fallback(answer).with_state(seen);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    port
}

async fn answer(State(seen): State<Arc<RequestLog>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 32 * MIB).await.unwrap_or_default();
    let fields: Map<String, Value> = parts
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into()))
        .collect();
    let lines: Vec<String> = fields
        .iter()
        .map(|(name, value)| {
            format!(
                "{name}: {}
",
                value.as_str().unwrap()
            )
        })
        .collect();
    let text = String::from_utf8_lossy(&body).into_owned();
    seen.add(parts.uri.path(), format!("{} {}\n{}\n{text}", parts.method, parts.uri, lines.concat()));

    let path: Vec<String> = parts.uri.path().split('/').skip(1).map(str::to_owned).collect();
    let part = |at: usize| path.get(at).map(String::as_str).unwrap_or_default();
    let number = |at: usize| part(at).parse::<usize>().unwrap_or_default();
    let query = parts.uri.query().unwrap_or_default();
    match part(0) {
        "to" => {
            let status = StatusCode::from_u16(u16::try_from(number(1)).unwrap()).unwrap_or(StatusCode::FOUND);
            // Unchanged from the query: an invalid URL must reach the gate too.
            let target = query.strip_prefix("url=").unwrap_or_default().replace("%20", " ").replace("%26", "&");
            (status, [(header::LOCATION, target)]).into_response()
        }
        "loop" => {
            let next = format!("/loop/{}/{}", part(1), number(2) + 1);
            (StatusCode::FOUND, [(header::LOCATION, next)]).into_response()
        }
        "bytes" => repeated(Bytes::from(vec![b'x'; 64 * 1024]), number(1).div_ceil(64 * 1024)).into_response(),
        "endless" => repeated(Bytes::from(vec![b'x'; 64 * 1024]), usize::MAX).into_response(),
        "drip" => {
            let drops = stream::repeat(()).then(|()| async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok::<_, Infallible>(Bytes::from_static(b"."))
            });
            Body::from_stream(drops).into_response()
        }
        "silent" => std::future::pending().await,
        "bomb" => ([(header::CONTENT_ENCODING, "gzip")], BOMB.as_slice()).into_response(),
        "bomb-in-bomb" => ([(header::CONTENT_ENCODING, "gzip, gzip")], gzipped(&BOMB)).into_response(),
        "status" => StatusCode::from_u16(u16::try_from(number(1)).unwrap()).unwrap().into_response(),
        "cookie" => ([(header::SET_COOKIE, "session=stolen; Path=/")], "set").into_response(),
        "back" => {
            let authorization = fields.get("authorization").and_then(Value::as_str).unwrap_or_default();
            back(part(1), part(2), authorization.strip_prefix("Bearer ").unwrap_or(authorization))
        }
        _ => axum::Json(json!({
            "method": parts.method.as_str(),
            "path": parts.uri.path(),
            "query": query,
            "headers": fields,
            "body": text,
        }))
        .into_response(),
    }
}

/// Returns the secret that it got, in one of many forms.
fn back(form: &str, case: &str, told: &str) -> Response {
    let encode = |text: &str| STANDARD.encode(text);
    match form {
        "base64" => encode(told).into_response(),
        "base64-shifted" => {
            format!("{} {}", encode(&format!("a{told}")), encode(&format!("ab{told}z"))).into_response()
        }
        "base64url" => URL_SAFE_NO_PAD.encode(told).into_response(),
        "percent" => url::form_urlencoded::byte_serialize(told.as_bytes()).collect::<String>().into_response(),
        "json" => axum::Json(json!({"deep": [{"in": told}]})).into_response(),
        "header" => ([("x-told", told.to_owned())], "see the header").into_response(),
        "redirect" => (StatusCode::FOUND, [(header::LOCATION, format!("/echo/{case}?told={told}"))]).into_response(),
        "gzip" => ([(header::CONTENT_ENCODING, "gzip")], gzipped(told.as_bytes())).into_response(),
        // One byte in each piece, so that no piece contains the value.
        "pieces" => {
            let bytes: Vec<_> = told.bytes().map(|byte| Ok::<_, Infallible>(Bytes::from(vec![byte]))).collect();
            let apart = stream::iter(bytes).then(|byte| async {
                tokio::time::sleep(Duration::from_millis(2)).await;
                byte
            });
            Body::from_stream(apart).into_response()
        }
        _ => told.to_owned().into_response(),
    }
}

fn repeated(piece: Bytes, times: usize) -> Body {
    Body::from_stream(stream::repeat(piece).take(times).map(Ok::<_, Infallible>))
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
