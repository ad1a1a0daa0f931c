use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use rcrt_breadcrumb::{AgentStatus, Identity, NewAgent, Profile, Role, StoreError, Tenancy, TenancyDecorator};
use rcrt_server::{AllowedHosts, AuthMode, Server, ServerError, ServerOptions, TokenError, TokenKey};
use rcrt_store::Store;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{PATIENCE, World, answer, key};

#[tokio::test]
async fn a_token_is_issued_for_a_key_with_a_subset_of_the_roles() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let agent = NewAgent {
        name: "a".into(),
        roles: vec![Role::Emitter, Role::Subscriber],
        profile: Profile::Main,
        tools: None,
    };
    let made = world.store.create_agent(tenant, None, agent).await.unwrap();
    let ask = |more: Value| {
        let mut body = json!({"owner_id": tenant, "agent_id": made.agent.id, "agent_key": made.agent_key});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.post("/auth/token", "", body)
    };
    let all = ask(json!({})).await.ok();
    assert_eq!(all.header("cache-control"), "no-store");
    let all = all.json();
    assert_eq!(all["roles"], json!(["emitter", "subscriber"]));
    assert_eq!((&all["owner_id"], &all["agent_id"]), (&json!(tenant), &json!(made.agent.id)));
    assert_eq!(all["expires_in"], 3600);

    let some = ask(json!({"roles": ["subscriber"], "ttl_sec": 60})).await.ok().json();
    assert_eq!((&some["roles"], &some["expires_in"]), (&json!(["subscriber"]), &json!(60)));
    let token = some["token"].as_str().unwrap();
    world.get("/breadcrumbs", token).await.ok();
    world.post("/breadcrumbs", token, json!({"title": "x"})).await.problem(403, "forbidden");

    ask(json!({"roles": ["curator"]})).await.problem(403, "forbidden");
    ask(json!({"roles": []})).await.violation("roles");
    ask(json!({"ttl_sec": 0})).await.violation("ttl_sec");
    ask(json!({"agent_key": "wrong"})).await.problem(401, "unauthorized");
    ask(json!({"agent_id": Uuid::new_v4()})).await.problem(401, "unauthorized");
    ask(json!({"owner_id": world.tenant().await})).await.problem(401, "unauthorized");
    ask(json!({"agent_key": null})).await.violation("agent_key");
    world.close().await;
}

#[tokio::test]
async fn expired_forged_and_orphaned_tokens_are_refused() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (agent, good) = world.agent(tenant, &[Role::Emitter]).await;
    let identity =
        Identity { owner_id: tenant, agent_id: agent.id, roles: vec![Role::Emitter], profile: Profile::Main };
    let refused = async |token: &str| {
        let answer = world.get("/breadcrumbs", token).await;
        assert!(answer.header("www-authenticate").contains("invalid_token"));
        answer.problem(401, "unauthorized")["detail"].as_str().unwrap().to_owned()
    };
    world.get("/breadcrumbs", &good).await.ok();

    let past = expired(&identity);
    assert_eq!(refused(&past).await, "the token has expired");
    // A token is refused from its `exp` on, not only after that second.
    let ended = key().issue(&identity, Duration::ZERO).unwrap();
    assert_eq!(key().verify(&ended), Err(TokenError::Expired));
    let other = TokenKey::from_bytes(&[8; 32]).unwrap().issue(&identity, Duration::from_mins(1)).unwrap();
    refused(&other).await;
    // A token with changed content, and one without a signature.
    let (head, rest) = good.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    refused(&format!("{head}.{}.{signature}", other.split('.').nth(1).unwrap())).await;
    refused(&format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{}.", rest.split_once('.').unwrap().0)).await;
    refused("x").await;
    let unknown_agent = Identity { agent_id: Uuid::new_v4(), ..identity.clone() };
    refused(&key().issue(&unknown_agent, Duration::from_mins(1)).unwrap()).await;
    // Roles that the agent does not have give no access.
    let greedy = Identity { roles: Role::ALL.to_vec(), ..identity };
    let greedy = key().issue(&greedy, Duration::from_mins(1)).unwrap();
    world.get("/agents", &greedy).await.problem(403, "forbidden");
    world.get("/breadcrumbs", &greedy).await.ok();

    let basic = world.http.get(format!("{}/breadcrumbs", world.base)).header("Authorization", "Basic eDp5");
    answer(basic).await.problem(401, "unauthorized");
    // Only the event stream takes a token from the query.
    world.get(&format!("/breadcrumbs?token={good}"), "").await.problem(401, "unauthorized");
    world.close().await;
}

