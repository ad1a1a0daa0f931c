use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures::{StreamExt, stream};
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, OpError, Redirect};

use rcrt_test_servers::network::{LOOPBACK, Network, get, listed, serve, text};
use rcrt_test_servers::raw;

/// `/to/<status>` redirects to the state's URL. All other paths return a description of the
/// request.
fn server(target: String) -> Router {
    async fn redirect(State(target): State<String>, Path(status): Path<u16>) -> Response {
        (StatusCode::from_u16(status).unwrap(), [(header::LOCATION, target)]).into_response()
    }
    async fn show(request: Request) -> String {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        let has = |name| if parts.headers.contains_key(name) { name } else { "-" };
        format!(
            "{} {} {} {} {} {}",
            parts.method,
            parts.uri.path(),
            String::from_utf8_lossy(&body),
            has("authorization"),
            has("cookie"),
            has("content-type")
        )
    }
    Router::new().route("/to/{status}", any(redirect)).fallback(any(show)).with_state(target)
}

fn request(method: &str, url: String, redirect: Redirect) -> FetchRequest {
    let headers = [("authorization", "Bearer x"), ("cookie", "a=b"), ("content-type", "text/plain")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    FetchRequest { method: method.into(), headers, redirect, ..get(url) }
}

fn body(text: &'static str) -> Option<BodyStream> {
    Some(stream::iter([Ok(Bytes::from_static(text.as_bytes()))]).boxed())
}

fn failed(result: Result<FetchResponse, OpError>) -> OpError {
    result.map(|answer| answer.status).unwrap_err()
}

#[tokio::test]
async fn methods_and_bodies_follow_the_fetch_standard() {
    let port = serve(server("/end".into())).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let (gate, rules) = (network.gate(), listed(&[format!("api.test:{port}")]));
    for (method, status, expected) in [
        ("POST", 301, "GET /end  authorization cookie -"),
        ("POST", 302, "GET /end  authorization cookie -"),
        ("POST", 303, "GET /end  authorization cookie -"),
        ("PUT", 303, "GET /end  authorization cookie -"),
        ("PUT", 302, "PUT /end hello authorization cookie content-type"),
        ("POST", 307, "POST /end hello authorization cookie content-type"),
        ("POST", 308, "POST /end hello authorization cookie content-type"),
    ] {
        let url = format!("http://api.test:{port}/to/{status}");
        let answer = gate.fetch(&rules, request(method, url, Redirect::Follow), body("hello")).await.unwrap();
        assert_eq!((answer.redirected, answer.url.clone()), (true, format!("http://api.test:{port}/end")));
        assert_eq!(text(answer).await.unwrap(), expected, "{method} {status}");
    }
}

#[tokio::test]
async fn body_too_long_to_buffer_is_not_sent_again() {
    let port = serve(server("/end".into())).await;
    let mut network = Network::new().inside(&format!("api.test:{port}"));
    network.options.max_replay_bytes = 3;
    let (gate, rules) = (network.gate(), listed(&[format!("api.test:{port}")]));
    let url = |status| format!("http://api.test:{port}/to/{status}");
    let error = failed(gate.fetch(&rules, request("POST", url(307), Redirect::Follow), body("hello")).await);
    assert_eq!(error.name, "TypeError");
    let answer = gate.fetch(&rules, request("POST", url(303), Redirect::Follow), body("hello")).await.unwrap();
    assert!(text(answer).await.unwrap().starts_with("GET /end"));
}

#[tokio::test]
async fn redirect_with_two_locations_or_invalid_text_is_an_error() {
    for (fields, why) in [
        ("location: /a\r\nlocation: /b", "more than one location"),
        ("location: /\u{e9}\u{ff}x", "not valid text"),
        ("location: /a\tb", "characters that are not allowed in a URL"),
    ] {
        let latin: Vec<u8> = fields.chars().map(|c| c as u8).collect();
        let answer = [b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n", latin.as_slice(), b"\r\n\r\n"].concat();
        let port = raw::respond(answer).await;
        let network = Network::new().inside(&format!("api.test:{port}"));
        let rules = listed(&[format!("api.test:{port}")]);
        let error = failed(network.gate().fetch(&rules, get(format!("http://api.test:{port}/")), None).await);
        assert!(error.name == "TypeError" && error.message.contains(why), "{fields:?}: {error}");
    }
}

#[tokio::test]
async fn identifying_headers_are_not_sent_to_another_origin() {
    let echo = any(|headers: HeaderMap| async move {
        let names: Vec<&str> = headers.keys().map(axum::http::HeaderName::as_str).collect();
        names.join(" ")
    });
    let other = serve(Router::new().route("/", echo)).await;
    let port = serve(server(format!("http://api.test:{other}/"))).await;
    let network = Network::new().inside("api.test");
    let rules = listed(&[format!("api.test:{port}"), format!("api.test:{other}")]);
    let names = ["Authorization", "Cookie", "X-API-Key", "Private-Token", "Referer", "Origin", "X-Anything", "Accept"];
    let headers = names.map(|name| (name.to_owned(), "value".to_owned())).into();
    // Another port is another origin.
    let request = FetchRequest { headers, ..get(format!("http://api.test:{port}/to/302")) };
    let seen = text(network.gate().fetch(&rules, request, None).await.unwrap()).await.unwrap();
    let mut seen: Vec<&str> = seen.split(' ').collect();
    seen.sort_unstable();
    assert_eq!(seen, ["accept", "accept-encoding", "host", "user-agent"]);
}

#[tokio::test]
async fn credentials_are_sent_only_to_their_origin() {
    let other = serve(server(String::new())).await;
    let port = serve(server(format!("http://other.test:{other}/end"))).await;
    let network = Network::new().inside(&format!("api.test:{port}")).inside(&format!("other.test:{other}"));
    let rules = listed(&[format!("api.test:{port}"), format!("other.test:{other}")]);
    let url = format!("http://api.test:{port}/to/302");
    let answer = network.gate().fetch(&rules, request("GET", url, Redirect::Follow), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "GET /end  - - content-type");
}

#[tokio::test]
async fn every_redirect_passes_the_same_checks() {
    for (target, name) in [
        ("http://elsewhere.test/", "PermissionDenied"),
        ("http://inside.test/", "PermissionDenied"),
        ("http://127.0.0.1/", "PermissionDenied"),
        ("http://169.254.169.254/latest/meta-data", "PermissionDenied"),
        ("file:///etc/passwd", "TypeError"),
        ("http://user:secret@api.test/", "TypeError"),
        ("http://[bad/", "TypeError"),
        // Locations that a lenient parser reads as a path, as another host, or not as a URL.
        ("//elsewhere.test/", "PermissionDenied"),
        ("///elsewhere.test/", "TypeError"),
        ("http://api.test@elsewhere.test/", "TypeError"),
        ("http://api.test:80@elsewhere.test/", "TypeError"),
        ("http://elsewhere.test#@api.test/", "PermissionDenied"),
        ("http://elsewhere.test?@api.test/", "PermissionDenied"),
        ("http://api.test.elsewhere.test/", "PermissionDenied"),
        ("HTTP://ELSEWHERE.test./", "PermissionDenied"),
        ("http://0x7f.1/", "PermissionDenied"),
        ("http://2130706433/", "PermissionDenied"),
        ("http://017700000001/", "PermissionDenied"),
        ("http://127.1:80/", "PermissionDenied"),
        ("http://[::ffff:127.0.0.1]/", "PermissionDenied"),
        ("http://[fe80::1%25eth0]/", "TypeError"),
        ("http://%31%32%37.0.0.1/", "PermissionDenied"),
        ("http://api.test:8080/", "PermissionDenied"),
        ("http://api.test:0/", "TypeError"),
        ("http://api.test:65536/", "TypeError"),
        ("\\\\elsewhere.test\\", "TypeError"),
        ("/\\elsewhere.test/", "TypeError"),
        ("http:\\\\elsewhere.test/", "TypeError"),
        ("ht\ttp://elsewhere.test/", "TypeError"),
        ("data:text/plain,hello", "TypeError"),
        ("javascript:alert(1)", "TypeError"),
        ("blob:http://api.test/1", "TypeError"),
        ("ftp://api.test/", "TypeError"),
        ("ws://api.test/", "TypeError"),
        ("gopher://127.0.0.1:6379/_x", "TypeError"),
        ("about:blank", "TypeError"),
    ] {
        let port = serve(server(target.into())).await;
        let network = Network::new().inside(&format!("api.test:{port}"));
        network.names.set("inside.test", vec![vec![LOOPBACK]]);
        let entries = [
            format!("api.test:{port}"),
            "api.test".into(),
            "inside.test".into(),
            "127.0.0.1".into(),
            "169.254.169.254".into(),
        ];
        let url = format!("http://api.test:{port}/to/302");
        let error = failed(network.gate().fetch(&listed(&entries), get(url), None).await);
        assert_eq!(error.name, name, "{target}: {error}");
        assert!(!network.names.asked().contains(&"elsewhere.test".to_owned()));
    }
}

#[tokio::test]
async fn location_without_an_authority_keeps_the_host() {
    for target in ["http:elsewhere.test", "http:/elsewhere.test/", "?http://elsewhere.test/", "./@elsewhere.test"] {
        let port = serve(server(target.into())).await;
        let network = Network::new().inside(&format!("api.test:{port}"));
        // The target of the query is the redirect itself, with another query.
        let url = format!("http://api.test:{port}/to/302");
        let answer = network.gate().fetch(&listed(&[format!("api.test:{port}")]), get(url), None).await;
        match answer {
            Ok(answer) => assert!(answer.url.starts_with(&format!("http://api.test:{port}/")), "{}", answer.url),
            Err(error) => assert_eq!(error.message, "more than 10 redirects", "{target}"),
        }
        assert_eq!(network.names.asked().iter().filter(|name| *name != "api.test").count(), 0);
    }
}

#[tokio::test]
async fn redirect_modes_error_and_manual() {
    let port = serve(server("/end".into())).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let (gate, rules) = (network.gate(), listed(&[format!("api.test:{port}")]));
    let url = format!("http://api.test:{port}/to/302");
    assert_eq!(failed(gate.fetch(&rules, request("GET", url.clone(), Redirect::Error), None).await).name, "TypeError");
    let answer = gate.fetch(&rules, request("GET", url, Redirect::Manual), None).await.unwrap();
    assert_eq!((answer.status, answer.redirected), (302, false));
    assert!(answer.headers.contains(&("location".into(), "/end".into())));
}

#[tokio::test]
async fn redirects_are_limited() {
    let port = serve(server("/to/302".into())).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let url = format!("http://api.test:{port}/to/302");
    let error = failed(network.gate().fetch(&listed(&[format!("api.test:{port}")]), get(url), None).await);
    assert_eq!((error.name.as_str(), error.message.as_str()), ("TypeError", "more than 10 redirects"));
}

#[tokio::test]
async fn redirect_without_a_location_is_returned() {
    async fn nowhere(_: HeaderMap) -> Response {
        (StatusCode::FOUND, "nowhere").into_response()
    }
    let port = serve(Router::new().route("/", any(nowhere))).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let url = format!("http://api.test:{port}/");
    let answer = network.gate().fetch(&listed(&[format!("api.test:{port}")]), get(url), None).await.unwrap();
    assert_eq!((answer.status, answer.redirected), (302, false));
}
