//! The gate with a real name server, a lying one and a silent one.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use rcrt_breadcrumb::OpError;
use rcrt_egress::{Egress, NetRules, Resolver, SystemResolver};

use rcrt_test_servers::PATIENCE;
use rcrt_test_servers::dns::{A, AAAA, NameServer, Reply};
use rcrt_test_servers::network::{LOOPBACK, Network, TestEgress, get, listed, serve, text};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn asking(server: &NameServer, network: &Network) -> TestEgress {
    asking_for(PATIENCE, server, network)
}

/// A gate with this time for a lookup.
fn asking_for(timeout: Duration, server: &NameServer, network: &Network) -> TestEgress {
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver::with_servers(&[server.address]).unwrap());
    let mut options = network.options.clone();
    options.lookup_timeout = timeout;
    // A lookup is a part of connecting.
    options.connect_timeout = options.connect_timeout.max(timeout);
    TestEgress(Egress::with_resolver(options, &resolver).unwrap())
}

async fn refused(gate: &TestEgress, name: &str) -> OpError {
    let answer = gate.fetch(&NetRules::EveryHost, get(format!("http://{name}/")), None).await;
    answer.map(|answer| answer.status).unwrap_err()
}

#[tokio::test]
async fn permitted_name_is_resolved_unchanged_and_connected_to() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let server = NameServer::start().await;
    server.set("api.test", vec![Reply::Addresses(vec![LOOPBACK])]);
    let network = Network::new().inside(&format!("api.test:{port}"));
    let gate = asking(&server, &network);
    let rules = listed(&[format!("api.test:{port}")]);
    let answer = gate.fetch(&rules, get(format!("http://API.test.:{port}/")), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "inside");
    let mut asked = server.asked();
    asked.sort();
    assert_eq!(asked, [("api.test".to_owned(), A), ("api.test".to_owned(), AAAA)]);

    for name in ["other.test", "secret-data.api.test", "api.test.evil.test"] {
        let error = gate.fetch(&rules, get(format!("http://{name}:{port}/")), None).await;
        assert_eq!(error.map(|answer| answer.status).unwrap_err().name, "PermissionDenied");
    }
    assert_eq!(server.asked().len(), 2, "a name that is not permitted is not resolved");
}

#[tokio::test]
async fn names_with_internal_addresses_are_refused() {
    let server = NameServer::start().await;
    let public = address("93.184.215.14");
    for (name, reply) in [
        ("plain.evil.test", Reply::Addresses(vec![LOOPBACK])),
        ("mixed.evil.test", Reply::Addresses(vec![public, address("10.0.0.7")])),
        ("six.evil.test", Reply::Addresses(vec![public, address("fd00:ec2::254")])),
        ("mapped.evil.test", Reply::Addresses(vec![address("::ffff:169.254.169.254")])),
        ("nat64.evil.test", Reply::Addresses(vec![address("64:ff9b::7f00:1")])),
        ("sixtofour.evil.test", Reply::Addresses(vec![address("2002:7f00:1::1")])),
        ("isatap.evil.test", Reply::Addresses(vec![address("2600:1406::5efe:7f00:1")])),
        ("alias.evil.test", Reply::Alias("localtarget.test".into(), vec![address("192.168.1.1")])),
        ("zero.evil.test", Reply::Addresses(vec![address("0.0.0.0")])),
        ("azure.evil.test", Reply::Addresses(vec![address("168.63.129.16")])),
    ] {
        server.set(name, vec![reply]);
        let error = refused(&asking(&server, &Network::new()), name).await;
        assert!(error.name == "PermissionDenied" && error.message.contains("non-public"), "{name}: {error}");
    }
}

