//! What a tool sees of a response that contains a value.

use std::fmt::Write;

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder};
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD};
use futures::TryStreamExt;
use proptest::prelude::*;
use rcrt_breadcrumb::{FetchRequest, FetchResponse, Redirect};
use rcrt_egress::HeldSecret;
use tokio::io::AsyncWriteExt;

use super::{Call, VALUE, in_pieces, secret, with_headers};
use rcrt_test_servers::network::{Network, get, listed};
use rcrt_test_servers::raw;
use rcrt_test_servers::service::{Seen, Service};

const NAMED: &str = "[secret KEY]";

/// A tool sends its secret to a service, which responds with `answer`.
async fn asked<F, R>(answer: F) -> (Service, Call, FetchRequest)
where
    F: Fn(Seen) -> R + Clone + Send + Sync + 'static,
    R: IntoResponse + 'static,
{
    let service = Service::new(answer).await;
    let (call, request) = asking(service.port, vec![("KEY", VALUE)]);
    (service, call, request)
}

fn asking(port: u16, secrets: Vec<(&str, &str)>) -> (Call, FetchRequest) {
    let host = format!("api.test:{port}");
    let network = Network::new().inside(&host);
    let held: Vec<HeldSecret> = secrets.iter().map(|(name, value)| secret(name, value, &[&host])).collect();
    let call = Call::new(&network, listed(std::slice::from_ref(&host)), held);
    let headers: Vec<(String, String)> =
        secrets.iter().map(|(name, _)| (format!("x-{}", name.to_lowercase()), call.handle(name))).collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let request = with_headers(format!("http://{host}/"), &headers);
    (call, request)
}

async fn bytes(answer: FetchResponse) -> Vec<u8> {
    answer.body.try_collect::<Vec<bytes::Bytes>>().await.unwrap().concat()
}

fn percent_all(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "%{byte:02x}").unwrap();
        text
    })
}

fn escaped_all(value: &str) -> String {
    value.encode_utf16().fold(String::new(), |mut text, unit| {
        write!(text, "\\u{unit:04X}").unwrap();
        text
    })
}

/// The value in the spellings that services are known to use.
fn spellings(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    vec![
        value.to_owned(),
        value.replace(' ', "+"),
        BASE64_STANDARD.encode(value),
        BASE64_URL_SAFE.encode(value),
        BASE64_URL_SAFE_NO_PAD.encode(value),
        BASE64_STANDARD.encode(value).replace('/', "\\/"),
        BASE64_STANDARD.encode(value).replace('/', "%2F").replace('+', "%2b"),
        url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
        percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string(),
        percent_all(value),
        percent_all(value).to_uppercase(),
        json.clone(),
        json.replace('/', "\\/"),
        escaped_all(value),
        value.bytes().fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
    ]
}

#[tokio::test]
async fn every_spelling_of_a_value_is_redacted() {
    let (service, call, request) = asked(|seen| {
        assert_eq!(seen.header("x-key"), Some(VALUE));
        format!("<{}>\n", spellings(VALUE).join(">\n<"))
    })
    .await;
    let answer = call.fetch(request, None).await.unwrap();
    let text = String::from_utf8(bytes(answer).await).unwrap();
    assert_eq!(text, format!("<{NAMED}>\n").repeat(spellings(VALUE).len()));
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn base64_of_a_text_with_the_value_is_redacted() {
    for before in 0..4 {
        for after in 0..4 {
            let text = format!("{}{VALUE}{}", "a".repeat(before), "b".repeat(after));
            let encoded = [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE_NO_PAD.encode(&text)].join(" ");
            let (_service, call, request) = asked(move |_| encoded.clone()).await;
            let seen = String::from_utf8(bytes(call.fetch(request, None).await.unwrap()).await).unwrap();
            assert_eq!(seen.matches(NAMED).count(), 2, "{seen}");
            for part in seen.split(NAMED) {
                // What remains belongs to adjacent bytes: a digit that they share with the value on
                // either side.
                assert!(part.trim_end_matches('=').len() <= 14, "{seen}");
            }
        }
    }
}

#[tokio::test]
async fn utf16_text_is_redacted() {
    for encode in [u16::to_le_bytes, u16::to_be_bytes] {
        let wide = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(encode).collect() };
        let answer = [wide("say "), wide(VALUE), wide(" twice")].concat();
        let (_service, call, request) = asked(move |_| answer.clone()).await;
        let seen = bytes(call.fetch(request, None).await.unwrap()).await;
        let shows = |text: &[u8]| seen.windows(text.len()).any(|window| window == text);
        assert!(shows(NAMED.as_bytes()) && shows(b"t\0w\0i\0c\0e"), "{seen:?}");
        assert!(!shows(b"s\0k\0") && !shows(b"=\0z"), "{seen:?}");
    }
}

