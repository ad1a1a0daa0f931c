//! Secrets, and the tools that can use them.

use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, NewSecret, Role, SecretChanges, StoreError, schema_names};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Agent, Harness, alone, assert_not_found, fields, note, object};

fn secret(name: &str, value: &str) -> NewSecret {
    NewSecret::new(name, value)
}

/// The record of a tool with this name.
fn tool(name: &str, schema: &str) -> NewBreadcrumb {
    NewBreadcrumb {
        context: object(json!({"name": name})),
        schema_name: Some(schema.into()),
        ..note("the title of a tool")
    }
}

async fn new_tool(agent: &Agent, name: &str) -> Uuid {
    agent.create(tool(name, schema_names::TOOL_CODE), None).await.unwrap().id
}

fn assert_forbidden<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Forbidden(_))), "{result:?}");
}

pub async fn a_secret_is_decrypted_with_a_reason_and_rotated(harness: &impl Harness) {
    let agent = alone(harness).await;
    let made = agent.create_secret(secret("API_KEY", "first ä!")).await.unwrap();
    assert_eq!((made.name.as_str(), made.version), ("API_KEY", 1));
    assert_eq!(agent.decrypt_secret(made.id, "a test", None).await.unwrap(), "first ä!");
    let rotated = agent.update_secret(made.id, SecretChanges::value("second value")).await.unwrap();
    assert_eq!((rotated.id, rotated.version, rotated.created_at), (made.id, 2, made.created_at));
    assert_eq!(agent.decrypt_secret(made.id, "a test", None).await.unwrap(), "second value");
    assert_eq!(fields(agent.decrypt_secret(made.id, " ", None).await), ["reason"]);
}

pub async fn secrets_are_listed_by_name_without_values(harness: &impl Harness) {
    let agent = alone(harness).await;
    for name in ["B", "A", "_c"] {
        agent.create_secret(secret(name, "a long value")).await.unwrap();
    }
    let listed = agent.secrets().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|info| info.name.as_str()).collect();
    assert_eq!(names, ["A", "B", "_c"]);
    assert!(listed.iter().all(|info| info.hosts.is_empty() && info.tools.is_empty() && !info.readable));
}

pub async fn an_invalid_secret_is_refused(harness: &impl Harness) {
    let agent = alone(harness).await;
    agent.create_secret(secret("TAKEN", "a long value")).await.unwrap();
    assert_eq!(fields(agent.create_secret(secret("TAKEN", "another value")).await), ["name"]);
    assert_eq!(fields(agent.create_secret(secret("1st!", "a long value")).await), ["name"]);
    assert_eq!(fields(agent.create_secret(secret("EMPTY", "")).await), ["value"]);
    assert_eq!(fields(agent.create_secret(secret("SHORT", "1234567")).await), ["value"]);
    let hosts = ["api.example.com", "https://api.example.com", "*.com", "*", "a b"].map(String::from).to_vec();
    let refused = agent.create_secret(NewSecret { hosts, ..secret("BOUND", "a long value") }).await;
    assert_eq!(fields(refused), ["hosts[1]", "hosts[2]", "hosts[3]", "hosts[4]"]);
    let hosts = (0..51).map(|n| format!("h{n}.example.com")).collect();
    let refused = agent.create_secret(NewSecret { hosts, ..secret("BOUND", "a long value") }).await;
    assert_eq!(fields(refused), ["hosts"]);
    let id = agent.secrets().await.unwrap()[0].id;
    for value in ["x".repeat(65_537), "1234567".into(), String::new()] {
        assert_eq!(fields(agent.update_secret(id, SecretChanges::value(value)).await), ["value"]);
    }
    assert_eq!(fields(agent.update_secret(id, SecretChanges::default()).await), [""]);
    assert_eq!(agent.secrets().await.unwrap().len(), 1);
    assert_eq!(agent.decrypt_secret(id, "a test", None).await.unwrap(), "a long value");
}

