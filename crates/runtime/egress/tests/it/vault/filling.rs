//! Which requests get a value, and which do not.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use rcrt_egress::{HeldSecret, NetRules};
use serde_json::{Value, json};

use super::{Call, VALUE, body, post, secret, with_headers};
use rcrt_test_servers::network::{Network, get, listed, text};
use rcrt_test_servers::service::Service;

async fn bound(secrets: impl FnOnce(&str) -> Vec<HeldSecret>) -> (Service, Call, String) {
    let service = Service::ok().await;
    let host = format!("api.test:{}", service.port);
    let network = Network::new().inside(&host);
    let call = Call::new(&network, listed(std::slice::from_ref(&host)), secrets(&host));
    (service, call, format!("http://{host}"))
}

#[tokio::test]
async fn headers_are_filled_including_basic_credentials() {
    let (service, call, base) = bound(|host| vec![secret("KEY", VALUE, &[host])]).await;
    let handle = call.handle("KEY");
    assert!(handle.starts_with("rcrt_secret_KEY_") && handle.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
    let basic = BASE64_STANDARD.encode(format!("user:{handle}"));
    let unpadded = BASE64_STANDARD_NO_PAD.encode(format!("{handle}:"));
    let headers = [
        ("authorization", format!("Bearer {handle}")),
        ("x-two", format!("{handle},{handle}")),
        ("x-basic", format!("Basic {basic}")),
        ("x-lower", format!("basic {unpadded}")),
        ("cookie", format!("session={handle}; a=b")),
        ("x-plain", "Basic !!".to_owned()),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    call.fetch(with_headers(base, &headers), None).await.unwrap();
    let seen = service.last();
    assert_eq!(seen.header("authorization").unwrap(), format!("Bearer {VALUE}"));
    assert_eq!(seen.header("x-two").unwrap(), format!("{VALUE},{VALUE}"));
    assert_eq!(seen.header("cookie").unwrap(), format!("session={VALUE}; a=b"));
    assert_eq!(seen.header("x-basic").unwrap(), format!("Basic {}", BASE64_STANDARD.encode(format!("user:{VALUE}"))));
    assert_eq!(seen.header("x-lower").unwrap(), format!("Basic {}", BASE64_STANDARD.encode(format!("{VALUE}:"))));
    assert_eq!(seen.header("x-plain").unwrap(), "Basic !!");
}

#[tokio::test]
async fn handle_has_only_letters_digits_and_underscores() {
    let name = "OpenRouter (work) a.b:c/d@e+f-g";
    let (service, call, base) = bound(|host| vec![secret(name, VALUE, &[host])]).await;
    let handle = call.handle(name);
    assert!(handle.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{handle}");
    call.fetch(with_headers(base, &[("authorization", &handle)]), None).await.unwrap();
    assert_eq!(service.last().header("authorization").unwrap(), VALUE);
}

#[tokio::test]
async fn queries_and_bodies_are_filled_in_their_encoding() {
    let (service, call, base) = bound(|host| vec![secret("KEY", VALUE, &[host])]).await;
    let handle = call.handle("KEY");
    let answer = call.fetch(get(format!("{base}/p?a=1&key={handle}&b=%20")), None).await.unwrap();
    assert_eq!(answer.url, format!("{base}/p?a=1&key={handle}&b=%20"), "as the tool wrote it");
    let uri = service.last().uri;
    let url = url::Url::parse(&format!("http://x{uri}")).unwrap();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    assert_eq!(pairs, [("a", "1"), ("key", VALUE), ("b", " ")].map(|(k, v)| (k.to_owned(), v.to_owned())));

    for kind in ["application/json", "Application/VND.api+json; charset=utf-8"] {
        let written = json!({"token": handle, "deep": [{"in": format!("<{handle}>")}]}).to_string();
        call.fetch(post(base.clone(), kind), body(&written)).await.unwrap();
        let seen: Value = serde_json::from_str(&service.last().body).unwrap();
        assert_eq!(seen, json!({"token": VALUE, "deep": [{"in": format!("<{VALUE}>")}]}));
    }
    let form = post(base.clone(), "application/x-www-form-urlencoded;charset=UTF-8");
    call.fetch(form, body(&format!("a=b&key={handle}"))).await.unwrap();
    let pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(service.last().body.as_bytes()).into_owned().collect();
    assert_eq!(pairs[1], ("key".to_owned(), VALUE.to_owned()));
    call.fetch(post(base, "text/plain"), body(&format!("{handle}!{handle}"))).await.unwrap();
    let seen = service.last();
    assert_eq!(seen.body, format!("{VALUE}!{VALUE}"));
    assert_eq!(seen.header("content-length").unwrap(), seen.body.len().to_string());
}

#[tokio::test]
async fn foreign_or_modified_handle_is_plain_text() {
    let (service, call, base) = bound(|host| vec![secret("KEY", VALUE, &[host])]).await;
    let (_, other, _) = bound(|host| vec![secret("KEY", VALUE, &[host])]).await;
    let handle = call.handle("KEY");
    assert_ne!(handle, other.handle("KEY"));
    let last = if handle.ends_with('0') { "1" } else { "0" };
    let changed = format!("{}{last}", &handle[..handle.len() - 1]);
    for text in [other.handle("KEY"), changed, handle.to_lowercase(), handle[..handle.len() - 1].to_owned()] {
        call.fetch(with_headers(format!("{base}/?q={text}"), &[("x-key", &text)]), None).await.unwrap();
        let seen = service.last();
        assert_eq!(seen.header("x-key"), Some(text.as_str()));
        assert_eq!(seen.uri.query(), Some(format!("q={text}").as_str()));
    }
}

#[tokio::test]
async fn other_hosts_and_ports_get_no_value() {
    let service = Service::ok().await;
    let port = service.port;
    let hosts = ["api.test", "sub.api.test", "other.test", "api.test.evil.test"].map(|host| format!("{host}:{port}"));
    let network = hosts.iter().fold(Network::new(), |network, host| network.inside(host));
    for (binding, open) in [
        (vec![hosts[0].clone()], vec![0]),
        (vec![format!("*.api.test:{port}")], vec![1]),
        (vec!["api.test".to_owned()], vec![]),
        (vec![hosts[2].clone(), hosts[0].clone()], vec![0, 2]),
        (vec![], vec![]),
    ] {
        let binding: Vec<&str> = binding.iter().map(String::as_str).collect();
        let call = Call::new(&network, listed(&hosts), vec![secret("KEY", VALUE, &binding)]);
        let handle = call.handle("KEY");
        for (index, host) in hosts.iter().enumerate() {
            let url = format!("http://{host}/");
            let basic = BASE64_STANDARD.encode(format!("u:{handle}"));
            let requests = [
                (with_headers(url.clone(), &[("x-key", &handle)]), None),
                (with_headers(url.clone(), &[("authorization", &format!("Basic {basic}"))]), None),
                (get(format!("{url}?k={handle}")), None),
                (post(url.clone(), "text/plain"), body(&format!("k={handle}"))),
            ];
            for (request, body) in requests {
                if open.contains(&index) {
                    call.fetch(request, body).await.unwrap();
                    continue;
                }
                let before = service.seen().len();
                let error = call.refused(request, body).await;
                assert_eq!(error.name, "PermissionDenied", "{error}");
                let said = &error.message;
                assert!(said.contains("\"KEY\"") && said.contains(host.as_str()) && !said.contains(VALUE), "{said}");
                assert_eq!(service.seen().len(), before, "nothing was sent");
            }
        }
    }
}

#[tokio::test]
async fn value_is_filled_only_in_header_values_the_query_and_the_body() {
    let (service, call, base) = bound(|host| vec![secret("key", VALUE, &[host])]).await;
    let handle = call.handle("key");
    let upper = handle.to_uppercase();
    let mut requests = vec![
        get(format!("{base}/{handle}/x")),
        get(format!("{base}/a;{upper}")),
        with_headers(base.clone(), &[(&format!("x-{upper}"), "1")]),
    ];
    requests.push(rcrt_breadcrumb::FetchRequest { method: handle.clone(), ..get(base.clone()) });
    for request in requests {
        let shown = format!("{request:?}");
        let error = call.refused(request, None).await;
        assert_eq!(error.name, "PermissionDenied", "{shown}: {error}");
        assert!(error.message.contains("\"key\"") && error.message.contains("api.test"), "{error}");
    }
    let inside_host = Call::new(&Network::new(), NetRules::EveryHost, vec![secret("k", VALUE, &["*.api.test"])]);
    let url = format!("https://{}.api.test/", inside_host.handle("k"));
    let error = inside_host.refused(get(url), None).await;
    assert!(error.name == "PermissionDenied" && error.message.contains("\"k\""), "{error}");
    assert!(service.seen().is_empty());
}

#[tokio::test]
async fn value_needs_https_on_the_internet() {
    let network = Network::new();
    let call = Call::new(&network, NetRules::EveryHost, vec![secret("KEY", VALUE, &["api.test"])]);
    let handle = call.handle("KEY");
    let error = call.refused(with_headers("http://api.test/".into(), &[("x", &handle)]), None).await;
    assert!(error.name == "PermissionDenied" && error.message.contains("https"), "{error}");
    assert!(network.names.asked().is_empty());
    let error = call.refused(with_headers("https://api.test/".into(), &[("x", &handle)]), None).await;
    assert!(error.name == "TypeError" && error.message.contains("cannot be resolved"), "{error}");
}

#[tokio::test]
async fn value_invalid_in_a_header_is_reported_without_the_value() {
    let value = "two\nlines of it";
    let (service, call, base) = bound(|host| vec![secret("PEM", value, &[host])]).await;
    let error = call.refused(with_headers(base.clone(), &[("x-pem", &call.handle("PEM"))]), None).await;
    assert!(
        error.name == "TypeError" && error.message.contains("x-pem") && !error.message.contains("lines"),
        "{error}"
    );
    assert!(service.seen().is_empty());
    call.fetch(post(base, "application/json"), body(&format!("\"{}\"", call.handle("PEM")))).await.unwrap();
    assert_eq!(service.last().body, "\"two\\nlines of it\"");
}

#[tokio::test]
async fn size_of_a_filled_body_is_limited() {
    let service = Service::ok().await;
    let host = format!("api.test:{}", service.port);
    let mut network = Network::new().inside(&host);
    network.options.max_request_bytes = 1000;
    let value = "v".repeat(600);
    let call = Call::new(&network, listed(std::slice::from_ref(&host)), vec![secret("K", &value, &[&host])]);
    let handle = call.handle("K");
    let url = format!("http://{host}/");
    assert_eq!(text(call.fetch(post(url.clone(), "text/plain"), body(&handle)).await.unwrap()).await.unwrap(), "ok");
    for large in [format!("{handle}{handle}"), "x".repeat(1001)] {
        let error = call.refused(post(url.clone(), "text/plain"), body(&large)).await;
        assert_eq!(error.name, "ResourceExhausted");
    }
    assert_eq!(service.seen().len(), 1);
}

#[tokio::test]
async fn readable_secret_can_be_sent_wherever_the_tool_can_connect() {
    let readable = |host: &str| vec![HeldSecret { readable: true, ..secret("KEY", VALUE, &[host]) }];
    let (service, call, base) = bound(readable).await;
    assert_eq!(call.handle("KEY"), VALUE);
    call.fetch(with_headers(base, &[("x-key", VALUE)]), None).await.unwrap();
    assert_eq!(service.last().header("x-key"), Some(VALUE));
}

#[tokio::test]
async fn handle_after_an_unfinished_escape_is_refused() {
    let (service, call, base) = bound(|host| vec![secret("KEY", VALUE, &[host])]).await;
    let handle = call.handle("KEY");
    let unfinished = ["%", "%4", "\\", "\\u", "\\u0", "\\u00", "\\u004", "\\\\\\"];
    for prefix in unfinished {
        for kind in ["application/json", "application/x-www-form-urlencoded", "text/plain"] {
            let error = call.refused(post(base.clone(), kind), body(&format!("k={prefix}{handle}"))).await;
            assert_eq!(error.name, "PermissionDenied", "{prefix}");
            assert!(error.message.contains("unfinished escape"), "{}", error.message);
        }
        let header = format!("{prefix}{handle}");
        assert_eq!(call.refused(with_headers(base.clone(), &[("x-k", &header)]), None).await.name, "PermissionDenied");
    }
    for prefix in ["%", "%4"] {
        assert_eq!(call.refused(get(format!("{base}/?k={prefix}{handle}")), None).await.name, "PermissionDenied");
    }
    assert!(service.seen().is_empty());
    for prefix in ["%41", "4", "\\\\", "\\u0041", "u00"] {
        call.fetch(post(base.clone(), "text/plain"), body(&format!("{prefix}{handle}"))).await.unwrap();
        assert_eq!(service.last().body, format!("{prefix}{VALUE}"));
    }
}