#[tokio::test]
async fn headers_and_cookies_are_redacted() {
    let (_service, call, request) = asked(|seen| {
        let value = seen.header("x-key").unwrap().to_owned();
        let mut answer = StatusCode::OK.into_response();
        let name = HeaderName::from_bytes(format!("x-{}", "mixed-Case-Name").to_lowercase().as_bytes()).unwrap();
        for (name, value) in [
            (header::SET_COOKIE, format!("session={value}; Path=/")),
            (header::SET_COOKIE, format!("b64={}", BASE64_STANDARD.encode(&value))),
            (header::LINK, format!("<https://x/?k={}>", percent_all(&value))),
            (header::WWW_AUTHENTICATE, format!("Bearer error=\"bad token {value}\"")),
            (name, format!("caf\u{e9} {value}")),
        ] {
            answer.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        answer
    })
    .await;
    let answer = call.fetch(request, None).await.unwrap();
    let of = |name: &str| -> Vec<&str> {
        answer.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(of("set-cookie"), [format!("session={NAMED}; Path=/"), format!("b64={NAMED}")]);
    assert_eq!(of("link"), [format!("<https://x/?k={NAMED}>")]);
    assert_eq!(of("www-authenticate"), [format!("Bearer error=\"bad token {NAMED}\"")]);
    assert_eq!(of("x-mixed-case-name"), [format!("caf\u{c3}\u{a9} {NAMED}")]);
    assert!(of("content-length").is_empty(), "it would reveal the length of the value");
}

#[tokio::test]
async fn header_with_the_value_in_its_name_is_removed() {
    let value = "Token-With_Capitals.42";
    let service = Service::new(move |seen| {
        let mut answer = "ok".into_response();
        let name = HeaderName::from_bytes(format!("x-{}", seen.header("x-key").unwrap()).as_bytes()).unwrap();
        answer.headers_mut().insert(name, HeaderValue::from_static("1"));
        answer.headers_mut().insert("x-other", HeaderValue::from_static("1"));
        answer
    })
    .await;
    let (call, request) = asking(service.port, vec![("KEY", value)]);
    let answer = call.fetch(request, None).await.unwrap();
    let names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"x-other") && !names.iter().any(|name| name.contains("token")), "{names:?}");
}

#[tokio::test]
async fn longest_of_overlapping_values_is_redacted() {
    let service = Service::new(|seen| {
        let of = |name| seen.header(name).unwrap().to_owned();
        format!("{} {} {}{}", of("x-short"), of("x-long"), of("x-short"), of("x-short"))
    })
    .await;
    let (call, request) = asking(service.port, vec![("SHORT", "password"), ("LONG", "password-of-many-words")]);
    let seen = String::from_utf8(bytes(call.fetch(request, None).await.unwrap()).await).unwrap();
    assert_eq!(seen, "[secret SHORT] [secret LONG] [secret SHORT][secret SHORT]");
}

