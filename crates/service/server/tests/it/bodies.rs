//! Hostile bodies and heads on every route that accepts a body. Each is refused clearly and does no
//! damage.

use std::collections::BTreeSet;

use rcrt_breadcrumb::Role;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    harness::{Answer, World, answer, note},
    routes::fixtures::{FIXTURES, Fixture},
};

/// Without `/mcp`, whose protocol has errors of its own.
fn routes_with_a_body() -> impl Iterator<Item = &'static Fixture> {
    FIXTURES.iter().filter(|fixture| !fixture.body.is_empty() && !fixture.route.ends_with(" /mcp"))
}

/// Its refusals have the form of A2A.
fn is_a2a(fixture: &Fixture) -> bool {
    fixture.path.starts_with("/a2a")
}

/// A refusal of A2A: JSON-RPC has the status 200.
#[track_caller]
fn refused_by_a2a(fixture: &Fixture, answer: &Answer, case: &str) {
    let status = if fixture.path.starts_with("/a2a?") { 200 } else { 400 };
    assert_eq!(answer.status.as_u16(), status, "{case}: {}", answer.text);
    let error = answer.json()["error"].clone();
    let details = error.get("data").unwrap_or(&error["details"]);
    let reason = details[0]["reason"].as_str().unwrap_or_default();
    assert!(["PARSE_ERROR", "INVALID_REQUEST", "INVALID_PARAMS"].contains(&reason), "{case}: {error}");
    assert!(answer.text.len() < 4000, "{case}: a response of {} bytes", answer.text.len());
}

async fn send(world: &World, fixture: &Fixture, token: &str, media: &[&str], body: Vec<u8>) -> Answer {
    let (method, _) = fixture.method_and_template();
    let mut request = world.request(method, &fixture.path_of_nothing(), token).header("If-Match", "1").body(body);
    for media in media {
        request = request.header("content-type", *media);
    }
    answer(request).await
}

fn nested(open: &str, close: &str) -> Vec<u8> {
    format!("{{\"deep\": {}1{}}}", open.repeat(10_000), close.repeat(10_000)).into_bytes()
}