pub async fn a_secret_is_bound_to_hosts_in_one_spelling(harness: &impl Harness) {
    let agent = alone(harness).await;
    let hosts = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
    let written = hosts(&["API.Example.com.", "api.example.com", "*.Bücher.example:8443", "[FD00::1]:80", "0x7f.1"]);
    let made = agent.create_secret(NewSecret { hosts: written, ..secret("BOUND", "a long value") }).await.unwrap();
    let kept = ["api.example.com", "*.xn--bcher-kva.example:8443", "[fd00::1]:80", "127.0.0.1"];
    assert_eq!(made.hosts, kept);
    assert_eq!(agent.secrets().await.unwrap(), std::slice::from_ref(&made));
    let rotated = agent.update_secret(made.id, SecretChanges::value("a new value")).await.unwrap();
    assert_eq!((rotated.version, rotated.hosts), (2, made.hosts));
    let changes = |list: &[&str]| SecretChanges { hosts: Some(hosts(list)), ..SecretChanges::default() };
    assert_eq!(fields(agent.update_secret(made.id, changes(&["good.example.com", "user@bad"])).await), ["hosts[1]"]);
    let rebound = agent.update_secret(made.id, changes(&["Other.example.com"])).await.unwrap();
    assert_eq!((rebound.version, rebound.hosts), (2, hosts(&["other.example.com"])));
    assert!(agent.update_secret(made.id, changes(&[])).await.unwrap().hosts.is_empty());
    assert_eq!(agent.decrypt_secret(made.id, "a test", None).await.unwrap(), "a new value");
}

pub async fn only_a_readable_secret_can_be_short(harness: &impl Harness) {
    let agent = alone(harness).await;
    let made = agent.create_secret(NewSecret { readable: true, ..secret("SHORT", "1234567") }).await.unwrap();
    assert!(made.readable);
    let opaque = SecretChanges { readable: Some(false), ..SecretChanges::default() };
    assert_eq!(fields(agent.update_secret(made.id, opaque.clone()).await), ["value"]);
    agent.update_secret(made.id, SecretChanges::value("x")).await.unwrap();
    let both = SecretChanges { value: Some("12345678".into()), ..opaque };
    assert!(!agent.update_secret(made.id, both).await.unwrap().readable);
    assert_eq!(fields(agent.update_secret(made.id, SecretChanges::value("x")).await), ["value"]);
    let both = SecretChanges { value: Some("x".into()), readable: Some(true), ..SecretChanges::default() };
    assert!(agent.update_secret(made.id, both).await.unwrap().readable);
}

pub async fn a_deleted_secret_is_gone(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create_secret(secret("GONE", "a long value")).await.unwrap().id;
    let tool = new_tool(&agent, "tool").await;
    agent.grant_secret(id, tool).await.unwrap();
    agent.delete_secret(id).await.unwrap();
    assert_not_found(agent.decrypt_secret(id, "a test", None).await);
    assert_not_found(agent.update_secret(id, SecretChanges::value("a new value")).await);
    assert_not_found(agent.grant_secret(id, tool).await);
    assert_not_found(agent.revoke_secret(id, tool).await);
    assert_not_found(agent.delete_secret(id).await);
    assert!(agent.secrets().await.unwrap().is_empty());
    let again = agent.create_secret(secret("GONE", "a long value")).await.unwrap();
    assert!(again.tools.is_empty(), "a grant belongs to a secret, not to its name");
}