#[tokio::test]
async fn gzip_is_decoded_and_other_encodings_are_refused() {
    async fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzipEncoder::new(Vec::new());
        encoder.write_all(text).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder.into_inner()
    }
    async fn brotli(text: &[u8]) -> Vec<u8> {
        let mut encoder = BrotliEncoder::new(Vec::new());
        encoder.write_all(text).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder.into_inner()
    }
    let text = format!("<{VALUE}>").repeat(1000);
    let cleared = format!("<{NAMED}>").repeat(1000);
    let (zipped, brotlied) = (gzip(text.as_bytes()).await, brotli(text.as_bytes()).await);
    let twice = gzip(&zipped).await;
    for (codings, sent, readable) in [
        (vec!["gzip"], &zipped, true),
        (vec!["br"], &brotlied, false),
        (vec!["gzip, gzip"], &twice, false),
        (vec!["gzip", "gzip"], &twice, false),
        (vec!["deflate"], &zipped, false),
        (vec!["zstd"], &zipped, false),
        (vec!["x-own"], &zipped, false),
    ] {
        let named = codings.clone();
        let sent = sent.clone();
        let (_service, call, mut request) = asked(move |seen: Seen| {
            assert_eq!(seen.header("accept-encoding"), Some("gzip"), "whatever the tool asks for");
            let mut answer = Response::new(axum::body::Body::from(sent.clone()));
            for coding in &named {
                answer.headers_mut().append(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
            }
            answer
        })
        .await;
        request.headers.push(("Accept-Encoding".into(), "identity, x-own".into()));
        match call.fetch(request, None).await {
            Ok(answer) => {
                assert!(readable, "{codings:?}");
                assert_eq!(bytes(answer).await, cleared.as_bytes());
            }
            Err(error) => assert!(!readable && error.name == "TypeError", "{codings:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn data_around_a_body_is_not_visible() {
    // Informational heads, chunk extensions, trailers, a custom reason phrase, and a transfer
    // encoding.
    let chunked = format!(
        "HTTP/1.1 103 Early Hints\r\nlink: <{VALUE}>\r\n\r\n\
         HTTP/1.1 200 {VALUE}\r\ntransfer-encoding: chunked\r\ntrailer: x-key\r\n\r\n\
         2;key=\"{VALUE}\"\r\nok\r\n0\r\nx-key: {VALUE}\r\n\r\n"
    );
    let (call, request) = asking(raw::respond(chunked).await, vec![("KEY", VALUE)]);
    let answer = call.fetch(request, None).await.unwrap();
    let shown = format!("{} {} {:?} {}", answer.status, answer.status_text, answer.headers, answer.url);
    assert!(!shown.contains(VALUE) && !shown.contains("sk-live"), "{shown}");
    assert_eq!(bytes(answer).await, b"ok");

    let zipped = "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let (call, request) = asking(raw::respond(zipped).await, vec![("KEY", VALUE)]);
    assert_eq!(call.refused(request, None).await.name, "TypeError");
}

#[tokio::test]
async fn errors_do_not_contain_a_value() {
    for answer in [
        format!("{VALUE}\r\n\r\n"),
        format!("HTTP/1.1 abc {VALUE}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\nbad header {VALUE}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ncontent-length: {VALUE}\r\n\r\n"),
        format!("HTTP/1.1 302 Found\r\nlocation: http://[{VALUE}/\r\n\r\n"),
        format!("HTTP/1.1 302 Found\r\nlocation: gopher://x/{}\r\n\r\n", percent_all(VALUE)),
        format!("HTTP/1.1 700 {VALUE}\r\n\r\n"),
    ] {
        let (call, mut request) = asking(raw::respond_once(answer.clone()).await, vec![("KEY", VALUE)]);
        request.url = format!("{}?key={}", request.url, call.handle("KEY"));
        let error = call.refused(request, None).await;
        let said = &error.message;
        assert!(!said.contains("sk-live") && !said.contains("sk%2") && !said.contains("%73%6b"), "{answer}: {said}");
    }
}

#[tokio::test]
async fn body_that_fails_inside_a_value_does_not_show_its_start() {
    let start = &VALUE[..VALUE.len() - 2];
    let broken = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nok\nkey={start}");
    let (call, request) = asking(raw::respond_once(broken).await, vec![("KEY", VALUE)]);
    let mut answer = call.fetch(request, None).await.unwrap();
    let mut seen = Vec::new();
    let error = loop {
        match answer.body.try_next().await {
            Ok(piece) => seen.extend_from_slice(&piece.unwrap()),
            Err(error) => break error,
        }
    };
    assert_eq!(seen, b"ok\n", "{error}");

    // The same with the gate's own limit, which the service can aim at.
    let service = Service::new(|_| format!("{}{VALUE}", "x".repeat(90))).await;
    let host = format!("api.test:{}", service.port);
    let mut network = Network::new().inside(&host);
    network.options.max_response_bytes = 100;
    let call = Call::new(&network, listed(std::slice::from_ref(&host)), vec![secret("KEY", VALUE, &[&host])]);
    let answer = call.fetch(get(format!("http://{host}/")), None).await.unwrap();
    let seen: Vec<Result<bytes::Bytes, _>> = futures::StreamExt::collect(answer.body).await;
    assert!(seen.iter().flatten().all(|piece| !piece.windows(3).any(|three| three == b"sk-")), "{seen:?}");
}

#[tokio::test]
async fn range_requests_are_removed() {
    let (service, call, mut request) = asked(|_| "whole").await;
    request.headers.extend([("Range", "bytes=0-3"), ("If-Range", "x")].map(|(n, v)| (n.to_owned(), v.to_owned())));
    call.fetch(request, None).await.unwrap();
    assert!(service.last().header("range").is_none() && service.last().header("if-range").is_none());

    let (_service, call, request) =
        asked(|_| [(header::ETAG, "\"1\""), (header::CONTENT_LENGTH, "2")].into_response()).await;
    let answer = call.fetch(FetchRequest { method: "HEAD".into(), ..request }, None).await.unwrap();
    let names: Vec<&str> = answer.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"etag") && !names.contains(&"content-length"), "{names:?}");

    // A call without secrets can ask for a range.
    let service = Service::ok().await;
    let host = format!("api.test:{}", service.port);
    let call = Call::new(&Network::new().inside(&host), listed(std::slice::from_ref(&host)), Vec::new());
    let answer = call.fetch(with_headers(format!("http://{host}/"), &[("Range", "bytes=0-3")]), None).await.unwrap();
    assert_eq!(service.last().header("range"), Some("bytes=0-3"));
    assert!(answer.headers.contains(&("content-length".into(), "2".into())));
}

#[tokio::test]
async fn readable_values_are_not_redacted_for_the_tool() {
    let service = Service::new(|seen| seen.header("x-key").unwrap().to_owned()).await;
    let host = format!("api.test:{}", service.port);
    let readable = HeldSecret { readable: true, ..secret("KEY", VALUE, &[]) };
    let call = Call::new(&Network::new().inside(&host), listed(std::slice::from_ref(&host)), vec![readable]);
    let answer = call.fetch(with_headers(format!("http://{host}/"), &[("x-key", VALUE)]), None).await.unwrap();
    assert_eq!(bytes(answer).await, VALUE.as_bytes());
}

#[tokio::test]
async fn streamed_events_are_passed_on_immediately() {
    // Each event is passed on when it arrives, even if the stream never ends.
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<bytes::Bytes, std::convert::Infallible>>(1);
    let receiver = std::sync::Arc::new(std::sync::Mutex::new(Some(receiver)));
    let (_service, call, request) = asked(move |_| {
        let receiver = receiver.lock().unwrap().take().unwrap();
        let pieces =
            futures::stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) });
        Response::new(axum::body::Body::from_stream(pieces))
    })
    .await;
    let mut answer = call.fetch(request, None).await.unwrap();
    for event in ["data: one\n\n", "data: s\n\n", "data: sk-live\n\n"] {
        sender.send(Ok(event.into())).await.unwrap();
        assert_eq!(answer.body.try_next().await.unwrap().unwrap(), event);
    }
    // The position of the cut does not reveal whether a guess was right: the bytes after a right
    // guess arrive like those after a wrong one.
    let mut seen = Vec::new();
    for guess in ["data: sk-l", "data: zz-l"] {
        let more = format!("{guess}{}", "-".repeat(2000));
        sender.send(Ok(more.into())).await.unwrap();
        seen.push(answer.body.try_next().await.unwrap().unwrap().len());
        sender.send(Ok("\n".into())).await.unwrap();
        answer.body.try_next().await.unwrap().unwrap();
    }
    assert_eq!(seen[0], seen[1]);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The tool sees the same, however the server splits its response.
    #[test]
    fn value_is_redacted_however_the_body_is_split(
        order in proptest::collection::vec(0_usize..15, 1..6),
        cuts in proptest::collection::vec(0_usize..400, 0..12),
    ) {
        let spellings = spellings(VALUE);
        let text = order.iter().flat_map(|index| [".", &spellings[*index]]).collect::<String>();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<Vec<u8>> = cuts.windows(2).map(|cut| text.as_bytes()[cut[0]..cut[1]].to_vec()).collect();
        let seen = runtime().block_on(async {
            let (_service, call, request) = asked(move |_| in_pieces(pieces.clone())).await;
            bytes(call.fetch(request, None).await.unwrap()).await
        });
        prop_assert_eq!(String::from_utf8(seen).unwrap(), format!(".{NAMED}").repeat(order.len()));
    }
}

