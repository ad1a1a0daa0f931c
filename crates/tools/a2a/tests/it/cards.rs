//! Cards: read again when it is time, without anybody asking for it.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use futures::StreamExt;
use rcrt_a2a::{AGENT_SCHEMA, AgentRecord, WellKnown, agents};
use rcrt_breadcrumb::EventStream;
use rcrt_test_servers::PATIENCE;
use serde_json::json;

use crate::world::{Agent, HOST, World};

/// Waits until an agent's record is like this.
async fn until(events: &mut EventStream, is: impl Fn(&AgentRecord) -> bool) -> AgentRecord {
    loop {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.expect("it becomes so").unwrap().unwrap();
        if event.schema_name.as_deref() == Some(AGENT_SCHEMA)
            && let Ok(agent) = AgentRecord::read(&event.context)
            && is(&agent)
        {
            return agent;
        }
    }
}

#[tokio::test]
async fn a_card_is_read_again_when_it_is_time_and_a_changed_one_waits() {
    let agent = Agent::start().await;
    let mut world = World::of(agent.service.port).await;
    world.settings.refresh_every = Duration::from_millis(50);
    world.register().await;
    let mut events = world.events().await;
    let following = world.follow();
    agent.script.lock().unwrap().card = json!({"description": "Something else."});
    let changed = until(&mut events, |agent| agent.pending.is_some()).await;
    assert_eq!(
        (changed.card.description.as_str(), changed.pending.unwrap().description.as_str()),
        ("Finds things out.", "Something else.")
    );
    agent.script.lock().unwrap().card = json!({});
    until(&mut events, |agent| agent.pending.is_none()).await;
    // Garbage changes nothing but the problem.
    agent.script.lock().unwrap().card = json!({"supportedInterfaces": 7});
    let broken = until(&mut events, |agent| agent.problem.is_some()).await;
    assert_eq!(broken.card.description, "Finds things out.");
    assert!(broken.problem.unwrap().contains("card cannot be read"));
    agent.script.lock().unwrap().card = json!({});
    until(&mut events, |agent| agent.problem.is_none()).await;
    following.stop().await;
}

#[tokio::test]
async fn a_card_says_how_long_it_is_valid() {
    let agent = Agent::start().await;
    let mut world = World::of(agent.service.port).await;
    (world.settings.refresh_every, world.settings.shortest_refresh) = (Duration::from_hours(4), Duration::from_mins(5));
    for (cache_control, minutes) in [
        (None, 240),
        (Some("public, max-age=3600"), 60),
        (Some("max-age=1"), 5),
        (Some("max-age=999999999"), 240),
        (Some("max-age=soon"), 240),
    ] {
        agent.script.lock().unwrap().cache_control = cache_control;
        let before = Utc::now();
        world.register().await;
        let known = agents(&*world.runner()).await.unwrap().remove(0).agent;
        let valid = known.refresh_at - before;
        assert!(valid >= TimeDelta::minutes(minutes), "{cache_control:?}: {valid}");
        assert!(valid < TimeDelta::minutes(minutes + 2), "{cache_control:?}: {valid}");
        world.ask("unregister_agent", json!({"agent_name": "research"})).await.unwrap();
    }
}

#[tokio::test]
async fn the_operators_agents_are_known_with_their_cards_and_follow_their_file() {
    let agent = Agent::start().await;
    let mut world = World::of(agent.service.port).await;
    let file = |path: &str| {
        let url = format!("http://{HOST}:{}{path}", agent.service.port);
        WellKnown::read_all(&json!([{"agentName": "Research", "url": url}]).to_string()).unwrap()
    };
    world.settings.well_known = file("");
    let mut events = world.events().await;
    let following = world.follow();
    let known = until(&mut events, |agent| agent.well_known).await;
    assert_eq!((known.name.as_str(), known.card.skills.len()), ("Research", 1));
    following.stop().await;

    // The operator's word counts, so the card at the new place needs no curator.
    agent.script.lock().unwrap().card = json!({"description": "Moved."});
    world.settings.well_known = file("/moved");
    world.restart();
    world.ask("refresh_agent_card", json!({"agent_name": "research"})).await.unwrap();
    let moved = agents(&*world.runner()).await.unwrap().remove(0).agent;
    assert!(moved.card_url.contains("/moved/.well-known/"), "{}", moved.card_url);
    assert_eq!((moved.card.description.as_str(), moved.pending), ("Moved.", None));
}
