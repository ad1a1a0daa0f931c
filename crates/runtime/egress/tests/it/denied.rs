//! Hosts that the operator denies. Nothing overrides them.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get as on_get;
use rcrt_breadcrumb::OpError;
use rcrt_egress::{DeniedHost, NetRules};

use rcrt_test_servers::network::{LOOPBACK, Network, TestEgress, get, listed, serve, text};

fn denying(network: &Network, entries: &[&str]) -> TestEgress {
    let denied: Vec<DeniedHost> = entries.iter().map(|entry| entry.parse().unwrap()).collect();
    let network = Network {
        names: network.names.clone(),
        options: rcrt_egress::EgressOptions { denied: denied.into(), ..network.options.clone() },
    };
    network.gate()
}

async fn refused(gate: &TestEgress, rules: &NetRules, url: &str) -> OpError {
    let error = gate.fetch(rules, get(url), None).await.map(|answer| answer.status).unwrap_err();
    assert_eq!(error.name, "PermissionDenied", "{url}: {}", error.message);
    assert!(error.message.contains("the operator denies"), "{url}: {}", error.message);
    error
}

#[tokio::test]
async fn denied_name_is_not_resolved() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let network = Network::new().inside(&format!("api.test:{port}")).inside(&format!("a.other.test:{port}"));
    let rules = listed(&[format!("api.test:{port}"), format!("*.other.test:{port}")]);
    let gate = denying(&network, &["api.test", "*.other.test"]);
    for url in [
        format!("http://api.test:{port}/"),
        format!("http://API.TEST.:{port}/"),
        format!("http://a.other.test:{port}/"),
    ] {
        refused(&gate, &rules, &url).await;
    }
    // Also for a tool with unrestricted access.
    refused(&gate, &NetRules::EveryHost, "https://api.test/").await;
    assert!(network.names.asked().is_empty());
    // Without the rule the host is reached.
    let answer = denying(&network, &["api.tests"]).fetch(&rules, get(format!("http://api.test:{port}/")), None).await;
    assert_eq!(text(answer.unwrap()).await.unwrap(), "inside");
}

#[tokio::test]
async fn allowed_name_with_a_denied_address_is_refused() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let rules = listed(&[format!("api.test:{port}"), format!("127.0.0.1:{port}")]);
    for entry in ["127.0.0.0/8", "127.0.0.1"] {
        refused(&denying(&network, &[entry]), &rules, &format!("http://api.test:{port}/")).await;
    }
    // As its mapped form, among public ones, and as a literal in the URL.
    network.names.set("mixed.test", vec![vec!["93.184.215.14".parse().unwrap(), "::ffff:198.18.7.7".parse().unwrap()]]);
    network.names.set("public.test", vec![vec!["93.184.215.14".parse().unwrap()]]);
    refused(&denying(&network, &["198.18.0.0/15"]), &NetRules::EveryHost, "http://mixed.test/").await;
    refused(&denying(&network, &["93.184.0.0/16"]), &NetRules::EveryHost, "http://public.test/").await;
    refused(&denying(&network, &["93.184.0.0/16"]), &NetRules::EveryHost, "http://93.184.215.14/").await;
    let literal = Network::new().inside(&format!("127.0.0.1:{port}"));
    refused(&denying(&literal, &["127.0.0.0/8"]), &rules, &format!("http://127.0.0.1:{port}/")).await;
    assert_eq!(LOOPBACK.to_string(), "127.0.0.1");
}

#[tokio::test]
async fn redirect_to_a_denied_host_is_refused() {
    let inner = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let to = format!("http://denied.test:{inner}/");
    let redirect = move || async move { (StatusCode::FOUND, [(header::LOCATION, to)]) };
    let outer = serve(Router::new().route("/", on_get(redirect))).await;
    let network = Network::new().inside(&format!("api.test:{outer}")).inside(&format!("denied.test:{inner}"));
    let rules = listed(&[format!("api.test:{outer}"), format!("denied.test:{inner}")]);
    let url = format!("http://api.test:{outer}/");
    let answer = network.gate().fetch(&rules, get(url.clone()), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "inside");
    refused(&denying(&network, &["denied.test"]), &rules, &url).await;
}
