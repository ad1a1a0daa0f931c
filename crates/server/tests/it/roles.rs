//! Every route, with every role.

use std::collections::BTreeSet;

use breadcrumb::Role::{self, Curator, Emitter, Runner, Subscriber};

use crate::harness::{World, answer};

const ANYONE: Option<&[Role]> = None;
const READERS: Option<&[Role]> = Some(&[Curator, Emitter, Subscriber, Runner]);
const WRITERS: Option<&[Role]> = Some(&[Curator, Emitter, Runner]);
const FOLLOWERS: Option<&[Role]> = Some(&[Curator, Subscriber, Runner]);
const RUNNERS: Option<&[Role]> = Some(&[Curator, Runner]);
const CURATORS: Option<&[Role]> = Some(&[Curator]);

/// What the server must allow, written down a second time on purpose.
const EXPECTED: &[(&str, &str, Option<&[Role]>)] = &[
    ("POST", "/auth/token", ANYONE),
    ("POST", "/breadcrumbs", WRITERS),
    ("GET", "/breadcrumbs", READERS),
    ("GET", "/breadcrumbs/search", READERS),
    ("GET", "/breadcrumbs/{id}", READERS),
    ("GET", "/breadcrumbs/{id}/full", READERS),
    ("GET", "/breadcrumbs/{id}/history", READERS),
    ("PATCH", "/breadcrumbs/{id}", WRITERS),
    ("DELETE", "/breadcrumbs/{id}", WRITERS),
    ("GET", "/events/stream", FOLLOWERS),
    ("GET", "/events/latest", FOLLOWERS),
    ("GET", "/tools", READERS),
    ("GET", "/tools/{name}", READERS),
    ("POST", "/tools/{name}/invoke", WRITERS),
    ("GET", "/calls/{request_id}", READERS),
    ("POST", "/calls/{request_id}/cancel", WRITERS),
    ("POST", "/calls/claim", RUNNERS),
    ("POST", "/calls/start", RUNNERS),
    ("POST", "/calls/heartbeat", RUNNERS),
    ("POST", "/calls/complete", RUNNERS),
    ("POST", "/calls/release", RUNNERS),
    ("POST", "/secrets", CURATORS),
    ("GET", "/secrets", RUNNERS),
    ("PUT", "/secrets/{id}", CURATORS),
    ("DELETE", "/secrets/{id}", CURATORS),
    ("POST", "/secrets/{id}/decrypt", RUNNERS),
    ("POST", "/secrets/{id}/grants", CURATORS),
    ("DELETE", "/secrets/{id}/grants/{tool_id}", CURATORS),
    ("POST", "/agents", CURATORS),
    ("GET", "/agents", CURATORS),
    ("GET", "/agents/{id}", CURATORS),
    ("DELETE", "/agents/{id}", CURATORS),
    ("GET", "/health", ANYONE),
    ("GET", "/metrics", ANYONE),
    ("GET", "/openapi.json", ANYONE),
    ("GET", "/docs", ANYONE),
    ("GET", "/docs/page.css", ANYONE),
    ("GET", "/docs/page.js", ANYONE),
];

fn path(template: &str) -> String {
    let id = uuid::Uuid::new_v4().to_string();
    template.replace("{id}", &id).replace("{request_id}", &id).replace("{tool_id}", &id).replace("{name}", "echo")
}

#[tokio::test]
async fn each_role_may_what_it_may_and_nothing_else() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    for role in Role::ALL {
        let (_, token) = world.agent(tenant, &[role]).await;
        for (method, template, allowed) in EXPECTED {
            // The stream never ends by itself, so only the head of each answer is read.
            let response = world.request(method, &path(template), &token).send().await.unwrap();
            let status = response.status().as_u16();
            if allowed.is_none_or(|allowed| allowed.contains(&role)) {
                assert!(
                    !matches!(status, 401 | 403 | 404..=405) || template.contains('{'),
                    "{method} {template} {role:?}: {status}"
                );
                assert!(!matches!(status, 401 | 403 | 500), "{method} {template} {role:?}: {status}");
            } else {
                assert_eq!(status, 403, "{method} {template} {role:?}");
                assert!(response.headers()["www-authenticate"].to_str().unwrap().contains("insufficient_scope"));
            }
        }
    }
    world.close().await;
}

#[tokio::test]
async fn without_a_token_only_the_open_routes_answer() {
    let world = World::start().await;
    for (method, template, allowed) in EXPECTED {
        for token in ["", "not.a.token"] {
            let answer = answer(world.request(method, &path(template), token)).await;
            if allowed.is_none() {
                assert!(!matches!(answer.status.as_u16(), 401 | 403 | 404), "{method} {template}: {}", answer.status);
            } else {
                answer.problem(401, "unauthorized");
                assert!(answer.header("www-authenticate").starts_with("Bearer"), "{method} {template}");
            }
        }
    }
    world.close().await;
}

#[tokio::test]
async fn the_list_above_is_the_whole_api() {
    let world = World::start().await;
    let document = world.get("/openapi.json", "").await.ok().json();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let roles: Option<Vec<String>> =
                operation.get("x-roles").map(|roles| serde_json::from_value(roles.clone()).unwrap());
            described.insert((method.to_uppercase(), path.clone(), roles));
        }
    }
    let expected: BTreeSet<_> = EXPECTED
        .iter()
        .map(|(method, path, roles)| {
            let roles = roles.map(|roles| roles.iter().map(|role| role.as_str().to_owned()).collect::<Vec<_>>());
            ((*method).to_owned(), (*path).to_owned(), roles)
        })
        .collect();
    assert_eq!(described, expected);
    world.close().await;
}
