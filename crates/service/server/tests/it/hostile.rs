//! Attacks on the server that must not work.

use futures::{StreamExt, TryStreamExt, stream};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcrt_breadcrumb::{Identity, NewBreadcrumb, Profile, Role, Tenancy};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use uuid::Uuid;

use crate::harness::{KEY, World, key, note, request_for};

fn base64(text: &str) -> String {
    // The parts of a token are base64url. No crate is needed for an invalid signature.
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: Vec<bool> = text.bytes().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    bits.chunks(6)
        .map(|chunk| {
            let index = chunk.iter().fold(0, |sum, bit| sum << 1 | usize::from(*bit)) << (6 - chunk.len());
            char::from(LETTERS[index])
        })
        .collect()
}

#[tokio::test]
async fn forged_tokens_are_refused_whatever_their_header() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, good) = world.agent(tenant, &[Role::Curator]).await;
    let claims = |more: Value| {
        let mut claims = json!({"owner_id": tenant, "agent_id": agent.id, "roles": ["curator"], "profile": "main",
            "exp": 4_000_000_000_u64, "iat": 0, "jti": Uuid::new_v4()});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    };
    let refused = async |what: &str, token: &str| {
        let answer = world.get("/agents", token).await;
        assert_eq!(answer.status.as_u16(), 401, "{what}: {}", answer.text);
    };
    world.get("/agents", &good).await.ok();

    // Unsigned, or signed in a way that only the header claims.
    let body = base64(&claims(json!({})).to_string());
    let signature = good.rsplit('.').next().unwrap();
    for algorithm in ["none", "None", "NONE", "nOnE", "", "HS1", "RS256", "ES256", "EdDSA"] {
        let head = base64(&json!({"alg": algorithm, "typ": "JWT"}).to_string());
        for end in ["", signature, "AA"] {
            refused(algorithm, &format!("{head}.{body}.{end}")).await;
        }
    }
    // The right key with another algorithm, an empty key, and another key.
    let signed = |header: Header, claims: &Value, key: &[u8]| {
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(key)).unwrap()
    };
    refused("HS384", &signed(Header::new(Algorithm::HS384), &claims(json!({})), &KEY)).await;
    refused("HS512", &signed(Header::new(Algorithm::HS512), &claims(json!({})), &KEY)).await;
    refused("no key", &signed(Header::default(), &claims(json!({})), b"")).await;
    // Keys that the header names or contains are ignored.
    for kid in ["../../../../dev/null", "/dev/null", "' OR 1=1 --", "", "\u{0}", "a".repeat(100_000).as_str()] {
        for key in [&[9; 32][..], b""] {
            let header = Header { kid: Some(kid.into()), ..Header::default() };
            refused("a foreign kid", &signed(header, &claims(json!({})), key)).await;
        }
    }
    let brought = Header {
        jku: Some("http://127.0.0.1:1/keys".into()),
        x5u: Some("http://127.0.0.1:1/chain".into()),
        kid: Some(signature.into()),
        ..Header::default()
    };
    refused("a key from elsewhere", &signed(brought, &claims(json!({})), &[9; 32])).await;

    // The right key, but claims that no server writes.
    for (what, more) in [
        ("ended", json!({"exp": 1})),
        ("ends before all time", json!({"exp": -1})),
        ("no time", json!({"exp": "never"})),
        ("no id", json!({"jti": "1"})),
        ("no agent", json!({"agent_id": "' OR 1=1 --"})),
        ("a role that there is not", json!({"roles": ["king"]})),
        ("roles that are none", json!({"roles": "curator"})),
        ("a profile that there is not", json!({"profile": "king"})),
        ("another agent", json!({"agent_id": Uuid::new_v4()})),
        ("another tenant", json!({"owner_id": world.tenant().await})),
        ("a ticket", json!({"ticket_of": {"jti": Uuid::new_v4(), "exp": 4_000_000_000_u64}})),
    ] {
        refused(what, &signed(Header::default(), &claims(more), &KEY)).await;
    }
    // Roles and rights that the agent does not have give no access.
    let (emitter, _) = world.agent(tenant, &[Role::Emitter]).await;
    let greedy = signed(Header::default(), &claims(json!({"agent_id": emitter.id, "operator": true})), &KEY);
    world.get("/agents", &greedy).await.problem(403, "forbidden");
    for odd in ["..", "a.b", "a.b.c.d", ".", "\u{e9}.b.c", &format!("{good}."), &good[1..], "Bearer"] {
        refused(odd, odd).await;
    }
    assert!(key().verify(&good).is_ok());
    world.close().await;
}