#[tokio::test]
async fn location_with_the_value_is_redacted() {
    let (_service, call, mut request) = asked(|seen| {
        let to = format!("https://elsewhere.test/?k={}", percent_all(seen.header("x-key").unwrap()));
        (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
    })
    .await;
    request.redirect = Redirect::Manual;
    let answer = call.fetch(request, None).await.unwrap();
    assert!(answer.headers.contains(&("location".into(), format!("https://elsewhere.test/?k={NAMED}"))));
}

const IN_QUERY: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The spellings in which the gate itself writes the value.
fn written(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    vec![
        value.to_owned(),
        url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
        percent_encoding::utf8_percent_encode(value, IN_QUERY).to_string(),
        json[1..json.len() - 1].to_owned(),
    ]
}

#[tokio::test]
async fn unfinished_escape_before_a_value_does_not_hide_it() {
    let value = "a1/bc+DE=fg0123456789\"xyz";
    let prefixes = ["%", "%4", "\\", "\\u", "\\u0", "\\u00", "\\u004", "\\ud83d\\", "%2", "=", "\\x4"];
    for value in [value, "n2/bc+DE=fg0123456789", "\"n/bc+DE\\fg0123456789", "\\\\n01 23456789%ab"] {
        let sent: String = prefixes
            .iter()
            .flat_map(|prefix| written(value).into_iter().map(move |text| format!("<{prefix}{text}>\n")))
            .collect();
        let expected: String = prefixes.iter().map(|prefix| format!("<{prefix}{NAMED}>\n").repeat(4)).collect();
        let service = Service::new(move |_| sent.clone()).await;
        let (call, request) = asking(service.port, vec![("KEY", value)]);
        let seen = bytes(call.fetch(request, None).await.unwrap()).await;
        assert_eq!(String::from_utf8(seen).unwrap(), expected);
    }
}

#[tokio::test]
async fn spellings_of_the_gate_are_redacted_when_encoded_once_more() {
    let basic = BASE64_STANDARD.encode(format!("user:{VALUE}"));
    let mut sent = vec![BASE64_STANDARD.encode(&basic)];
    for text in written(VALUE) {
        for before in ["", "k", "k="] {
            sent.push(BASE64_STANDARD.encode(format!("{before}{text}")));
            sent.push(BASE64_URL_SAFE_NO_PAD.encode(format!("{before}{text}")));
        }
        sent.push(text.bytes().fold(String::new(), |hex, byte| hex + &format!("{byte:02X}")));
        let json = serde_json::Value::from(text.as_str()).to_string();
        sent.push(json[1..json.len() - 1].to_owned());
        sent.push(url::form_urlencoded::byte_serialize(text.as_bytes()).collect());
    }
    let answer = sent.join("\n");
    let (_service, call, request) = asked(move |_| answer.clone()).await;
    let seen = String::from_utf8(bytes(call.fetch(request, None).await.unwrap()).await).unwrap();
    for (sent, seen) in sent.iter().zip(seen.lines()) {
        assert_eq!(seen.matches(NAMED).count(), 1, "{sent} -> {seen}");
        // What remains belongs to adjacent bytes: `user:` in base64 twice, and the last digit with
        // its padding.
        assert!(seen.replace(NAMED, "").trim_end_matches('=').len() <= 14, "{sent} -> {seen}");
    }
}