/// A token that expired an hour ago, signed with the right key.
pub fn expired(identity: &Identity) -> String {
    let claims = json!({"owner_id": identity.owner_id, "agent_id": identity.agent_id, "roles": identity.roles,
        "exp": jsonwebtoken::get_current_timestamp() - 3600, "iat": 0, "jti": Uuid::new_v4()});
    let key = jsonwebtoken::EncodingKey::from_secret(&crate::harness::KEY);
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
}

#[tokio::test]
async fn open_mode_issues_tokens_without_a_key() {
    let world = World::start_with(AuthMode::Open).await;
    let token = world.post("/auth/token", "", json!({})).await.ok().json();
    world.post("/breadcrumbs", token["token"].as_str().unwrap(), json!({"title": "x"})).await.ok();
    // The same tenant, and an unknown agent: it is registered, with more roles than this token has.
    let agent = Uuid::new_v4();
    let ask = json!({"owner_id": token["owner_id"], "agent_id": agent, "roles": ["subscriber"]});
    let second = world.post("/auth/token", "", ask).await.ok().json();
    assert_eq!((&second["agent_id"], &second["roles"]), (&json!(agent), &json!(["subscriber"])));
    let registered = world.get(&format!("/agents/{agent}"), token["token"].as_str().unwrap()).await.ok().json();
    assert_eq!(registered["roles"], json!(Role::ALL));
    // An agent whose id the caller did not choose is not registered.
    let unnamed = format!("/agents/{}", token["agent_id"].as_str().unwrap());
    world.get(&unnamed, token["token"].as_str().unwrap()).await.problem(404, "not_found");
    // Another tenant has an agent with this id: a token is issued anyway.
    let other = world.tenant().await;
    let taken = world.post("/auth/token", "", json!({"owner_id": other, "agent_id": agent})).await.ok().json();
    assert_eq!((&taken["owner_id"], &taken["agent_id"]), (&json!(other), &json!(agent)));
    let listed = world.get("/breadcrumbs", second["token"].as_str().unwrap()).await.ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    world.post("/auth/token", "", json!({"owner_id": Uuid::new_v4()})).await.violation("owner_id");
    // Unmodified clients of RCRT: the owner and the agent of its examples.
    let rcrt = json!({"owner_id": "00000000-0000-0000-0000-000000000001", "agent_id": "00000000-0000-0000-0000-0000000000aa",
        "roles": ["curator", "emitter", "subscriber"]});
    assert_eq!(world.post("/auth/token", "", rcrt).await.ok().json()["owner_id"], token["owner_id"]);
    // The name of a web site, with this machine's address.
    let rebound = world.request("POST", "/auth/token", "").header("Host", "evil.example").json(&json!({}));
    answer(rebound).await.problem(421, "foreign_host");
    world.close().await;
}

#[tokio::test]
async fn open_mode_is_refused_beyond_loopback_and_so_are_weak_keys() {
    let world = World::start().await;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let options = ServerOptions::new(listener, AuthMode::Open, key());
    let refused = Server::new(options, world.store.clone()).err().unwrap();
    assert!(matches!(refused, ServerError::OpenAuthBeyondLoopback { .. }), "{refused}");
    assert!(matches!(AllowedHosts::new(&["http://rcrt"]), Err(ServerError::NoHostName { .. })));
    assert!(matches!(TokenKey::from_bytes(&[1; 31]), Err(ServerError::WeakTokenKey { bytes: 31 })));
    world.close().await;
}

#[tokio::test]
async fn open_mode_accepts_the_allowed_host_names() {
    async fn asked(world: &World, base: &str, host: &str) -> crate::harness::Answer {
        answer(world.http.post(format!("{base}/auth/token")).header("Host", host).json(&json!({}))).await
    }
    let listening = async |listen: &str, hosts: &[&str], rcrt_compat: bool| {
        let hosts = AllowedHosts::new(hosts).unwrap();
        World::start_listening(listen, AuthMode::Open, |options| {
            options.hosts = hosts;
            options.rcrt_compat = rcrt_compat;
        })
        .await
    };
    for (listen, hosts, rcrt_compat, taken, refused) in [
        ("127.0.0.1:0", &["rcrt.internal"][..], false, &["rcrt.internal:8080", "localhost"][..], "rcrt"),
        // The owner of the network's DNS could rebind a name without a dot to this machine.
        ("127.0.0.1:0", &[], true, &["localhost"], "rcrt"),
        ("0.0.0.0:0", &["rcrt"], false, &["rcrt:8080", "RCRT"], "other"),
        ("0.0.0.0:0", &[], true, &["rcrt:8080", "tools-runner", "127.0.0.1"], "rcrt.evil.example"),
    ] {
        let world = listening(listen, hosts, rcrt_compat).await;
        for host in taken {
            asked(&world, &world.base, host).await.ok();
        }
        asked(&world, &world.base, refused).await.problem(421, "foreign_host");
        world.close().await;
    }
}