/// The response to these bytes.
async fn raw(world: &World, bytes: &str) -> String {
    let mut stream = TcpStream::connect(world.base.trim_start_matches("http://")).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A reset after the response is also an end.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn no_header_is_smuggled_into_a_response() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let id = world.create(&token, note("one\r\nX-Smuggled: yes")).await;
    let close = "Host: localhost\r\nConnection: close";
    for (what, request) in [
        (
            "a request id",
            format!("GET /health/live HTTP/1.1\r\n{close}\r\nX-Request-Id: a%0d%0aX-Smuggled: yes\r\n\r\n"),
        ),
        ("a bare return", format!("GET /health/live HTTP/1.1\r\n{close}\r\nX-Request-Id: a\rX-Smuggled: yes\r\n\r\n")),
        (
            "a folded line",
            format!("GET /health/live HTTP/1.1\r\n{close}\r\nX-Request-Id: a\r\n X-Smuggled: yes\r\n\r\n"),
        ),
        ("a path", format!("GET /nowhere%0d%0aX-Smuggled:%20yes HTTP/1.1\r\n{close}\r\n\r\n")),
        ("a query", format!("GET /health?x=%0d%0aX-Smuggled:%20yes HTTP/1.1\r\n{close}\r\n\r\n")),
        ("an origin", format!("GET /health/live HTTP/1.1\r\n{close}\r\nOrigin: http://a%0d%0aX-Smuggled: yes\r\n\r\n")),
        ("a record", format!("GET /breadcrumbs/{id} HTTP/1.1\r\n{close}\r\nAuthorization: Bearer {token}\r\n\r\n")),
        ("a list", format!("GET /breadcrumbs HTTP/1.1\r\n{close}\r\nAuthorization: Bearer {token}\r\n\r\n")),
    ] {
        let answer = raw(&world, &request).await;
        let (head, _) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        assert!(head.starts_with("HTTP/1.1 "), "{what}: {answer}");
        assert!(!head.to_lowercase().contains("\nx-smuggled"), "{what}: {head}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{what}: {answer}");
    }
    // Two lengths, or a length and chunks: the body is not read as a second request.
    let hidden = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for lengths in [
        format!("Content-Length: 0\r\nContent-Length: {}", hidden.len()),
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked", hidden.len()),
        "Transfer-Encoding: chunked, identity".to_owned(),
        "Transfer-Encoding: \u{b}chunked".to_owned(),
    ] {
        let request = format!(
            "POST /auth/token HTTP/1.1\r\n{close}\r\nContent-Type: application/json\r\n{lengths}\r\n\r\n{hidden}"
        );
        let answer = raw(&world, &request).await;
        assert!(answer.matches("HTTP/1.1 ").count() <= 1 && !answer.contains("HTTP/1.1 200"), "{lengths}: {answer}");
    }
    world.close().await;
}

#[tokio::test]
async fn no_path_reaches_a_file_or_bypasses_a_check() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    for path in [
        "/../../../../etc/passwd",
        "/docs/../../../etc/passwd",
        "/docs/%2e%2e/%2e%2e/etc/passwd",
        "/docs/..%2f..%2fetc/passwd",
        "/docs/page.css/../../../../etc/passwd",
        "/docs/page.css%00.html",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/breadcrumbs/..%2fagents",
        "/breadcrumbs/%2e%2e/agents",
        "/docs/../agents",
        "/AGENTS",
        "/agents/",
        "/agents;x=1",
        "/agents%20",
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        let answer = raw(&world, &request).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(["400", "403", "404"].contains(&status), "{path}: {answer}");
        assert!(!answer.contains("root:") && !answer.contains("agent_key"), "{path}: {answer}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_open_calls_of_one_agent_do_not_block_others() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (flooder, _) = world.agent(tenant, &[Role::Emitter]).await;
    let identity =
        Identity { owner_id: tenant, agent_id: flooder.id, roles: vec![Role::Emitter], profile: Profile::Main };
    let store = world.store.acting_as(identity);
    let flood: NewBreadcrumb = serde_json::from_value(request_for("flood")).unwrap();
    let mut last = stream::iter(0..10_000)
        .map(|_| store.create(flood.clone(), None))
        .buffer_unordered(64)
        .try_collect::<Vec<_>>()
        .await
        .unwrap();
    let last = last.pop().unwrap().id;

    let (_, other) = world.agent(tenant, &[Role::Emitter, Role::Subscriber]).await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let asked = world.create(&other, request_for("other")).await;
    world.get("/health", "").await.ok();
    world.get("/breadcrumbs?limit=1&tag=note", &other).await.ok();
    // A runner whose slots for this tool are full gets the call of the other agent first.
    let claim = json!({"runner_id": Uuid::new_v4(), "limit": 1, "lease_ms": 60_000, "except_tools": ["flood"]});
    let claims = world.post("/calls/claim", &runner, claim).await.ok().json();
    assert_eq!(claims[0]["lease"]["request"], json!(asked), "{claims}");
    // The flood of calls can be cancelled.
    let curator = world.agent(tenant, &[Role::Curator]).await.1;
    let cancelled = world.post(&format!("/calls/{last}/cancel"), &curator, json!({})).await.ok().json();
    assert_eq!(cancelled["state"], "finished");
    world.close().await;
}