#[tokio::test]
async fn name_is_refused_once_its_address_becomes_internal() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let server = NameServer::start().await;
    let inward = Reply::Addresses(vec![address("169.254.169.254")]);
    server.set("rebind.test", vec![Reply::Addresses(vec![LOOPBACK]), inward, Reply::Addresses(vec![LOOPBACK])]);
    let gate = asking(&server, &Network::new().inside(&format!("rebind.test:{port}")));
    let rules = listed(&[format!("rebind.test:{port}")]);
    let mut ends = Vec::new();
    for _ in 0..3 {
        let answer = gate.fetch(&rules, get(format!("http://rebind.test:{port}/")), None).await;
        ends.push(answer.map_or_else(|error| error.name, |answer| answer.status.to_string()));
    }
    assert_eq!(ends, ["200", "PermissionDenied", "200"]);
}

#[tokio::test]
async fn allowed_private_name_cannot_have_reserved_addresses() {
    let server = NameServer::start().await;
    let network = Network::new().inside("*.corp.test");
    for (name, inside) in [
        ("metadata.corp.test", "169.254.169.254"),
        ("aws.corp.test", "fd00:ec2::254"),
        ("alibaba.corp.test", "100.100.100.200"),
        ("link.corp.test", "fe80::1"),
        ("any.corp.test", "0.0.0.0"),
        ("group.corp.test", "224.0.0.1"),
    ] {
        server.set(name, vec![Reply::Addresses(vec![address(inside)])]);
        let error = refused(&asking(&server, &network), name).await;
        assert!(error.name == "PermissionDenied" && error.message.contains("non-public"), "{name}: {error}");
    }
}

#[tokio::test]
async fn private_host_is_only_for_the_named_tool() {
    let port = serve(Router::new().route("/", on_get(|| async { "model" }))).await;
    let server = NameServer::start().await;
    server.set("ollama.test", vec![Reply::Addresses(vec![LOOPBACK])]);
    let mut network = Network::new();
    for entry in [format!("chat=ollama.test:{port}"), format!("chat=127.0.0.1:{port}")] {
        network.options.allowed_private.push(entry.parse().unwrap());
    }
    let gate = asking(&server, &network);
    for host in ["ollama.test", "127.0.0.1"] {
        let rules = listed(&[format!("{host}:{port}")]);
        let request = || get(format!("http://{host}:{port}/"));
        assert_eq!(text(gate.fetch_as("chat", &rules, request(), None).await.unwrap()).await.unwrap(), "model");
        for other in ["chat2", "Chat", ""] {
            let error = gate.fetch_as(other, &rules, request(), None).await.map(|answer| answer.status).unwrap_err();
            assert!(error.name == "PermissionDenied" && error.message.contains("non-public"), "{other}: {error}");
        }
    }
}

#[tokio::test]
async fn failing_lying_and_silent_name_servers_are_errors() {
    let server = NameServer::start().await;
    for (name, reply) in [
        ("gone.test", Reply::NoSuchName),
        ("broken.test", Reply::Failure),
        ("garbage.test", Reply::Garbage),
        ("silent.test", Reply::Silence),
        ("number.test", Reply::WrongNumber(LOOPBACK)),
        ("smuggled.test", Reply::Smuggled("victim.test".into(), LOOPBACK)),
        ("nothing.test", Reply::Addresses(vec![])),
        ("circle.test", Reply::Alias("circle.test".into(), vec![])),
    ] {
        // No usable response arrives for these.
        let is_silent = matches!(reply, Reply::Silence | Reply::WrongNumber(_) | Reply::Garbage);
        server.set(name, vec![reply]);
        let network = Network::new().inside(name);
        let gate = if is_silent {
            asking_for(Duration::from_millis(500), &server, &network)
        } else {
            asking(&server, &network)
        };
        let error = refused(&gate, name).await;
        assert!(error.name == "TypeError" && error.message.contains("cannot be resolved"), "{name}: {error}");
    }
}

#[tokio::test]
async fn name_with_hundreds_of_addresses_is_refused() {
    let server = NameServer::start().await;
    let many = (0..200).map(|n| IpAddr::from([93, 184, 215, n])).collect();
    // More than fits into a packet, so it is asked again over TCP.
    server.set("many.test", vec![Reply::Addresses(many)]);
    let error = refused(&asking(&server, &Network::new()), "many.test").await;
    assert!(error.name == "TypeError" && error.message.contains("200 addresses"), "{error}");
}