#[tokio::test]
async fn a_token_has_a_profile_and_only_main_can_choose_it() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let ask = async |own: Profile, wanted: Option<&str>| {
        let agent =
            NewAgent { name: Uuid::new_v4().to_string(), roles: vec![Role::Emitter], profile: own, tools: None };
        let made = world.store.create_agent(tenant, None, agent).await.unwrap();
        let mut body = json!({"owner_id": tenant, "agent_id": made.agent.id, "agent_key": made.agent_key});
        if let Some(wanted) = wanted {
            body["profile"] = json!(wanted);
        }
        world.post("/auth/token", "", body).await
    };
    for own in Profile::ALL {
        for wanted in Profile::ALL {
            let answer = ask(own, Some(wanted.as_str())).await;
            if own == Profile::Main || own == wanted {
                let given = answer.ok().json();
                assert_eq!(given["profile"], wanted.as_str());
                let proven = key().verify(given["token"].as_str().unwrap()).unwrap();
                assert_eq!(proven.identity.profile, wanted);
            } else {
                let why = answer.problem(403, "forbidden")["detail"].as_str().unwrap().to_owned();
                assert!(why.contains(own.as_str()), "{why}");
            }
        }
        assert_eq!(ask(own, None).await.ok().json()["profile"], own.as_str());
    }
    ask(Profile::Main, Some("king")).await.violation("profile");
    world.close().await;
}

#[tokio::test]
async fn requests_get_the_profile_of_the_token() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, runner) = world.agent(tenant, &[Role::Runner]).await;
    let (_, subagent) = world.agent_of(tenant, &[Role::Emitter], Profile::Subagent).await;
    world.create(&subagent, crate::harness::request_for("echo")).await;
    let claim = json!({"runner_id": Uuid::new_v4(), "limit": 5, "lease_ms": 60000});
    let claims = world.post("/calls/claim", &runner, claim).await.ok().json();
    assert_eq!(claims[0]["profiles"], json!(["subagent"]));
    world.close().await;
}

#[tokio::test]
async fn open_mode_issues_any_profile_except_for_a_known_agent() {
    let world = World::start_with(AuthMode::Open).await;
    let token = world.post("/auth/token", "", json!({"profile": "scheduled"})).await.ok().json();
    assert_eq!(token["profile"], "scheduled");
    let tenant: Uuid = token["owner_id"].as_str().unwrap().parse().unwrap();
    let agent = NewAgent { name: "sub".into(), roles: vec![Role::Emitter], profile: Profile::Subagent, tools: None };
    let agent = world.store.create_agent(tenant, None, agent).await.unwrap().agent.id;
    let ask = |more: Value| {
        let mut body = json!({"owner_id": tenant, "agent_id": agent});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.post("/auth/token", "", body)
    };
    assert_eq!(ask(json!({})).await.ok().json()["profile"], "subagent");
    ask(json!({"profile": "main"})).await.problem(403, "forbidden");
    world.close().await;
}

#[tokio::test]
async fn old_tokens_stay_valid_until_their_key_is_removed() {
    let (old, new) = (vec![1; 32], vec![2; 32]);
    let identity = Identity {
        owner_id: Uuid::new_v4(),
        agent_id: Uuid::new_v4(),
        roles: vec![Role::Emitter],
        profile: Profile::Main,
    };
    let hour = Duration::from_hours(1);
    let before = TokenKey::from_bytes(&old).unwrap();
    let token = before.issue(&identity, hour).unwrap();
    let both = TokenKey::renewed_by(&[new.clone(), old.clone()], || None).unwrap();
    assert_eq!(both.verify(&token).unwrap().identity, identity);
    let fresh = both.issue(&identity, hour).unwrap();
    assert_eq!(both.newest_id(), TokenKey::from_bytes(&new).unwrap().newest_id());
    assert_eq!(before.verify(&fresh), Err(TokenError::Forged));
    let only_new = TokenKey::from_bytes(&new).unwrap();
    assert!(only_new.verify(&fresh).is_ok());
    assert_eq!(only_new.verify(&token), Err(TokenError::Forged));
    assert_eq!(both.verify("no.token.at all"), Err(TokenError::Forged));

    // Issued before keys had ids, with either key.
    let claims = json!({"owner_id": identity.owner_id, "agent_id": identity.agent_id, "roles": ["emitter"],
        "exp": u64::from(u32::MAX), "iat": 0, "jti": Uuid::new_v4()});
    for key in [&old, &new] {
        let bare = jsonwebtoken::encode(
            &jsonwebtoken::Header::default(),
            &claims,
            &jsonwebtoken::EncodingKey::from_secret(key),
        )
        .unwrap();
        assert_eq!(both.verify(&bare).unwrap().identity, identity);
        let ended = jsonwebtoken::Header { kid: Some("another".into()), ..Default::default() };
        let other = jsonwebtoken::encode(&ended, &claims, &jsonwebtoken::EncodingKey::from_secret(key)).unwrap();
        assert_eq!(both.verify(&other), Err(TokenError::Forged));
    }
}