#[tokio::test]
async fn every_route_with_a_body_is_tested_here() {
    let world = World::start().await;
    let document = world.get("/openapi.json", "").await.ok().json();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation.get("requestBody").is_some() {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    assert!(described.remove("POST /mcp"));
    assert_eq!(routes_with_a_body().map(|fixture| fixture.route.to_owned()).collect::<BTreeSet<_>>(), described);
    world.close().await;
}

#[tokio::test]
async fn invalid_json_is_refused_with_its_position() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let mut digits = b"{\"n\": 1".to_vec();
    digits.extend(std::iter::repeat_n(b'0', 1_000_000));
    let bodies: Vec<(&str, Vec<u8>)> = vec![
        ("broken UTF-8", b"{\"a\": \"\xff\xfe\"}".to_vec()),
        ("an overlong slash", b"{\"a\": \"\xc0\xaf\"}".to_vec()),
        ("half a surrogate", b"{\"a\": \"\\ud800\"}".to_vec()),
        ("UTF-16", "{}".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("a byte order mark", b"\xef\xbb\xbf{}".to_vec()),
        ("deep arrays", nested("[", "]")),
        ("deep objects", nested("{\"a\":", "}")),
        ("deep and never closed", nested("[", "")),
        ("two documents", b"{} {}".to_vec()),
        ("a comment", b"{/* */}".to_vec()),
        ("NaN", b"{\"a\": NaN}".to_vec()),
        ("a bare control character", b"{\"a\": \"\n\"}".to_vec()),
        ("a number without end", digits),
        ("a trailing comma", b"{\"a\": 1,}".to_vec()),
        ("nothing but spaces", b" \t\r\n".to_vec()),
    ];
    for fixture in routes_with_a_body() {
        for (what, body) in &bodies {
            let answer = send(&world, fixture, &token, &["application/json"], body.clone()).await;
            let case = format!("{what} at {}", fixture.route);
            if is_a2a(fixture) {
                refused_by_a2a(fixture, &answer, &case);
                continue;
            }
            assert_eq!(answer.status.as_u16(), 400, "{case}: {}", answer.text);
            let problem = answer.json();
            // Invalid JSON in an unknown field is refused because the field is unknown.
            assert!(matches!(problem["code"].as_str(), Some("malformed_json" | "invalid")), "{case}: {problem}");
            assert!(answer.text.len() < 2000, "{case}: a response of {} bytes", answer.text.len());
        }
    }
    world.close().await;
}

#[tokio::test]
async fn invalid_input_is_refused_with_its_field() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    for fixture in routes_with_a_body().filter(|fixture| is_a2a(fixture)) {
        let twice = r#"{"message": {}, "message": {}, "id": 1, "id": 1}"#;
        let long = format!("{{\"{0}\": 1, \"message\": \"{0}\", \"params\": \"{0}\"}}", "l".repeat(100_000));
        for body in ["null", "true", "1", "\"text\"", "[]", "[{}]", "{}", "{\"n\": 1e308}", twice, &long] {
            let answer = send(&world, fixture, &token, &["application/json"], body.into()).await;
            refused_by_a2a(fixture, &answer, &format!("{body:.100} at {}", fixture.route));
        }
    }
    for fixture in routes_with_a_body().filter(|fixture| !is_a2a(fixture)) {
        for body in ["null", "true", "1", "\"text\"", "[]", "[{}]"] {
            let answer = send(&world, fixture, &token, &["application/json"], body.into()).await;
            assert!(answer.violation("").contains("object"), "{body} at {}", fixture.route);
        }
        // Each field twice: it would be unclear which one counts.
        let good: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&fixture.body.replace("{lease}", "{}")).unwrap();
        for (field, value) in &good {
            let twice = format!("{{\"{field}\": {value}, \"{field}\": {value}}}");
            let answer = send(&world, fixture, &token, &["application/json"], twice.into_bytes()).await;
            assert_eq!(answer.status.as_u16(), 400, "{field} twice at {}: {}", fixture.route, answer.text);
        }
        for (field, value) in [("\\u0000", "1"), ("__proto__", "{}"), ("", "1"), ("n", "1e308")] {
            let body = format!("{{\"{field}\": {value}}}");
            send(&world, fixture, &token, &["application/json"], body.into_bytes()).await.problem(400, "invalid");
        }
        // The refusal quotes only a part of the value.
        for (field, value) in &good {
            let long = format!(
                "{{\"{field}\": {}}}",
                json!(match value {
                    serde_json::Value::Array(_) => json!(["l".repeat(100_000)]),
                    _ => json!("l".repeat(100_000)),
                })
            );
            let answer = send(&world, fixture, &token, &["application/json"], long.into_bytes()).await;
            assert!(
                answer.text.len() < 4000,
                "{field} of {}: a response of {} bytes",
                fixture.route,
                answer.text.len()
            );
        }
        let field = "f".repeat(100_000);
        let answer = send(&world, fixture, &token, &["application/json"], format!("{{\"{field}\": 1}}").into()).await;
        answer.problem(400, "invalid");
        assert!(answer.text.len() < 4000, "{}: a response of {} bytes", fixture.route, answer.text.len());
    }
    world.close().await;
}

#[tokio::test]
async fn another_media_type_is_refused() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let media: [&[&str]; 8] = [
        &[],
        &[""],
        &["text/plain"],
        &["text/json"],
        &["application/x-www-form-urlencoded"],
        &["multipart/form-data; boundary=x"],
        &["application/json", "text/plain"],
        &["application/json-seq"],
    ];
    for fixture in routes_with_a_body() {
        for media in media {
            let answer = send(&world, fixture, &token, media, b"{}".to_vec()).await;
            answer.problem(415, "unsupported_media_type");
        }
    }
    world.close().await;
}

