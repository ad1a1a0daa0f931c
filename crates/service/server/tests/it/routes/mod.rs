//! Calls every route as every kind of caller, in its own tenant and from another one. `roles.rs`
//! has the allowed roles, `fixtures.rs` the expected statuses. A route that lacks either fails
//! here.

pub mod fixtures;
mod resources;

use std::collections::BTreeSet;

use rcrt_breadcrumb::{Identity, Profile, Role, Tenancy};
use uuid::Uuid;

use crate::{
    auth::expired,
    harness::{Answer, World},
    roles::{EXPECTED, Roles},
};
use fixtures::{FIXTURES, Fixture};
use resources::Resources;

#[derive(Debug, Clone, Copy)]
enum Who {
    /// An agent of the tenant that the resources belong to.
    Own(Role),
    /// An agent of another tenant.
    Other(Role),
    NoToken,
    Garbage,
    /// A token of an agent with every role that expired an hour ago.
    Expired,
    /// A token of a deleted agent that had every role.
    Deleted,
}

fn everybody() -> Vec<Who> {
    let known = Role::ALL.into_iter().flat_map(|role| [Who::Own(role), Who::Other(role)]);
    known.chain([Who::NoToken, Who::Garbage, Who::Expired, Who::Deleted]).collect()
}

async fn token(world: &World, who: Who, tenant: Uuid, caller: Option<Uuid>) -> String {
    match (who, caller) {
        (Who::Own(role), Some(agent)) => world.token_of(tenant, agent, role),
        (who, _) => token_of_another(world, who, tenant).await,
    }
}

async fn token_of_another(world: &World, who: Who, tenant: Uuid) -> String {
    match who {
        Who::Own(role) => world.agent(tenant, &[role]).await.1,
        Who::Other(role) => world.token(&[role]).await,
        Who::NoToken => String::new(),
        Who::Garbage => "not.a.token".into(),
        Who::Expired => {
            let (agent, _) = world.agent(tenant, &Role::ALL).await;
            let roles = Role::ALL.to_vec();
            expired(&Identity { owner_id: tenant, agent_id: agent.id, roles, profile: Profile::Main })
        }
        Who::Deleted => {
            let (agent, token) = world.agent(tenant, &Role::ALL).await;
            world.store.delete_agent(tenant, None, agent.id).await.unwrap();
            token
        }
    }
}

fn expected(fixture: &Fixture, roles: Roles, who: Who) -> u16 {
    match (roles, who) {
        // Otherwise a scraper with a wrong token would get the reduced set without a word.
        (None, Who::Garbage | Who::Expired | Who::Deleted) if fixture.route == "GET /metrics" => 401,
        (None, _) => fixture.own,
        (Some(roles), Who::Own(role) | Who::Other(role)) if !roles.contains(&role) => 403,
        (_, Who::Own(role)) => fixture.own(role),
        (_, Who::Other(role)) => fixture.other(role),
        _ => 401,
    }
}

/// The response; of an endless stream only its head.
async fn ask(world: &World, fixture: &Fixture, resources: &Resources, token: &str) -> Answer {
    let (method, _) = fixture.method_and_template();
    let mut request = world
        .request(method, &resources.fill(fixture.path), token)
        .header("If-Match", "1")
        .header("Prefer", "respond-async");
    if !fixture.body.is_empty() {
        request = request.header("content-type", "application/json").body(resources.fill(fixture.body));
    }
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let is_stream = headers.get("content-type").is_some_and(|media| media.as_bytes() == b"text/event-stream");
    let text = if is_stream { String::new() } else { response.text().await.unwrap() };
    Answer { status, headers, text }
}

#[tokio::test]
async fn each_caller_gets_its_status_and_other_tenants_resources_are_not_found() {
    let world = World::start().await;
    for (method, template, roles) in EXPECTED {
        let route = format!("{method} {template}");
        let fixture = FIXTURES.iter().find(|fixture| fixture.route == route);
        let fixture = fixture.unwrap_or_else(|| panic!("{route} has no fixture in fixtures.rs"));
        for who in everybody() {
            let tenant = world.tenant().await;
            let resources = Resources::of(&world, tenant, &format!("{} {}", fixture.path, fixture.body)).await;
            let token = token(&world, who, tenant, resources.caller).await;
            let before = resources.seen(&world).await;
            let answer = ask(&world, fixture, &resources, &token).await;
            let case = format!("{route} {who:?}: {}", answer.text);
            let status = answer.status.as_u16();
            assert_eq!(status, expected(fixture, *roles, who), "{case}");
            match status {
                401 => assert!(answer.header("www-authenticate").starts_with("Bearer"), "{case}"),
                403 => assert!(answer.header("www-authenticate").contains("insufficient_scope"), "{case}"),
                // These have the form of A2A.
                404 if fixture.path.starts_with("/a2a") => assert_eq!(answer.json()["error"]["code"], 404, "{case}"),
                404 => {
                    let named = answer.problem(404, fixture.not_found())["id"].clone();
                    let asked = resources.fill(&format!("{} {}", fixture.path, fixture.body));
                    assert!(named.is_null() || asked.contains(named.as_str().unwrap()), "{case}");
                }
                _ => {}
            }
            if roles.is_none() || matches!(who, Who::Own(_)) && status < 300 {
                continue;
            }
            // A caller that cannot see them learns nothing about them and changes nothing.
            assert!(!answer.text.contains(&resources.mark), "{case}");
            // Unless the request has its id.
            let names_it = fixture.path.contains("{tenant}");
            assert!(matches!(who, Who::Own(_)) || names_it || !answer.text.contains(&tenant.to_string()), "{case}");
            assert_eq!(resources.seen(&world).await, before, "{case}");
        }
    }
    world.close().await;
}

/// The status for a thing of another tenant is the same as for one that never existed, so a caller
/// cannot tell them apart.
#[tokio::test]
async fn another_tenants_resources_look_like_unknown_ones() {
    let world = World::start().await;
    for fixture in FIXTURES.iter().filter(|fixture| fixture.other == 404) {
        let resources =
            Resources::of(&world, world.tenant().await, &format!("{} {}", fixture.path, fixture.body)).await;
        let nothing = resources.unknown();
        let token = world.token(&Role::ALL).await;
        let theirs = ask(&world, fixture, &resources, &token).await;
        let unknown = ask(&world, fixture, &nothing, &token).await;
        assert_eq!(theirs.status, unknown.status, "{}", fixture.route);
        assert_eq!(resources.forget_ids(&theirs.text), nothing.forget_ids(&unknown.text), "{}", fixture.route);
    }
    world.close().await;
}

#[test]
fn every_fixture_belongs_to_a_route() {
    let routes: BTreeSet<String> = EXPECTED.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let fixtures: BTreeSet<String> = FIXTURES.iter().map(|fixture| fixture.route.to_owned()).collect();
    assert_eq!(fixtures, routes);
    assert_eq!(fixtures.len(), FIXTURES.len(), "a route has two fixtures");
}