fn a_curator() -> Identity {
    Identity { owner_id: Uuid::new_v4(), agent_id: Uuid::new_v4(), roles: vec![Role::Curator], profile: Profile::Main }
}

#[test]
fn a_token_of_a_new_key_is_accepted_at_once() {
    let (old, new) = (vec![1; 32], vec![2; 32]);
    let identity = a_curator();
    let token = TokenKey::from_bytes(&new).unwrap().issue(&identity, Duration::from_hours(1)).unwrap();
    let came = std::sync::Mutex::new(Some(vec![new, old.clone()]));
    let keys = TokenKey::renewed_by(&[old], move || came.lock().unwrap().take()).unwrap();
    assert_eq!(keys.verify(&token).unwrap().identity, identity);
}

#[test]
fn a_token_that_was_accepted_ends_with_its_key() {
    let (old, new) = (vec![1; 32], vec![2; 32]);
    let identity = a_curator();
    let issued = |key: &[u8]| TokenKey::from_bytes(key).unwrap().issue(&identity, Duration::from_hours(1)).unwrap();
    let (token, fresh) = (issued(&old), issued(&new));
    let came = std::sync::Arc::new(std::sync::Mutex::new(None));
    let source = came.clone();
    let keys = TokenKey::renewed_by(&[old], move || source.lock().unwrap().take()).unwrap();
    let first = keys.verify(&token).unwrap();
    assert_eq!(keys.verify(&token), Ok(first));
    *came.lock().unwrap() = Some(vec![new]);
    // Names a key that is not known, so the new keys are loaded.
    assert!(keys.verify(&fresh).is_ok());
    assert_eq!(keys.verify(&token), Err(TokenError::Forged));
}

#[tokio::test]
async fn a_running_server_uses_new_keys() {
    let later = std::sync::Mutex::new(Some(vec![vec![2; 32]]));
    let keys = TokenKey::renewed_by(&[vec![1; 32]], move || later.lock().unwrap().take()).unwrap();
    let first = keys.newest_id();
    let exchanged = async {
        while keys.newest_id() == first {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, exchanged).await.expect("the new key is known after a second");
    assert_eq!(keys.newest_id(), TokenKey::from_bytes(&[2; 32]).unwrap().newest_id());
}

/// Counts how often the state of an agent is read.
struct CountingStore {
    store: Arc<Store>,
    read: AtomicU64,
}

#[async_trait]
impl TenancyDecorator for CountingStore {
    fn inner(&self) -> &dyn Tenancy {
        &*self.store
    }

    async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus, StoreError> {
        self.read.fetch_add(1, Ordering::SeqCst);
        self.store.agent_status(owner_id, agent_id).await
    }
}

#[tokio::test]
async fn requests_at_the_same_time_read_the_state_of_their_agent_once() {
    let world = World::start().await;
    let token = world.token(&[Role::Curator]).await;
    let counting = Arc::new(CountingStore { store: world.store.clone(), read: AtomicU64::new(0) });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/breadcrumbs", listener.local_addr().unwrap());
    let server = Server::new(ServerOptions::new(listener, AuthMode::Keys, key()), counting.clone()).unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server.run(shutdown.clone()));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let begun = Instant::now();
    join_all((0..50).map(|_| async { answer(http.get(&url).bearer_auth(&token)).await.ok() })).await;
    // It is read again after a second.
    let (read, seconds) = (counting.read.load(Ordering::SeqCst), begun.elapsed().as_secs());
    assert!((1..=1 + seconds).contains(&read), "{read} times in {seconds} s");
    drop(http);
    shutdown.cancel();
    serving.await.unwrap();
    world.close().await;
}
