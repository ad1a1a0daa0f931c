//! Redirects by a server that got a value, or that was not meant to get it.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rcrt_breadcrumb::OpError;

use super::{Call, VALUE, body, post, secret, with_headers};
use rcrt_test_servers::network::{Network, get, listed, text};
use rcrt_test_servers::service::{Seen, Service};

fn to(status: u16, location: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    (status, [(header::LOCATION, location.to_owned())]).into_response()
}

/// Two hosts; the first one redirects as the test says. The secret is bound to the first one, or to
/// both.
async fn two<F>(both: bool, redirect: F) -> (Service, Service, Call, String)
where
    F: Fn(Seen, &str) -> Response + Clone + Send + Sync + 'static,
{
    let second = Service::ok().await;
    let there = format!("http://other.test:{}", second.port);
    let first = Service::new(move |seen| match seen.uri.path() {
        "/end" => "end".into_response(),
        _ => redirect(seen, &there),
    })
    .await;
    let hosts = [format!("api.test:{}", first.port), format!("other.test:{}", second.port)];
    let network = Network::new().inside(&hosts[0]).inside(&hosts[1]);
    let bound: &[&str] = if both { &[&hosts[0], &hosts[1]] } else { &[&hosts[0]] };
    let call = Call::new(&network, listed(&hosts), vec![secret("KEY", VALUE, bound)]);
    let url = format!("http://{}/start", hosts[0]);
    (first, second, call, url)
}

fn denied(error: &OpError) {
    assert_eq!(error.name, "PermissionDenied", "{error}");
    assert!(error.message.contains("\"KEY\"") && error.message.contains("other.test"), "{error}");
    assert!(!error.message.contains("sk-live"), "{error}");
}

#[tokio::test]
async fn same_origin_is_filled_again() {
    let (first, _second, call, url) = two(false, |_, _| to(307, "/end?again=1")).await;
    let handle = call.handle("KEY");
    let request = rcrt_breadcrumb::FetchRequest {
        method: "POST".into(),
        ..with_headers(url, &[("authorization", &format!("Bearer {handle}")), ("content-type", "text/plain")])
    };
    let answer = call.fetch(request, body(&handle)).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "end");
    for seen in first.seen() {
        assert_eq!((seen.header("authorization").unwrap(), seen.body.as_str()), (&*format!("Bearer {VALUE}"), VALUE));
    }
    assert_eq!(first.seen().len(), 2);
}

#[tokio::test]
async fn another_origin_gets_no_header_with_a_value_even_if_bound() {
    for both in [false, true] {
        let (_first, second, call, url) = two(both, |_, there| to(302, &format!("{there}/x"))).await;
        let handle = call.handle("KEY");
        let headers =
            [("authorization", format!("Bearer {handle}")), ("accept", format!("text/{handle}")), ("x-k", handle)];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        call.fetch(with_headers(url, &headers), None).await.unwrap();
        let seen = second.last();
        assert!(
            seen.headers.iter().all(|(_, value)| !value.contains("sk-live") && !value.contains("rcrt_")),
            "{seen:?}"
        );
    }
}

#[tokio::test]
async fn another_origin_gets_no_body_with_a_value() {
    for both in [false, true] {
        let (_first, second, call, url) = two(both, |_, there| to(307, there)).await;
        let written = format!("{{\"k\":\"{}\"}}", call.handle("KEY"));
        denied(&call.refused(post(url.clone(), "application/json"), body(&written)).await);
        assert!(second.seen().is_empty());
        // A body without a handle is sent again.
        call.fetch(post(url, "application/json"), body("{}")).await.unwrap();
        assert_eq!(second.last().body, "{}");
    }
}

#[tokio::test]
async fn redirect_with_the_value_is_followed_only_to_bound_hosts() {
    let carry = |seen: Seen, there: &str| to(302, &format!("{there}/x?{}", seen.uri.query().unwrap()));
    let (_first, second, call, url) = two(false, carry).await;
    denied(&call.refused(get(format!("{url}?key={}", call.handle("KEY"))), None).await);
    assert!(second.seen().is_empty());

    let (_first, second, call, url) = two(true, carry).await;
    let answer = call.fetch(get(format!("{url}?key={}", call.handle("KEY"))), None).await.unwrap();
    assert!(second.last().uri.query().unwrap().starts_with("key=sk-live"), "{:?}", second.last());
    assert!(answer.redirected && answer.url.contains("secret") && !answer.url.contains("sk-live"), "{}", answer.url);
    url::Url::parse(&answer.url).unwrap();
}

#[tokio::test]
async fn value_in_the_path_or_host_of_a_redirect_is_refused() {
    let value = "plainvalue123";
    for (location, bound) in [
        ("http://other.test:PORT/plainvalue123/x", "api.test:FIRST"),
        ("http://other.test:PORT/cGxhaW52YWx1ZTEyMw==", "api.test:FIRST"),
        ("http://plainvalue123.other.test:PORT/", "*.other.test:PORT"),
        ("http://PLAINVALUE123.other.test:PORT/", "*.other.test:PORT"),
    ] {
        let second = Service::ok().await;
        let location = location.replace("PORT", &second.port.to_string());
        let first = Service::new(move |_| to(302, &location)).await;
        let ports =
            |text: &str| text.replace("PORT", &second.port.to_string()).replace("FIRST", &first.port.to_string());
        let hosts = ["api.test:FIRST", "other.test:PORT", "plainvalue123.other.test:PORT"].map(ports);
        let network = hosts.iter().fold(Network::new(), |network, host| network.inside(host));
        let call = Call::new(&network, listed(&hosts), vec![secret("KEY", value, &[&ports(bound)])]);
        let error = call.refused(get(format!("http://{}/", hosts[0])), None).await;
        assert_eq!(error.name, "PermissionDenied", "{error}");
        assert!(!error.message.contains(value), "{error}");
        assert!(second.seen().is_empty());
        assert!(!network.names.asked().iter().any(|name| name.contains(value)), "no name with the value is resolved");
    }
}
