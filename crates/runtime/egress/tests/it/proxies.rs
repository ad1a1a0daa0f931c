//! Proxies from the environment do not apply to tools' requests: a proxy would connect instead of
//! the gate.

use std::process::Command;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::routing::get as on_get;

use rcrt_test_servers::network::{Network, get, listed, serve, text};
use rcrt_test_servers::raw;

#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    let (proxy, connections) = raw::serve(async |_stream| Ok(())).await;
    let port = serve(Router::new().route("/", on_get(|| async { "direct" }))).await;
    let mut again = Command::new(std::env::current_exe().unwrap());
    again
        .args(["--exact", "proxies::fetch_with_proxies_in_the_environment", "--ignored"])
        .env("RCRT_TEST_PORT", port.to_string());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        again.env(name, format!("http://127.0.0.1:{proxy}"));
        again.env(name.to_ascii_lowercase(), format!("http://127.0.0.1:{proxy}"));
    }
    again.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
    let output = tokio::task::spawn_blocking(move || again.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
#[ignore = "run by the test above, in a process with proxies in its environment"]
async fn fetch_with_proxies_in_the_environment() {
    let port: u16 = std::env::var("RCRT_TEST_PORT").unwrap().parse().unwrap();
    let network = Network::new().inside(&format!("api.test:{port}"));
    let rules = listed(&[format!("api.test:{port}")]);
    let answer = network.gate().fetch(&rules, get(format!("http://api.test:{port}/")), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "direct");
}