#[tokio::test]
async fn values_that_cannot_be_stored_are_refused_with_their_field() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let post = async |context: String| {
        let fixture = FIXTURES.iter().find(|fixture| fixture.route == "POST /breadcrumbs").unwrap();
        let body = format!("{{\"title\": \"x\", \"context\": {context}}}");
        send(&world, fixture, &token, &["application/json"], body.into_bytes()).await
    };
    post(r#"{"a": "\u0000"}"#.into()).await.violation("context.a");
    post(r#"{"\u0000": 1}"#.into()).await.violation("context");
    for number in ["1e309", "-1e309", "1e999999999"] {
        post(format!("{{\"n\": {number}}}")).await.problem(400, "malformed_json");
    }
    // Deeper than the store accepts, but not too deep for the parser.
    for depth in [120, 126, 127, 128, 129, 500, 100_000] {
        let status = post(format!("{{\"a\": {}{}}}", "[".repeat(depth), "]".repeat(depth))).await.status.as_u16();
        assert!(matches!(status, 201 | 400), "{depth}: {status}");
        assert_eq!(status == 201, depth < 126, "{depth}: {status}");
    }
    // Values that can be stored come back unchanged.
    for number in
        ["1e308", "-0.0", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "5e-324", "0.1"]
    {
        let created = post(format!("{{\"n\": {number}}}")).await.ok().json();
        let back = world.get(&format!("/breadcrumbs/{}", created["id"].as_str().unwrap()), &token).await.ok().json();
        let sent: f64 = number.parse().unwrap();
        assert_eq!(
            back["context"]["n"].as_f64().unwrap().to_bits(),
            sent.to_bits(),
            "{number} came back as {}",
            back["context"]
        );
    }
    for text in ["\u{feff}", "\u{202e}abc", "e\u{301}", "\u{1f469}\u{200d}\u{1f4bb}", "\u{ffff}", "\u{7f}\u{1}"] {
        let created = post(json!({"t": text, text: 1}).to_string()).await.ok().json();
        let back = world.get(&format!("/breadcrumbs/{}", created["id"].as_str().unwrap()), &token).await.ok().json();
        assert_eq!(back["context"], json!({"t": text, text: 1}));
    }
    world.close().await;
}

/// Two million bytes of a key above two hundred thousand invalid values: complete paths would be
/// four hundred gigabytes.
#[tokio::test]
async fn the_size_of_a_refusal_is_bounded() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    let wrong = vec!["\u{0}"; 200_000];
    let body =
        json!({"title": "x", "context": {"k".repeat(2_000_000): wrong}, "llm_hints": {"k".repeat(1000): ["\u{0}"]}});
    let answer = world.post("/breadcrumbs", &token, body).await;
    let problem = answer.problem(400, "invalid");
    assert_eq!(problem["violations"].as_array().unwrap().len(), rcrt_breadcrumb::MAX_VIOLATIONS);
    assert!(answer.text.len() < 200_000, "{}", answer.text.len());
    world.close().await;
}

#[tokio::test]
async fn bodies_far_too_large_are_refused_on_every_route() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let part = bytes::Bytes::from(vec![b' '; 256 * 1024]);
    for fixture in routes_with_a_body() {
        let (method, _) = fixture.method_and_template();
        let request = || {
            let request = world.request(method, &fixture.path_of_nothing(), &token).header("If-Match", "1");
            request.header("content-type", "application/json")
        };
        // An endless body in chunks.
        let endless = futures::stream::repeat_with({
            let part = part.clone();
            move || Ok::<_, std::io::Error>(part.clone())
        });
        let answer = answer(request().body(reqwest::Body::wrap_stream(endless))).await;
        assert_eq!(answer.problem(413, "too_large")["limit"], rcrt_server::MAX_BODY_BYTES, "{}", fixture.route);
    }
    // A body with an announced length of a hundred megabytes.
    let announced = world.request("POST", "/breadcrumbs", &token).header("content-type", "application/json");
    answer(announced.body(vec![b' '; 100 * 1024 * 1024])).await.problem(413, "too_large");
    world.get("/health", "").await.ok();
    world.close().await;
}

#[tokio::test]
async fn a_flood_of_headers_is_refused_and_the_next_caller_is_served() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let id = world.create(&token, note("kept")).await;
    let address = world.base.trim_start_matches("http://");
    let heads = [
        format!("GET /health HTTP/1.1\r\nHost: x\r\n{}\r\n", "X-A: b\r\n".repeat(10_000)),
        format!("GET /health HTTP/1.1\r\nHost: x\r\nX-A: {}\r\n\r\n", "b".repeat(2_000_000)),
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(1_000_000)),
        format!("GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n", "e".repeat(1_000_000)),
        "GET /health HTTP/9.9\r\nHost: x\r\n\r\n".to_owned(),
        "POST /auth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
    ];
    for head in heads {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server can refuse it before all is sent.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.starts_with("HTTP/1.1 4"), "{head:.80}: {answer:.200}");
    }
    assert_eq!(world.get(&format!("/breadcrumbs/{id}"), &token).await.ok().json()["title"], "kept");
    world.close().await;
}