pub async fn another_tenants_secret_is_not_found(harness: &impl Harness) {
    let (agent, stranger) = (alone(harness).await, alone(harness).await);
    let id = agent.create_secret(secret("MINE", "a long value")).await.unwrap().id;
    let (mine, theirs) = (new_tool(&agent, "tool").await, new_tool(&stranger, "tool").await);
    agent.grant_secret(id, mine).await.unwrap();
    for id in [id, Uuid::new_v4()] {
        assert_not_found(stranger.decrypt_secret(id, "a test", None).await);
        assert_not_found(stranger.decrypt_secret(id, "a test", Some(mine)).await);
        assert_not_found(stranger.update_secret(id, SecretChanges::value("a new value")).await);
        assert_not_found(stranger.grant_secret(id, theirs).await);
        assert_not_found(stranger.revoke_secret(id, mine).await);
        assert_not_found(stranger.delete_secret(id).await);
    }
    // A grant to another tenant's tool is refused as well.
    assert_not_found(agent.grant_secret(id, theirs).await);
    assert_forbidden(agent.decrypt_secret(id, "a test", Some(theirs)).await);
    assert!(stranger.secrets().await.unwrap().is_empty());
    let same = stranger.create_secret(secret("MINE", "another value")).await.unwrap().id;
    assert_not_found(stranger.grant_secret(same, mine).await);
    assert_eq!(agent.decrypt_secret(id, "a test", None).await.unwrap(), "a long value");
}

pub async fn a_grant_lets_one_record_use_a_secret(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let curator = harness.agent_with(tenant, &[Role::Curator]).await;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let id = curator.create_secret(secret("KEY", "a long value")).await.unwrap().id;
    let (weather, other) = (new_tool(&curator, "weather").await, new_tool(&curator, "weather").await);
    assert_forbidden(runner.decrypt_secret(id, "a call", Some(weather)).await);

    let granted = curator.grant_secret(id, weather).await.unwrap();
    let grant = &granted.tools[0];
    assert_eq!((grant.tool_id, grant.tool.as_str()), (weather, "weather"));
    assert_eq!((granted.tools.len(), grant.tool_version, grant.granted_by), (1, 1, curator.identity.agent_id));
    assert_eq!(runner.decrypt_secret(id, "a call", Some(weather)).await.unwrap(), "a long value");
    assert_forbidden(runner.decrypt_secret(id, "a call", Some(other)).await);
    assert_forbidden(curator.decrypt_secret(id, "a call", Some(other)).await);
    assert_forbidden(runner.decrypt_secret(id, "a call", None).await);
    assert_eq!(curator.decrypt_secret(id, "to see it", None).await.unwrap(), "a long value");

    let again = curator.grant_secret(id, weather).await.unwrap();
    assert_eq!(again.tools, granted.tools, "the same grant again changes nothing");
    curator.update_secret(id, SecretChanges::value("another value")).await.unwrap();
    assert_eq!(runner.decrypt_secret(id, "a call", Some(weather)).await.unwrap(), "another value");
    assert_eq!(runner.secrets().await.unwrap()[0].tools, granted.tools, "a new value keeps the grants");

    let both = curator.grant_secret(id, other).await.unwrap();
    assert_eq!(both.tools.iter().map(|grant| grant.tool_id).collect::<Vec<_>>(), [weather, other]);
    let left = curator.revoke_secret(id, weather).await.unwrap();
    assert_eq!(left.tools.iter().map(|grant| grant.tool_id).collect::<Vec<_>>(), [other]);
    assert_forbidden(runner.decrypt_secret(id, "a call", Some(weather)).await);
    assert_not_found(curator.revoke_secret(id, weather).await);
}

pub async fn a_runner_renews_a_value_for_a_granted_tool(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let curator = harness.agent_with(tenant, &[Role::Curator]).await;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let id = curator.create_secret(secret("TOKENS", "a long value")).await.unwrap().id;
    let tool = new_tool(&curator, "weather").await;
    let renewal = |value: &str, version| SecretChanges {
        version: Some(version),
        tool_id: Some(tool),
        ..SecretChanges::value(value)
    };
    assert_forbidden(runner.update_secret(id, renewal("a second value", 1)).await);
    curator.grant_secret(id, tool).await.unwrap();
    assert_forbidden(runner.update_secret(id, SecretChanges::value("a second value")).await);
    let rebound = SecretChanges { hosts: Some(Vec::new()), ..renewal("a second value", 1) };
    assert_eq!(fields(runner.update_secret(id, rebound).await), ["tool_id"]);
    let renewed = runner.update_secret(id, renewal("a second value", 1)).await.unwrap();
    assert_eq!((renewed.version, renewed.tools.len()), (2, 1));
    // Another runner renewed it first.
    let late = runner.update_secret(id, renewal("a third value", 1)).await;
    assert!(matches!(late, Err(StoreError::VersionConflict { expected: 1, actual: 2 })), "{late:?}");
    assert_eq!(runner.decrypt_secret(id, "a call", Some(tool)).await.unwrap(), "a second value");
}

pub async fn only_tools_are_granted_secrets(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create_secret(secret("KEY", "a long value")).await.unwrap().id;
    let other = agent.create(note("not a tool"), None).await.unwrap().id;
    assert_eq!(fields(agent.grant_secret(id, other).await), ["tool_id"]);
    assert_not_found(agent.grant_secret(id, Uuid::new_v4()).await);
    assert_not_found(agent.grant_secret(Uuid::new_v4(), other).await);
    let native = agent.create(tool("native", schema_names::TOOL_V1), None).await.unwrap().id;
    assert_eq!(agent.grant_secret(id, native).await.unwrap().tools[0].tool, "native");
}

pub async fn a_grant_ends_with_the_tools_record(harness: &impl Harness) {
    let agent = alone(harness).await;
    let id = agent.create_secret(secret("KEY", "a long value")).await.unwrap().id;
    let record = new_tool(&agent, "weather").await;
    agent.grant_secret(id, record).await.unwrap();
    agent.delete(record, None).await.unwrap();
    assert!(agent.secrets().await.unwrap()[0].tools.is_empty());
    assert_forbidden(agent.decrypt_secret(id, "a call", Some(record)).await);
    // A new record with the same name has no grant.
    let recreated = new_tool(&agent, "weather").await;
    assert!(agent.secrets().await.unwrap()[0].tools.is_empty());
    assert_forbidden(agent.decrypt_secret(id, "a call", Some(recreated)).await);
}

pub async fn only_curators_change_a_tool_with_secrets(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let curator = harness.agent_with(tenant, &[Role::Curator]).await;
    let emitter = harness.agent_with(tenant, &[Role::Emitter]).await;
    let id = curator.create_secret(secret("KEY", "a long value")).await.unwrap().id;
    let record = new_tool(&emitter, "weather").await;
    let renamed =
        |name: &str| BreadcrumbChanges { context: Some(object(json!({"name": name}))), ..BreadcrumbChanges::default() };
    emitter.update(record, 1, renamed("still mine")).await.unwrap();
    curator.grant_secret(id, record).await.unwrap();
    assert_forbidden(emitter.update(record, 2, renamed("not mine")).await);
    let changed = curator.update(record, 2, renamed("renamed")).await.unwrap();
    assert_eq!(changed.version, 3);
    let tools = curator.secrets().await.unwrap().remove(0).tools;
    assert_eq!((tools[0].tool_id, tools[0].tool.as_str()), (record, "renamed"), "a change keeps the grant");
    curator.revoke_secret(id, record).await.unwrap();
    emitter.update(record, 3, renamed("mine again")).await.unwrap();
    // Its author cannot delete it either, which would remove the grant and free the name.
    assert_eq!(curator.grant_secret(id, record).await.unwrap().tools[0].tool_version, 4);
    for version in [None, Some(4)] {
        assert_forbidden(emitter.delete(record, version).await);
    }
    assert_eq!(curator.secrets().await.unwrap()[0].tools[0].tool_id, record);
    // A call of the curator lacks that role; the message says what to do instead.
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let own = new_tool(&curator, "own").await;
    curator.grant_secret(id, own).await.unwrap();
    let by_call = runner.on_behalf_of(curator.identity.agent_id).unwrap();
    let Err(StoreError::Forbidden(why)) = by_call.update(own, 1, renamed("by a call")).await else { panic!() };
    assert!(why.contains("use PATCH or DELETE /breadcrumbs/{id} with a curator's token"), "{why}");
    curator.delete(own, Some(1)).await.unwrap();
    curator.revoke_secret(id, record).await.unwrap();
    emitter.delete(record, None).await.unwrap();
    assert_not_found(curator.get(record).await);
}
